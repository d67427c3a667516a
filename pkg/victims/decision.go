package victims

import (
	"cmp"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Outcome is what a decision comes to.
type Outcome string

// The outcomes. Wait: the asker fits the node once pods that leave anyway are gone, so
// there are no victims. Preempt: the victims go. Refuse: there is no plan. Hold is an
// outcome of package required only: the node is held, and no pod goes.
const (
	Wait    Outcome = "wait"
	Hold    Outcome = "hold"
	Preempt Outcome = "preempt"
	Refuse  Outcome = "refuse"
)

// Victim is a pod that is to go.
type Victim struct {
	*Pod
	// Node is where it is.
	Node string
	// Queue is the path of its leaf, Common that of the lowest queue that it shares
	// with the asker.
	Queue, Common string
	// Uses are the contested types that it uses.
	Uses []string
	// Priority is its effective priority strictly below the fence root.
	Priority int64
	// Below and AskBelow are its own and the asker's effective priority strictly
	// below the common queue, as law 6 judged them.
	Below, AskBelow int64
}

// Change is what a decision does to one queue in one type, as laws 2, 4 and 5
// judge it: of what is guaranteed, Used is used before, and Used - Taken + Asked
// after.
type Change struct {
	Queue string
	Type  string
	// Used is used before; on the asker's path with what is arriving.
	Used, Taken, Asked, Guaranteed resources.Amount
	// Ask is true for the queues of the asker's path.
	Ask bool
}

// Excess is a queue whose max the asker would exceed (law 7): Used, with what is
// arriving, and Asked are more than Max. Taken is what the victims free there.
type Excess struct {
	Queue, Type             string
	Used, Asked, Taken, Max resources.Amount
}

// Rejection counts the pods that a rule excluded.
type Rejection struct {
	Rule Rule
	Pods int
}

// Decision is the outcome of a plan, with the numbers it was judged by.
type Decision struct {
	Ask *Ask
	// Queue is the path of its leaf; empty when that is gone.
	Queue   string
	Outcome Outcome
	Node    string
	Victims []Victim
	// Contested are the types that the asker lacks, on the node or, of a refusal,
	// on any.
	Contested []string
	// Changes is what law 2 judged: what is taken from queues that guarantee it. Of
	// a refusal by law 2, the queues it protected, without what was to be taken.
	Changes []Change
	// Asks is what law 4 judged: the queues of the asker's side that guarantee a
	// contested type. Of a refusal by law 4, those that are not below it.
	Asks []Change
	// Loses is what law 5 judged: the queues that lose, in the contested types in
	// which they are over their guarantee. Of a refusal by law 5, the queues that
	// are not.
	Loses []Change
	// Fence is the path of the fence root (law 7).
	Fence string
	// OverMax are the queues over their max (law 7).
	OverMax []Excess
	// Together is, of a refusal by law 2 or 4 that is for the asker's group, and not for the
	// asker alone, what the group lacks.
	Together *Together
	// Higher is, of a refusal by law 6, the pod of the least priority above the
	// asker's.
	Higher *Victim
	// Rejected are the pods looked at that could not be victims, by rule.
	Rejected []Rejection
	// Stopped is the rule that stopped the asker itself; empty when none did.
	Stopped Rule
	// OptedOut counts victims that had opted out: nothing lawful was possible
	// without them (law 1).
	OptedOut int
	// Violations counts victims beyond what PodDisruptionBudgets allow.
	Violations int64
	// Exhaustive is false when not every choice was weighed.
	Exhaustive bool
	// FitsCalls is how often the real filters were asked.
	FitsCalls int
	// Named are, of a refusal, the paths of the queues whose change could lift it.
	Named []string
	// More is true of a refusal where they could not be asked about all nodes: those
	// that are not in Unfit are for another plan.
	More bool
	// Unfit are the nodes, by name, where they refuse even once all are gone that
	// may go.
	Unfit []string
	// Objections is what extenders of the scheduler said against nodes, for people.
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

// refuse is the decision that nothing is done. Where no rule stopped the asker
// itself, it is the one that came last before a plan: the filters, law 2 on
// whole sets, too few candidates, or the law that excluded most pods.
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

// telling tells whether a rule says more than that some pods are not for preemption.
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

// String renders the decision in one line for people.
func (d Decision) String() string { return d.Ask.name() + ": " + d.Sentence() }
