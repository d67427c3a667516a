package victims

import "math"

// Rule names what kept a pod from being a victim, or an asker from asking.
type Rule string

// The rules. Laws are numbered as in the design.
const (
	Law1             Rule = "law 1"
	Law2             Rule = "law 2"
	Law3             Rule = "law 3"
	Law4             Rule = "law 4"
	Law5             Rule = "law 5"
	Law6             Rule = "law 6"
	Law7             Rule = "law 7"
	RuleDisabled     Rule = "preemption.policy disabled"
	RuleDaemonSet    Rule = "pod of a DaemonSet"
	RuleStatic       Rule = "static pod"
	RuleLeaving      Rule = "leaving already"
	RuleBinding      Rule = "being bound"
	RuleForeign      Rule = "foreign pod"
	RuleNotNeeded    Rule = "frees nothing that is needed"
	RuleNeverPreempt Rule = "preemptionPolicy Never"
)

var protectionRules = [...]Rule{
	DaemonSet: RuleDaemonSet, Static: RuleStatic, Leaving: RuleLeaving, Binding: RuleBinding, Foreign: RuleForeign,
}

// mayAsk tells, by the depth of a common ancestor, whether the ask side below
// it is under its guarantee in the contested types (law 4): at least one queue
// guarantees one of them, and none has reached what it guarantees.
func (s *scene) mayAsk(contested []int) []bool {
	ok := make([]bool, len(s.path))
	guaranteed, under := false, true
	for d := len(s.path) - 1; d >= 0; d-- {
		ok[d] = guaranteed && under
		a := s.path[d]
		for _, t := range contested {
			if !a.named[t] {
				continue
			}
			guaranteed = true
			under = under && s.underGuarantee(a, t)
		}
	}
	return ok
}

func (s *scene) underGuarantee(a *account, t int) bool {
	has := a.used[t] + a.arriving[t]
	if s.params.StrictGuarantee {
		return has+s.ask.Request.at(t) <= a.guaranteed[t]
	}
	return has < a.guaranteed[t]
}

// mayLose tells whether every queue of the victim's side is over its guarantee
// in a contested type that the victim uses (law 5).
func mayLose(r *route, request Amounts, contested []int) bool {
	for _, a := range r.side {
		over := false
		for _, t := range contested {
			if request.at(t) > 0 && a.used[t] > a.guaranteed[t] {
				over = true
				break
			}
		}
		if !over {
			return false
		}
	}
	return true
}

// unbounded is what may be taken of a type that a queue does not protect.
const unbounded = math.MaxInt64

// takable returns, for each type, how much a set of victims may take from a
// queue (law 2).
func (s *scene) takable(a *account, contested []bool) []int64 {
	out := make([]int64, len(s.world.Types))
	_, onPath := s.depth[a.queue.ID]
	for t := range out {
		out[t] = unbounded
		switch {
		case !a.named[t]:
		case onPath:
			has := a.used[t] + a.arriving[t]
			out[t] = has + s.ask.Request.at(t) - min(a.guaranteed[t], has)
		case contested[t] || a.used[t] >= a.guaranteed[t]:
			out[t] = max(a.used[t]-a.guaranteed[t], 0)
		}
	}
	return out
}
