package planner

import (
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Outcome is the result of a decision.
type Outcome string

// The outcomes. Wait: the asker fits the node once leaving pods are gone, so there are no
// victims. Preempt: the victims are preempted. Refuse: there is no plan. Hold is an
// outcome of package daemonset only: the node is held, and no pod is preempted.
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
	Rule Rule `json:"rule"`
	Pods int  `json:"pods"`
	// Named are the pods with their nodes; for RuleLingering, with grace periods, and for
	// RuleRefused, with the reasons, in a refusal only. The sentence has the first of them.
	Named []string `json:"-"`
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
	// GroupShortage says what the asker's group lacks. It is set for a refusal by law 2 or 4
	// that applies to the group and not to the asker alone.
	GroupShortage *GroupShortage
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
	FilterResults
	// Named are, for a refusal, the paths of the queues in which a change could lift it.
	Named []string
}

// FilterResults is what the real filters returned for a plan.
type FilterResults struct {
	// FitsCalls is the number of calls of the real filters.
	FitsCalls int
	// More is true for a refusal if the filters could not be run for all nodes: nodes
	// that are not in Unfit are left for another plan.
	More bool
	// Unfit are the nodes, by name, that the filters reject even without all pods that
	// may be preempted.
	Unfit []string
	// Objections is what extenders of the scheduler objected to nodes, for people.
	Objections string
}

// String renders the decision for people in one line.
func (d Decision) String() string { return d.Ask.name() + ": " + d.Sentence() }

// Chosen returns the victims as pods; empty for none.
func (d *Decision) Chosen() []*Pod {
	out := make([]*Pod, len(d.Victims))
	for i := range d.Victims {
		out[i] = d.Victims[i].Pod
	}
	return out
}
