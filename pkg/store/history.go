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
)

// The history is the history of events. Users and tools need what happened, in order
// and with times; the current state (register.go) does not have that. A step records an
// event in a few fields, without text and without lookups, and the end of the change adds
// one time for all its events. One reader takes the whole history and gives back the
// buffers of the last time, so recording does not allocate in the long run. Package
// eventlog turns it into text.

// historyLimit is how many events are kept for the reader, which comes several times a
// second. Events beyond the limit are lost, and counted.
const historyLimit = 1 << 16

// Happened is the kind of an event.
type Happened uint8

// The comments list the fields of a [Happening] that are set in addition to Kind.
const (
	// AppAdded and AppRemoved: an application got its queue, or has no pods left
	// there. App.
	AppAdded Happened = iota
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
)

// AppName identifies an application with its queue and owner. Immutable.
type AppName struct {
	Namespace, ID, Queue string
	// User and Group are charged for the application; empty for none.
	User, Group string
}

// Happening is one event.
type Happening struct {
	Kind      Happened
	Preempted bool
	Pod       types.UID
	App       *AppName
	Node      string
	Amount    resources.Vector
	Text      string
}

// Moment is one change of the store: events with the same time.
type Moment struct {
	At time.Time
	// Queues is set if queues came, went or changed their settings.
	Queues *queues.Snapshot
	// End is the index after the last event of the change.
	End int
}

// History is a sequence of events.
type History struct {
	Moments    []Moment
	Happenings []Happening
	// Lost is the number of events lost to the limit.
	Lost int
}

// Reset empties a history and keeps its buffers.
func (j *History) Reset() {
	clear(j.Moments)
	clear(j.Happenings)
	*j = History{Moments: j.Moments[:0], Happenings: j.Happenings[:0]}
}

// pastEvents has the events that the reader has not taken yet.
type pastEvents struct {
	wanted bool // a reader takes it
	open   bool // Start has processed what existed before
	now    History
	tree   uint64 // tree generation of the last moment with queues
	stamp  int    // number of events that have a moment
}

// KeepHistory turns the history on, from Start. Call it before Start.
func (s *Store) KeepHistory() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.wanted = true
}

// TakeHistory returns the events since the last call, and goes on with the buffers of
// an empty history. It is for one reader.
func (s *Store) TakeHistory(empty History) History {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := &s.history
	if j.stamp < len(j.now.Happenings) { // some events have no moment yet
		return empty
	}
	taken := j.now
	j.now, j.stamp = empty, 0
	return taken
}

// note adds an event to the current change.
func (j *pastEvents) note(h Happening) {
	switch {
	case !j.open:
	case len(j.now.Happenings) >= historyLimit:
		j.now.Lost++
	default:
		j.now.Happenings = append(j.now.Happenings, h)
	}
}

// endMoment ends the current change in the history.
func (s *Store) endMoment(now time.Time) {
	j := &s.history
	tree := j.open && s.draft.TreeGeneration() != j.tree
	if !tree && len(j.now.Happenings) == j.stamp {
		return
	}
	m := Moment{At: now, End: len(j.now.Happenings)}
	if tree {
		m.Queues, j.tree = s.current(), s.draft.TreeGeneration()
	}
	j.now.Moments = append(j.now.Moments, m)
	j.stamp = m.End
}

// begin opens the history at the end of Start, so objects that existed before cause no
// events. Its first moment has all queues.
func (j *pastEvents) begin() { j.open = j.wanted }

// rename updates the name of an application in the history.
func (s *Store) rename(a *app) {
	n := AppName{Namespace: a.name.namespace, ID: a.name.id, Queue: s.draft.Queue(a.leaf).Path, User: a.owner.User, Group: a.owner.Group}
	if a.told == nil || *a.told != n {
		a.told = &n
	}
}

// noteApp records an event of an application.
func (s *Store) noteApp(kind Happened, a *app) { s.history.note(Happening{Kind: kind, App: a.told}) }

// notePod records an event of a pod of a queue.
func (s *Store) notePod(kind Happened, p *pod) {
	s.history.note(Happening{Kind: kind, Pod: p.UID, App: p.app.told, Node: p.Node, Amount: p.held, Preempted: p.chosenBy != ""})
}

// noteNode records an event of a node, and the new capacity of the cluster.
func (s *Store) noteNode(kind Happened, n *cache.Node) {
	s.history.note(Happening{Kind: kind, Node: n.Name(), Amount: n.Allocatable()})
	s.history.note(Happening{Kind: CapacityChanged, Amount: s.cache.Capacity.Sum()})
}

// noteForeign records that a foreign pod came to its node or leaves it.
func (s *Store) noteForeign(kind Happened, p *pod) {
	h := Happening{Kind: kind, Pod: p.UID, Node: p.On().Name(), Amount: p.Uses(), Text: "default"}
	if p.Static {
		h.Text = "static"
	}
	s.history.note(h)
}

// noteSaid records what users are told of a pod: that it is preempted, or why it waits.
func (s *Store) noteSaid(kind Happened, p *pod, text string) {
	h := Happening{Kind: kind, Pod: p.UID, Amount: p.Request, Text: text}
	if p.app != nil {
		h.App = p.app.told
	}
	s.history.note(h)
}

// noteHold records that a hold began or ended.
func (s *Store) noteHold(kind Happened, h *reservations.Hold) {
	s.history.note(Happening{Kind: kind, Pod: h.Asker, Node: h.Node, Amount: h.Request})
}

// refuse sets the reason why a pod has no queue.
func (s *Store) refuse(p *pod, why reasons.Reason) {
	if s.history.open && why.Code != p.reason.Code {
		wanted, _ := placement.Identify(placementOf(p.Pod), s.options.Placement)
		name := &AppName{Namespace: p.Namespace, ID: wanted.Application, User: wanted.User.Name}
		s.history.note(Happening{Kind: AppRefused, Pod: p.UID, App: name, Amount: p.Request, Text: why.Text})
	}
	p.reason = why
}
