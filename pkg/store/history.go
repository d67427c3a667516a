package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
)

// The history is what happened, in order and with times; the current state (register.go)
// does not have that. A method adds an event in a few fields, without text and without
// lookups, and the end of the change adds the time. Readers take the events in small
// portions. Package eventlog turns facts into text; packages record and metrics follow the
// decisions.

// eventsKept is how many events are kept for readers, which come several times a second.
const eventsKept = 1 << 16

// Topic is a set of events that a reader follows.
type Topic = history.Topic

// The topics.
const (
	// Facts are what happened to pods, applications, nodes and queues since Start.
	Facts = history.Facts
	// Decisions are the decisions about preemptors, and their outcome: events of kind
	// Decided.
	Decisions = history.Decisions
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
	// Decided is a decision about a preemptor, or its outcome. Step. It is the only kind
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

func newEvents() history.Events[Event] {
	l := history.NewEvents(eventsKept, func(e *Event, now time.Time) { e.At = now })
	l.Pause(Facts) // objects that exist before Start cause no events
	return l
}

// EventReader reads the events of one topic. It is for one goroutine at a time.
type EventReader struct {
	s      *Store
	reader *history.Reader
}

// Follow returns a reader of the events of a topic from now on, or from Start on for
// Facts. The store keeps events until all readers have taken them, up to a limit.
func (s *Store) Follow(t Topic) *EventReader {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &EventReader{s, s.history.events.Follow(t)}
}

// Ready delivers a value when there are events to take.
func (r *EventReader) Ready() <-chan struct{} { return r.reader.Ready() }

// Take appends the next events to a list, in order, and returns how many were lost to the
// limit since the last call. It appends a few thousand events at most, so call it until it
// appends none.
func (r *EventReader) Take(into []Event) (events []Event, lost int) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.s.history.events.Take(r.reader, into)
}

// addFact adds a fact to the current change.
func (h *storeHistory) addFact(e Event) { h.events.Add(Facts, e) }

// end ends the current change. tree is the generation of the queue tree, and queues
// returns a snapshot of it.
func (h *storeHistory) end(tree uint64, queues func() *queues.Snapshot, now time.Time) {
	h.stamp(now)
	if tree != h.treeNoted && h.events.Wants(Facts) {
		h.treeNoted = tree
		h.events.AddFirst(Facts, Event{Kind: QueuesCame, Queues: queues()})
		h.addFact(Event{Kind: QueuesWent, Queues: queues()})
	}
	h.events.EndChange(now)
}

// rename updates the name of an application in the history, with the path of its queue.
func (h *storeHistory) rename(a *app, queue string) {
	n := AppName{Namespace: a.Name.Namespace, ID: a.Name.ID, Queue: queue, User: a.Owner.User, Group: a.Owner.Group}
	if a.told == nil || *a.told != n {
		a.told = &n
	}
}

// noteApp records an event of an application.
func (h *storeHistory) noteApp(kind EventKind, a *app) { h.addFact(Event{Kind: kind, App: a.told}) }

// notePod records an event of a pod of a queue.
func (h *storeHistory) notePod(kind EventKind, p *pod) {
	h.addFact(Event{Kind: kind, Pod: p.UID, App: p.app.told, Node: p.Node, Amount: p.Amount(), Preempted: p.chosenBy != ""})
}

// noteNode records an event of a node, and the new capacity of the cluster.
func (h *storeHistory) noteNode(kind EventKind, n *cache.Node, capacity resources.Vector) {
	h.addFact(Event{Kind: kind, Node: n.Name(), Amount: n.Allocatable()})
	h.addFact(Event{Kind: CapacityChanged, Amount: capacity})
}

// noteForeign records that a foreign pod came to its node or leaves it.
func (h *storeHistory) noteForeign(kind EventKind, p *pod) {
	e := Event{Kind: kind, Pod: p.UID, Node: p.On().Name(), Amount: p.Uses(), Text: "default"}
	if p.Static {
		e.Text = "static"
	}
	h.addFact(e)
}

// noteSaid records what users are told of a pod: that it is preempted, or why it waits.
func (h *storeHistory) noteSaid(kind EventKind, p *pod, text string) {
	e := Event{Kind: kind, Pod: p.UID, Amount: p.Request, Text: text}
	if p.app != nil {
		e.App = p.app.told
	}
	h.addFact(e)
}

// noteHold records that a hold began or ended.
func (h *storeHistory) noteHold(kind EventKind, hold *reservations.Hold) {
	h.addFact(Event{Kind: kind, Pod: hold.Asker, Node: hold.Node, Amount: hold.Request})
}

// refuse sets the reason why a pod has no queue.
func (s *Store) refuse(p *pod, why reasons.Reason) {
	if s.history.events.Wants(Facts) && why.Code != p.reason.Code {
		wanted, _ := placement.Identify(placementOf(p.Pod), s.options.Placement)
		name := &AppName{Namespace: p.Namespace, ID: wanted.Application, User: wanted.User.Name}
		s.history.addFact(Event{Kind: AppRefused, Pod: p.UID, App: name, Amount: p.Request, Text: why.Text})
	}
	p.reason = why
}
