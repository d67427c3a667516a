package record

import (
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/output"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Kind says which rules were applied.
type Kind string

// The kinds. Queue: a queue takes back its guarantee (laws 1 to 7). NodeBound: a pod needs
// the only node that it can run on (D1 to D8).
const (
	Queue     Kind = "queue"
	NodeBound Kind = "required"
)

// KindOf returns the kind of a hold or decision.
func KindOf(nodeBound bool) Kind {
	if nodeBound {
		return NodeBound
	}
	return Queue
}

// Decision is a decision about one asker at one moment, with the numbers that it is based on
// and the stages that followed. Immutable. Amounts are in base units, as in package
// resources.
type Decision struct {
	// ID is unique; it is the UID of the asker if the hold of an earlier process has none.
	ID string `json:"id"`
	// Time is when it was first made, Last when it was last made with the same outcome
	// and reason, and Times how often it was made.
	Time  time.Time   `json:"time"`
	Last  time.Time   `json:"last"`
	Times int         `json:"times"`
	Asker objects.Ref `json:"asker"`
	// Queue is the asker's leaf; empty for a pod of no queue.
	Queue string `json:"queue,omitempty"`
	Kind  Kind   `json:"kind"`
	// Outcome is preempt (the victims go), hold (a node is held and no pod goes) or
	// refuse (nothing is done).
	Outcome planner.Outcome `json:"outcome"`
	// TakenUp is true where the decision was made by an earlier process: only its node
	// and its victims are known.
	TakenUp bool `json:"takenUp,omitempty"`
	// Node is the node that is held, or that a refused plan would have held.
	Node string `json:"node,omitempty"`
	// Reason and Message are the reason and the sentence that users see.
	Reason  reasons.Code `json:"reason,omitempty"`
	Message string       `json:"message"`
	// Contested are the types that the asker lacks.
	Contested []string `json:"contested,omitempty"`
	Victims   []Victim `json:"victims,omitempty"`
	// Numbers are the amounts that the laws compared.
	Numbers []Number `json:"numbers,omitempty"`
	// Rejected counts the pods that could not be victims, by rule.
	Rejected []planner.Rejection `json:"rejected,omitempty"`
	// OptedOut counts victims that had opted out, Violations disruptions beyond what
	// PodDisruptionBudgets allow.
	OptedOut   int   `json:"optedOut,omitempty"`
	Violations int64 `json:"budgetViolations,omitempty"`
	Choice
	// Stages are what happened to it, in order.
	Stages []Stage `json:"stages"`
}

// Choice is how thorough the choice of a decision was.
type Choice struct {
	// Unfit are nodes that the filters refuse whichever pods go.
	Unfit []string `json:"unfitNodes,omitempty"`
	// FilterCalls is how often the real filters were called. Incomplete is true if some
	// choices were not compared.
	FilterCalls int  `json:"filterCalls"`
	Incomplete  bool `json:"incomplete,omitempty"`
}

// Victim is a pod that the decision preempts.
type Victim struct {
	objects.Ref
	// Queue is its leaf; empty if it has none, or if the leaf is not known any more.
	Queue    string                      `json:"queue,omitempty"`
	Node     string                      `json:"node,omitempty"`
	Requests map[string]resources.Amount `json:"requests,omitempty"`
	Priority int32                       `json:"priority"`
	// Effective and AskerEffective are the priorities that law 6 compared.
	Effective      *int64 `json:"effectivePriority,omitempty"`
	AskerEffective *int64 `json:"askerEffectivePriority,omitempty"`
	OptedOut       bool   `json:"optedOut,omitempty"`
	Originator     bool   `json:"originator,omitempty"`
	// Class is its class of victims (D5), in a decision of kind required.
	Class string `json:"class,omitempty"`
	// Note is the message on the victim.
	Note string `json:"note,omitempty"`
}

// VictimOf returns the victim with a UID; nil if the pod is not a victim.
func (d *Decision) VictimOf(pod types.UID) *Victim {
	for i := range d.Victims {
		if d.Victims[i].UID == pod {
			return &d.Victims[i]
		}
	}
	return nil
}

// chose tells whether a pod with a name or UID is a victim. It returns true for an empty name.
func (d *Decision) chose(pod string) bool {
	return pod == "" || slices.ContainsFunc(d.Victims, func(v Victim) bool { return v.Name == pod || string(v.UID) == pod })
}

// Number has the amounts that one rule compared: one type of one queue or, for D7, of the
// node. An absent amount plays no part.
type Number struct {
	// Law is "2", "4", "5", "7" or "D7".
	Law      string `json:"law"`
	Queue    string `json:"queue,omitempty"`
	Resource string `json:"resource"`
	// Used is the usage before, Taken the amount that the victims free, Asked the amount
	// that the asker adds.
	Used       *resources.Amount `json:"used,omitempty"`
	Taken      *resources.Amount `json:"taken,omitempty"`
	Asked      *resources.Amount `json:"asked,omitempty"`
	Guaranteed *resources.Amount `json:"guaranteed,omitempty"`
	Max        *resources.Amount `json:"max,omitempty"`
	// Free is the free amount of the node, Short the missing amount.
	Free  *resources.Amount `json:"free,omitempty"`
	Short *resources.Amount `json:"short,omitempty"`
}

// Stage is a step in the life of a decision, with the name of its output.StepKind. The last stage
// of a hold is named after the end of the hold: bound, deleted, superseded, node gone, node
// unschedulable, timed out or given up.
type Stage struct {
	Stage   string       `json:"stage"`
	Time    time.Time    `json:"time"`
	Reason  reasons.Code `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
}

// DecisionOf returns the decision of a step, without stages. The step may be one that is not
// taken, as in a preview.
func DecisionOf(s *output.Step) *Decision {
	d := &Decision{
		ID: s.Hold.Decision, Time: s.At, Last: s.At, Times: 1, Asker: s.Ref, Queue: s.Queue, Kind: Queue,
		Node: s.Hold.Node, Reason: s.Reason.Code, Message: s.Reason.Text, Stages: []Stage{},
	}
	switch {
	case s.Decision != nil:
		d.addQueue(s.Decision, s.Types)
	case s.NodeBoundDecision != nil:
		d.addNodeBound(s.NodeBoundDecision, s.Types)
	case s.Hold.NodeBound:
		d.Kind = NodeBound
	}
	switch {
	case s.Kind == output.StepRefused:
		d.Outcome, d.Victims, d.OptedOut, d.Violations, d.Message = planner.Refuse, nil, 0, 0, s.Reason.Text
	case len(d.Victims) > 0, s.Kind == output.StepTakenUp && len(s.Hold.Chosen) > 0:
		d.Outcome = planner.Preempt
	default:
		d.Outcome = planner.Hold
	}
	return d
}

// counts returns rejections without the names of pods: there is no bound on these.
func counts(all []planner.Rejection) []planner.Rejection {
	out := slices.Clone(all)
	for i := range out {
		out[i].Named = nil
	}
	return out
}

// addQueue adds the decision of queue preemption.
func (d *Decision) addQueue(q *planner.Decision, types []string) {
	d.Node, d.Contested, d.OptedOut, d.Violations = q.Node, q.Contested, q.OptedOut, q.Violations
	d.Unfit, d.FilterCalls, d.Incomplete, d.Rejected = q.Unfit, q.FitsCalls, !q.Exhaustive, counts(q.Rejected)
	if q.Queue != "" {
		d.Queue = q.Queue
	}
	d.Message = q.Sentence()
	for i := range q.Victims {
		v := &q.Victims[i]
		d.Victims = append(d.Victims, Victim{
			Ref: victimRef(v.Pod), Queue: v.Queue, Node: v.Node, Requests: amounts(v.Request, types), Priority: v.Pod.Priority,
			Effective: &v.Below, AskerEffective: &v.AskBelow, OptedOut: v.OptedOut, Originator: v.Originator, Note: q.VictimNote(i),
		})
	}
	d.addChanges("2", q.Changes)
	d.addChanges("4", q.Asks)
	d.addChanges("5", q.Loses)
	for _, x := range q.OverMax {
		d.Numbers = append(d.Numbers, Number{
			Law: "7", Queue: x.Queue, Resource: x.Type, Used: new(x.Used), Asked: new(x.Asked), Taken: new(x.Taken), Max: new(x.Max),
		})
	}
}

func (d *Decision) addChanges(law string, changes []planner.Change) {
	for _, c := range changes {
		d.Numbers = append(d.Numbers, Number{
			Law: law, Queue: c.Queue, Resource: c.Type,
			Used: new(c.Used), Taken: new(c.Taken), Asked: new(c.Asked), Guaranteed: new(c.Guaranteed),
		})
	}
}

// addNodeBound adds the decision about the only node that a pod can run on.
func (d *Decision) addNodeBound(r *daemonset.Decision, types []string) {
	d.Kind, d.Node, d.OptedOut, d.Violations, d.FilterCalls = NodeBound, r.Node, r.OptedOut, r.Violations, r.FitsCalls
	d.Message, d.Rejected = r.Sentence(), r.Rejected
	for i := range r.Victims {
		v := &r.Victims[i]
		d.Victims = append(d.Victims, Victim{
			Ref: victimRef(v.Pod), Node: r.Node, Requests: amounts(v.Request, types), Priority: v.Priority,
			OptedOut: v.OptedOut, Originator: v.Originator, Class: v.Class.String(), Note: r.VictimNote(i),
		})
	}
	for _, n := range r.Need {
		d.Numbers = append(d.Numbers, Number{Law: "D7", Resource: n.Type, Asked: new(n.Request), Free: new(n.Free), Short: new(n.Short)})
		if n.Short > 0 {
			d.Contested = append(d.Contested, n.Type)
		}
	}
}

func victimRef(p *planner.Pod) objects.Ref {
	return objects.Ref{Namespace: p.Namespace, Name: p.Name, UID: types.UID(p.UID)}
}

// amounts names the types of amounts.
func amounts(a planner.Amounts, names []string) map[string]resources.Amount {
	out := make(map[string]resources.Amount, len(a))
	for t, amount := range a {
		if amount != 0 && t < len(names) {
			out[names[t]] = resources.Amount(amount)
		}
	}
	return out
}
