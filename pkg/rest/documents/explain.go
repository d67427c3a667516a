package documents

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Explanation is the answer to "why does this pod not run, and what would have to
// change". Amounts are in the units of /ws/v1, times as Kubernetes writes them.
type Explanation struct {
	objects.Ref
	// State is one of the constants in explained.go; Summary says it in a sentence.
	State   string `json:"state"`
	Summary string `json:"summary"`
	// Reason is why it does not run, or leaves; nil where it runs or is being tried.
	Reason *Reason `json:"reason,omitempty"`
	// ToDo is what would have to change, a sentence per reason.
	ToDo []string `json:"toDo,omitempty"`

	Created      time.Time                   `json:"created,omitzero"`
	Node         string                      `json:"node,omitempty"`
	RequiredNode string                      `json:"requiredNode,omitempty"`
	Priority     int32                       `json:"priority"`
	Request      map[string]resources.Amount `json:"request,omitempty"`
	// Attempts is how many of its cycles failed, LastAttempt when the last one did.
	// NextAttempt is when a pod that backs off is tried again at the latest.
	Attempts    int       `json:"attempts,omitempty"`
	LastAttempt time.Time `json:"lastAttempt,omitzero"`
	NextAttempt time.Time `json:"nextAttempt,omitzero"`
	// Foreign is "static" or "default" for a pod of another scheduler; empty for others.
	Foreign string `json:"foreign,omitempty"`
	// Standby is true in the answer of a standby: what the leader tried and decided is not
	// in it.
	Standby bool `json:"standby,omitempty"`

	// Queue is nil for a foreign pod; Quota and Order are for pods that have one.
	Queue *ExplainedQueue `json:"queue,omitempty"`
	Quota []QueueQuota    `json:"quota,omitempty"`
	// Limits is why a limit of users, groups or applications refuses the pod.
	Limits *Reason         `json:"limits,omitempty"`
	Order  *ExplainedOrder `json:"order,omitempty"`
	Window *Window         `json:"window,omitempty"`
	Hold   *ExplainedHold  `json:"hold,omitempty"`
	Room   *ExplainedRoom  `json:"makingRoom,omitempty"`
	// MakesRoomFor is the pod for which it is to go.
	MakesRoomFor *objects.Ref `json:"makesRoomFor,omitempty"`
	// ChosenBy is the decision by which it is to go; nil where that was forgotten.
	ChosenBy *record.Decision `json:"chosenBy,omitempty"`
	// LastDecision and LastHold are what was decided about it last, and its last hold
	// that is over; nil for none since the process began, or where that was forgotten.
	LastDecision *record.Decision  `json:"lastDecision,omitempty"`
	LastHold     *record.EndedHold `json:"lastHold,omitempty"`
}

// ExplainedQueue is a pod's queue and how it was found.
type ExplainedQueue struct {
	// Path is empty for a pod without a queue.
	Path        string   `json:"path,omitempty"`
	Application string   `json:"application"`
	User        string   `json:"user"`
	Groups      []string `json:"groups,omitempty"`
	// LimitedGroup is the group with the limits that apply.
	LimitedGroup string `json:"limitedGroup,omitempty"`
	// Named is the queue as the pod itself names it.
	Named string `json:"named,omitempty"`
	// FoundBy is the rule that gave the queue, or would give it now; Rules are all that were
	// asked, in order.
	FoundBy string        `json:"foundBy,omitempty"`
	Rules   []PlacingRule `json:"rules,omitempty"`
	// Note says where the rules of now would give another queue.
	Note string `json:"note,omitempty"`
}

// PlacingRule is a rule that was asked for a pod's queue.
type PlacingRule struct {
	Rule  string `json:"rule"`
	Queue string `json:"queue,omitempty"`
	// Code and Message say why its queue was not taken; empty for the one that was.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// ExplainedOrder is what is before a pod in the order of now.
type ExplainedOrder struct {
	// Waits is false for a pod that is not in the order: a quota blocks it, or it
	// waits for pods like it. Only Next is said then.
	Waits bool `json:"waits"`
	// PodsBefore are the pods of its leaf before it, of so many applications; at
	// least so many where AtLeast. First are the first of them.
	PodsBefore         int           `json:"podsBefore,omitempty"`
	ApplicationsBefore int           `json:"applicationsBefore,omitempty"`
	AtLeast            bool          `json:"atLeast,omitempty"`
	First              []objects.Ref `json:"first,omitempty"`
	// InLeaf and InAll count the pods in the order; Next is the first of all.
	InLeaf int          `json:"waitInQueue,omitempty"`
	InAll  int          `json:"waitInCluster,omitempty"`
	Next   *objects.Ref `json:"next,omitempty"`
	// Queues are those of the path, from below root, each among its siblings.
	Queues []QueuePlace `json:"queues,omitempty"`
}

// QueuePlace is the place of a queue among the siblings that have pods in the order.
type QueuePlace struct {
	Queue string `json:"queue"`
	// Place is 1 for the first of Of; more where AtLeast. Before are the siblings before it.
	Place   int      `json:"place"`
	Of      int      `json:"of"`
	AtLeast bool     `json:"atLeast,omitempty"`
	Before  []string `json:"before,omitempty"`
}

// Window is how many pods the scheduler is given at a time, and how many it has.
type Window struct {
	Size  int `json:"size"`
	Taken int `json:"taken"`
}

// ExplainedHold is the node that a pod holds.
type ExplainedHold struct {
	Node  string    `json:"node"`
	Since time.Time `json:"since,omitzero"`
	// Required is true where the pod can run on no other node; Committed from the
	// moment before the first pod was deleted for it.
	Required  bool `json:"required"`
	Committed bool `json:"committed"`
	// Decision is the name of the decision behind it.
	Decision string `json:"decision,omitempty"`
	// WaitsFor are the pods that have to leave yet, ClearSince when the last one had.
	WaitsFor   []objects.Ref `json:"waitsFor,omitempty"`
	ClearSince time.Time     `json:"clearSince,omitzero"`
	Note       string        `json:"note,omitempty"`
}

// ExplainedRoom is what stands between a pod and the preemption of others.
type ExplainedRoom struct {
	// Reason is why no plan is made now; nil where one may be as soon as the pod
	// finds no node.
	Reason *Reason `json:"reason,omitempty"`
	// LastRefusal is what the last plan came to.
	LastRefusal *Reason   `json:"lastRefusal,omitempty"`
	LastPlan    time.Time `json:"lastPlan,omitzero"`
	DelayEnds   time.Time `json:"delayEnds,omitzero"`
	NextLook    time.Time `json:"nextLook,omitzero"`
}

// PodNotFound is the message of the problem that the scheduler knows no such pod.
const PodNotFound = "Pod not found"

// Chosen adds the decision that chose the pod as a victim. Its sentence about the pod
// names the asker and the rules; a decision of an earlier process has no sentence.
func (x *Explanation) Chosen(d *record.Decision, uid types.UID) {
	if d == nil || d.Asker.UID != x.MakesRoomFor.UID {
		return
	}
	x.ChosenBy = d
	if v := d.VictimOf(uid); v.Note != "" && x.Reason != nil {
		x.Reason.Message = v.Note
		x.Summary = fmt.Sprintf("Pod %s/%s: %s: %s", x.Namespace, x.Name, x.State, v.Note)
	}
}
