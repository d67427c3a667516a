package planner

import (
	"cmp"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Outcome is the result of a decision.
type Outcome string

// The outcomes. Wait: the asker fits the node once leaving pods are gone, so there are no
// victims. Preempt: the victims are preempted. Refuse: there is no plan. Hold is an
// outcome of package required only: the node is held, and no pod is preempted.
const (
	Wait    Outcome = "wait"
	Hold    Outcome = "hold"
	Preempt Outcome = "preempt"
	Refuse  Outcome = "refuse"
)

// Victim is a pod chosen to be preempted.
type Victim struct {
	*Pod
	// Node is the node on which it runs.
	Node string
	// Queue is the path of its leaf. Common is the path of the lowest queue that it
	// shares with the asker.
	Queue, Common string
	// Uses are the contested types that it uses.
	Uses []string
	// Priority is its effective priority strictly below the fence root.
	Priority int64
	// Below and AskBelow are the effective priorities of the victim and of the asker
	// strictly below the common queue, as law 6 judged them.
	Below, AskBelow int64
}

// Change is the effect of a decision on one queue in one type, as laws 2, 4 and 5 judge
// it: of the amount Guaranteed, Used is used before, and Used - Taken + Asked after.
type Change struct {
	Queue string
	Type  string
	// Used is the usage before; on the asker's path it includes what is arriving.
	Used, Taken, Asked, Guaranteed resources.Amount
	// Ask is true for the queues on the asker's path.
	Ask bool
}

// Excess is a queue with a max that the asker would exceed (law 7): Used, with what is
// arriving, plus Asked is more than Max. Taken is what the victims free there.
type Excess struct {
	Queue, Type             string
	Used, Asked, Taken, Max resources.Amount
}

// Rejection counts the pods that a rule excluded.
type Rejection struct {
	Rule Rule
	Pods int
}

// Decision is the outcome of a plan, with the numbers by which it was judged.
type Decision struct {
	Ask *Ask
	// Queue is the path of the asker's leaf; empty if the leaf is gone.
	Queue   string
	Outcome Outcome
	Node    string
	Victims []Victim
	// Contested are the types that the asker lacks, on the node or, for a refusal, on any
	// node.
	Contested []string
	// Changes is what law 2 judged: what is taken from queues that guarantee it. For a
	// refusal by law 2, these are the queues that it protected, without what would have
	// been taken.
	Changes []Change
	// Asks is what law 4 judged: the queues of the asker's side that guarantee a
	// contested type. For a refusal by law 4, these are the queues that are not below
	// their guarantee.
	Asks []Change
	// Loses is what law 5 judged: the queues that lose victims, in the contested types in
	// which they are over their guarantee. For a refusal by law 5, these are the queues
	// that are not over it.
	Loses []Change
	// Fence is the path of the fence root (law 7).
	Fence string
	// OverMax are the queues over their max (law 7).
	OverMax []Excess
	// Together says what the asker's group lacks. It is set for a refusal by law 2 or 4
	// that applies to the group and not to the asker alone.
	Together *Together
	// Higher is, for a refusal by law 6, the pod with the smallest priority above the
	// asker's.
	Higher *Victim
	// Rejected counts the pods that were considered and could not be victims, by rule.
	Rejected []Rejection
	// Stopped is the rule that stopped the asker itself; empty for none.
	Stopped Rule
	// OptedOut counts the victims that had opted out: without them no plan was lawful
	// (law 1).
	OptedOut int
	// Violations counts the victims beyond what PodDisruptionBudgets allow.
	Violations int64
	// Exhaustive is false if not every choice was considered.
	Exhaustive bool
	// FitsCalls is the number of calls of the real filters.
	FitsCalls int
	// Named are, for a refusal, the paths of the queues in which a change could lift it.
	Named []string
	// More is true for a refusal if the filters could not be run for all nodes: nodes
	// that are not in Unfit are left for another plan.
	More bool
	// Unfit are the nodes, by name, that the filters reject even without all pods that
	// may be preempted.
	Unfit []string
	// Objections is what extenders of the scheduler objected to nodes, for people.
	Objections string
}

func (pl *planner) decision(o Outcome) Decision {
	d := Decision{Ask: pl.ask, Outcome: o, More: o == Refuse && pl.more, Exhaustive: pl.exhaustive, FitsCalls: pl.fits, Unfit: slices.Sorted(slices.Values(pl.unfit))}
	if len(pl.path) > 0 {
		d.Queue, d.Fence = pl.path[len(pl.path)-1].queue.Path, pl.path[pl.fence].queue.Path
	}
	for why, pods := range pl.rejected {
		if pods > 0 {
			d.Rejected = append(d.Rejected, Rejection{ruleOf[why], pods})
		}
	}
	slices.SortFunc(d.Rejected, func(a, b Rejection) int { return cmp.Compare(a.Rule, b.Rule) })
	return d
}

// refuse is the decision that no plan was found. If no rule stopped the asker itself, it
// gives the rule that came last before a plan: the filters, law 2 on whole sets, too few
// candidates, or the law that excluded most pods.
func (pl *planner) refuse(by Rule) Decision {
	d := pl.decision(Refuse)
	switch {
	case by != "":
		d.Stopped = by
	case pl.fits > 0:
		d.Stopped = RuleFilters
	case pl.blocked:
		d.Stopped = Law2
	case pl.tooFew || len(pl.later) > 0:
		d.Stopped = RuleTooLittle
	case len(d.Rejected) > 0:
		d.Stopped = slices.MaxFunc(d.Rejected, func(a, b Rejection) int {
			return cmp.Or(
				cmp.Compare(rankOf(telling(a.Rule)), rankOf(telling(b.Rule))),
				cmp.Compare(a.Pods, b.Pods), cmp.Compare(b.Rule, a.Rule))
		}).Rule
	}
	pl.explain(&d)
	return d
}

// telling reports whether a rule says more than that some pods are never preempted.
func telling(r Rule) bool {
	return slices.Contains([]Rule{Law2, Law4, Law5, Law6, Law7, RuleDisabled}, r)
}

func (pl *planner) accept(p *plan) Decision {
	d := pl.decision(Preempt)
	if len(p.victims) == 0 {
		d.Outcome = Wait
	}
	d.Node = p.node.Name
	d.OptedOut, d.Violations = p.harm.optedOut, p.harm.violations
	for _, t := range p.stance.contested {
		d.Contested = append(d.Contested, pl.world.Types[t])
	}
	for _, c := range p.victims {
		v := pl.victim(c.pod, c.node, c.route)
		for _, t := range p.stance.contested {
			if c.request.at(t) > 0 {
				v.Uses = append(v.Uses, pl.world.Types[t])
			}
		}
		d.Victims = append(d.Victims, v)
	}
	slices.SortFunc(d.Victims, func(a, b Victim) int { return cmp.Compare(a.UID, b.UID) })
	d.Changes, d.Asks, d.Loses, d.OverMax = pl.changes(p), pl.asks(p), pl.loses(p), pl.excesses(p)
	return d
}

// String renders the decision for people in one line.
func (d Decision) String() string { return d.Ask.name() + ": " + d.Sentence() }
