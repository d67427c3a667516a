package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// People and their tools want to know what happened, in order and with its time;
// what there is now (register.go) does not say it. So the store keeps a chronicle: a
// step notes in a few words what it does, without text and without looking
// anything up, and the end of the change adds the time once for all of them. One
// reader takes the whole chronicle and gives back the buffers of the last time, so
// that noting allocates nothing in the long run. What is said to people is made
// from it outside (package eventlog).

// chronicleLimit is how many happenings are kept for the reader. It comes several
// times a second; what it is too slow for is lost, and counted.
const chronicleLimit = 1 << 16

// Happened says what happened.
type Happened uint8

// The comments say which fields of a [Happening] are set beside Kind.
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
	// Asked and AskGone: a pod without a node came into its application or left it,
	// with or without a node by then. Pod, App, Amount.
	Asked
	AskGone
	// Allocated and Released: a pod of a queue got a node, or uses it no more. Pod,
	// App, Node, Amount; Preempted for a victim.
	Allocated
	Released
	// Resized: a pod of a queue uses more or less than before. App; Amount is the
	// difference.
	Resized
	// ForeignCame and ForeignWent: the same for a pod of no queue. Pod, Node, Amount;
	// Text is static or default.
	ForeignCame
	ForeignWent
	// Chosen: a pod is deleted for another one. Pod, App if it has one, Amount, Text.
	Chosen
	// Told: people are told why a pod waits. Pod, App if it has one, Amount, Text.
	Told
	// HoldBegan and HoldEnded: a node is held for a pod. Pod, Node, Amount.
	HoldBegan
	HoldEnded
	// NodeCame, NodeChanged and NodeWent: a node is there, can hold something else, is
	// gone. Node; Amount is what it can hold.
	NodeCame
	NodeChanged
	NodeWent
	// CapacityChanged: all nodes together can hold something else. Amount.
	CapacityChanged
	// NodeOpened and NodeClosed: new pods may go to a node, or may not. Node.
	NodeOpened
	NodeClosed
)

// AppName says whose application it is and where. Immutable.
type AppName struct {
	Namespace, ID, Queue string
	// User and Group are whom it is charged to; empty for none.
	User, Group string
}

// Happening is one thing that happened.
type Happening struct {
	Kind      Happened
	Preempted bool
	Pod       types.UID
	App       *AppName
	Node      string
	Amount    resources.Vector
	Text      string
}

// Moment is one change of the store: happenings that became true at once.
type Moment struct {
	At time.Time
	// Queues is set when queues came, went or got other settings.
	Queues *queues.Snapshot
	// End is the index of the first happening after it.
	End int
}

// Chronicle is what happened, in order.
type Chronicle struct {
	Moments    []Moment
	Happenings []Happening
	// Lost is how many more there were.
	Lost int
}

// Reset empties a chronicle and keeps its buffers.
func (j *Chronicle) Reset() {
	clear(j.Moments)
	clear(j.Happenings)
	*j = Chronicle{Moments: j.Moments[:0], Happenings: j.Happenings[:0]}
}

// chronicle is what nobody has taken yet.
type chronicle struct {
	wanted bool // somebody takes it
	open   bool // what existed before was taken up
	now    Chronicle
	tree   uint64 // tree generation of the last moment with queues
	stamp  int    // happenings that have a moment
}

// KeepChronicle has the chronicle kept from Start on. Call it before.
func (s *Store) KeepChronicle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chronicle.wanted = true
}

// TakeChronicle returns what happened since the last call, and goes on with the
// buffers of an empty chronicle. It is for one reader.
func (s *Store) TakeChronicle(empty Chronicle) Chronicle {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := &s.chronicle
	if j.stamp < len(j.now.Happenings) { // a step without an end of its own
		return empty
	}
	taken := j.now
	j.now, j.stamp = empty, 0
	return taken
}

// note adds a happening of this change.
func (j *chronicle) note(h Happening) {
	switch {
	case !j.open:
	case len(j.now.Happenings) >= chronicleLimit:
		j.now.Lost++
	default:
		j.now.Happenings = append(j.now.Happenings, h)
	}
}

// endMoment ends a change in the chronicle.
func (s *Store) endMoment(now time.Time) {
	j := &s.chronicle
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

// begin opens the chronicle at the end of Start: what was there before did not happen
// now. Its first moment has the queues there are.
func (j *chronicle) begin() { j.open = j.wanted }

// rename gives an application its name in the chronicle.
func (s *Store) rename(a *app) {
	n := AppName{Namespace: a.name.namespace, ID: a.name.id, Queue: s.draft.Queue(a.leaf).Path, User: a.owner.User, Group: a.owner.Group}
	if a.told == nil || *a.told != n {
		a.told = &n
	}
}

// noteApp notes what happened to an application.
func (s *Store) noteApp(kind Happened, a *app) { s.chronicle.note(Happening{Kind: kind, App: a.told}) }

// notePod notes what happened to a pod of a queue.
func (s *Store) notePod(kind Happened, p *pod) {
	s.chronicle.note(Happening{Kind: kind, Pod: p.UID, App: p.app.told, Node: p.Node, Amount: p.held, Preempted: p.chosenBy != ""})
}

// noteNode notes what happened to a node, and to the capacity of the cluster.
func (s *Store) noteNode(kind Happened, n *node) {
	s.chronicle.note(Happening{Kind: kind, Node: n.name, Amount: n.allocatable})
	s.chronicle.note(Happening{Kind: CapacityChanged, Amount: s.capacity.sum})
}

// noteForeign notes that a foreign pod came to the node it is on, or goes from it.
func (s *Store) noteForeign(kind Happened, p *pod) {
	h := Happening{Kind: kind, Pod: p.UID, Node: p.on.name, Amount: p.uses, Text: "default"}
	if p.Static {
		h.Text = "static"
	}
	s.chronicle.note(h)
}

// noteSaid notes what people are told of a pod: that it goes for another one, or why
// it waits.
func (s *Store) noteSaid(kind Happened, p *pod, text string) {
	h := Happening{Kind: kind, Pod: p.UID, Amount: p.Request, Text: text}
	if p.app != nil {
		h.App = p.app.told
	}
	s.chronicle.note(h)
}

// noteHold notes that a hold begins or ends.
func (s *Store) noteHold(kind Happened, h *reservations.Hold) {
	s.chronicle.note(Happening{Kind: kind, Pod: h.Asker, Node: h.Node, Amount: h.Request})
}

// refuse says why a pod has no queue.
func (s *Store) refuse(p *pod, why reasons.Reason) {
	if s.chronicle.open && why.Code != p.reason.Code {
		wanted, _ := placement.Identify(p.placement(), s.options.Placement)
		name := &AppName{Namespace: p.Namespace, ID: wanted.Application, User: wanted.User.Name}
		s.chronicle.note(Happening{Kind: AppRefused, Pod: p.UID, App: name, Amount: p.Request, Text: why.Text})
	}
	p.reason = why
}
