package output

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Topic is a set of events that a reader follows.
type Topic uint8

// The topics.
const (
	// Facts are what happened to pods, applications, nodes and queues since Start.
	Facts Topic = iota
	// Decisions are the decisions about askers, and their outcome: events of kind
	// Decided.
	Decisions
	// Topics is the number of topics.
	Topics
)

// EventKind is the kind of an event.
type EventKind uint8

// The comments list the fields of an [Event] that are set in addition to Kind and At.
const (
	// AppAdded and AppRemoved: an application got its queue, or has no pods left
	// there. App.
	AppAdded EventKind = iota
	AppRemoved
	// AppRuns: the first pod of an application was bound. App.
	AppRuns
	// AppCompleted: the last pod of an application is gone. App.
	AppCompleted
	// AppRefused: a pod got no queue. Pod, App without Queue, Amount, Text.
	AppRefused
	// Asked and AskGone: a pod without a node joined its application; such a pod left it,
	// with or without a node. Pod, App, Amount.
	Asked
	AskGone
	// Allocated and Released: a pod of a queue got a node, or stopped using it. Pod, App,
	// Node, Amount; Preempted for a victim.
	Allocated
	Released
	// Resized: the usage of a pod of a queue changed. App; Amount is the difference.
	Resized
	// ForeignCame and ForeignWent: like Allocated and Released, for a pod of no queue.
	// Pod, Node, Amount; Text is static or default.
	ForeignCame
	ForeignWent
	// Chosen: a pod is deleted as a victim. Pod, App if it has one, Amount, Text.
	Chosen
	// Told: users were told why a pod waits. Pod, App if it has one, Amount, Text.
	Told
	// HoldBegan and HoldEnded: a hold of a node for a pod. Pod, Node, Amount.
	HoldBegan
	HoldEnded
	// NodeCame, NodeChanged and NodeWent: a node was added, changed its allocatable, or
	// was removed. Node; Amount is its allocatable.
	NodeCame
	NodeChanged
	NodeWent
	// CapacityChanged: the sum of the allocatable of all nodes changed. Amount.
	CapacityChanged
	// NodeOpened and NodeClosed: a node became schedulable or unschedulable. Node.
	NodeOpened
	NodeClosed
	// QueuesCame and QueuesWent: queues came, went or changed their settings. Queues is
	// the tree after the change. QueuesCame is the first event of its change, and
	// QueuesWent the last.
	QueuesCame
	QueuesWent
	// Decided is a decision about an asker, or its outcome. Step. It is the only kind
	// of the topic Decisions.
	Decided
)

// AppName identifies an application with its queue and owner. Immutable.
type AppName struct {
	Namespace, ID, Queue string
	// User and Group are charged for the application; empty for none.
	User, Group string
}

// Event is something that happened.
type Event struct {
	At        time.Time // of the change; several events may have the same
	Kind      EventKind
	Preempted bool
	Pod       types.UID
	App       *AppName
	Node      string
	Amount    resources.Vector
	Text      string
	Queues    *queues.Snapshot
	Step      *Step
}
