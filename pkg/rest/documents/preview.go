package documents

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// ManifestError says what is wrong with a manifest, naming the fields.
type ManifestError struct{ Text string }

// Error says so.
func (e *ManifestError) Error() string { return e.Text }

// The outcomes of a preview.
const (
	// PreviewFits: a node has room, and no quota is in the way.
	PreviewFits = "fits"
	// PreviewWaits: it would wait, and no pod would be made to leave.
	PreviewWaits = "waits"
	// PreviewPreempts: others would be made to leave for it.
	PreviewPreempts = "preempts"
)

// Preview is what would become of a pod as things are.
type Preview struct {
	objects.Ref
	// Outcome is fits, waits or preempts; Summary says it in a sentence.
	Outcome string `json:"outcome"`
	Summary string `json:"summary"`
	// Reason is why it would wait, or why it would not run without others' leaving;
	// ToDo what would have to change.
	Reason *Reason  `json:"reason,omitempty"`
	ToDo   []string `json:"toDo,omitempty"`

	Profile  string                      `json:"profile"`
	Request  map[string]resources.Amount `json:"request,omitempty"`
	Priority int32                       `json:"priority"`
	Queue    *ExplainedQueue             `json:"queue,omitempty"`
	// Makes is true where its queue would be made.
	Makes  bool         `json:"queueWouldBeMade,omitempty"`
	Quota  []QueueQuota `json:"quota,omitempty"`
	Limits *Reason      `json:"limits,omitempty"`
	// Waiting counts the pods of all queues that wait for their turn and may run.
	Waiting int `json:"podsInOrder"`

	Nodes *PreviewNodes `json:"nodes,omitempty"`
	// Node is the one where it would run: one of those that fit, which one is for the
	// scores to say; or the one that would be held for it.
	Node string `json:"node,omitempty"`
	// After is how long the pod would have to wait first (preemption.delay of its queue).
	After string `json:"preemptsAfter,omitempty"`
	// Decision is the plan that would be made, with victims and the numbers of the
	// laws; nil where none would be.
	Decision *record.Decision `json:"decision,omitempty"`
	// NotLookedAt is what might make it otherwise.
	NotLookedAt []string `json:"notLookedAt"`
}

// PreviewNodes counts nodes by what the filters said of them.
type PreviewNodes struct {
	All  int `json:"all"`
	Fit  int `json:"fit"`
	Held int `json:"heldForOthers,omitempty"`
	// Refused counts the others by what was missing.
	Refused map[string]int `json:"refused,omitempty"`
}

// Placed fills in what a dry run says of the pod's queue, and what each queue of the path
// says.
func (p *Preview) Placed(r *store.DryRun, request resources.Vector) {
	p.Request, p.Waiting, p.Makes, p.Limits = request.Map(), r.Waiting, r.Placement.Create, reasonOf(r.Limited)
	p.Queue = &ExplainedQueue{
		Path: r.Placement.Path, Application: r.Identity.Application, User: r.Identity.User.Name, Groups: r.Identity.User.Groups,
		Named: r.Identity.Queue, FoundBy: r.Placement.Rule, Rules: stepsOf(r.Placement.Trace),
	}
	if r.Joins {
		p.Queue.Note = "its application has pods already, and keeps their queue"
	}
	if r.Queues != nil && r.Plan.Ask != nil {
		p.Quota = quotaOf(r.Queues, r.Snapshot, r.Leaf, r.Request, queues.OnArriving, true)
	}
}

// Because fills in why; none for no reason.
func (p *Preview) Because(list ...reasons.Reason) {
	var shown []*Reason
	for _, r := range list {
		r := reasonOf(r)
		if r == nil {
			continue
		}
		if r.Code == string(reasons.NoNodeFits) { // the table speaks of events of a pod that is there
			r.Meaning, r.Remedy = "No node can take the pod as things are.", "Make room on a node that suits the pod, add one, or ask for less."
		}
		shown = append(shown, r)
	}
	if len(shown) > 0 {
		p.Reason = shown[0]
	}
	p.ToDo = remedies(shown...)
}

const (
	// PreviewBytes is how large a manifest may be.
	PreviewBytes = 256 << 10
	// PreviewTime is how long a preview may take. Ordinary ones take a tenth of a second
	// at 1,000 nodes; a manifest with thousands of terms could keep a core for minutes.
	PreviewTime = 20 * time.Second
)
