package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// OptOut is what a pod itself says of being preempted (law 1).
type OptOut uint8

// A pod says nothing, and its PriorityClass counts; or that it may go; or that
// it should not.
const (
	OptOutUnsaid OptOut = iota
	OptOutNo
	OptOutYes
)

// Pod is what an event says of a pod.
type Pod struct {
	UID             types.UID
	Namespace, Name string
	// Labels and Annotations are read and not changed. Records of the pod keep them, too.
	Labels, Annotations map[string]string
	// Request is what the pod requests, pods: 1 included. Uncounted is set by the store:
	// what it requests of types that do not count, see resourceTypes; not part of Request.
	Request, Uncounted resources.Vector
	Created            time.Time
	// Scheduled is when the pod was bound; zero while it is not, or not known.
	Scheduled time.Time
	// Node is the name of the pod's node, empty while it is pending.
	Node     string
	Priority int32
	// Deleting is true once the pod has a deletion timestamp.
	Deleting bool
	// DeletionGrace is how long it has from its deletion on; zero before.
	DeletionGrace time.Duration
	// Grace is how long the pod has to stop once it is deleted, as it says itself.
	Grace time.Duration
	// Preempted is true once a scheduler has written on the pod that it goes to make room.
	Preempted bool
	// GoneBy is when its grace period ends; zero while it is not deleted.
	GoneBy time.Time
	// Terminal is true once the pod succeeded or failed; it uses nothing then.
	Terminal bool
	// Health is what it is to the disruption budgets that cover it.
	Health Health
	// Gated is true while the pod has scheduling gates of its own.
	Gated bool
	// Foreign is true for a pod of another scheduler: it uses its node and belongs
	// to no queue.
	Foreign bool
	// Peer is true for a foreign pod of a profile of this process that makes room
	// for DaemonSet pods: they may ask, and all may be victims of such (D4).
	Peer bool
	// Scheduler is the scheduler of a foreign pod.
	Scheduler string
	// Static is true for a pod of another scheduler that belongs to its node: a mirror
	// pod, or one whose owner is the node.
	Static bool
	// NeverPreempts is true for a pod with preemptionPolicy Never.
	NeverPreempts bool
	// OptOut is what the pod itself says of being preempted.
	OptOut OptOut
	// Originator is what it says of being an originator of its application.
	Originator Originator
	// RequiredNode is the only node a DaemonSet pod can run on; empty for others.
	RequiredNode string
	// MaybeDaemon is true for a pod that names a DaemonSet as its owner while DaemonSets
	// cannot be read: it is never a victim, and may not ask as one either.
	MaybeDaemon bool
	// Class is the name of the pod's PriorityClass; empty for none.
	Class string
	// Owners are the UIDs of the pods that own it.
	Owners []types.UID
	// Controller is the UID of the object that makes another pod in its place; empty for none.
	Controller types.UID
	// Claim is the node that the pod holds according to its condition; nil for none.
	Claim *reservations.Claim
	// Told is the reason that people were told for the pod's waiting, by this
	// process or one before it, and that was not taken back; empty for none.
	Told reasons.Code
	// Demand is what the condition PodScheduled of a pending pod says to autoscalers.
	Demand DemandSaid
}

// maxRequest is the largest amount of a type that a pod is charged: 70 TB of
// memory, or 70 million cores. Above it sums over all pods of a cluster could
// reach the end of int64, where they would not come down again as they went up.
const maxRequest resources.Amount = 1 << 46

// normalize makes what an event says fit for the books: a pod that requests
// more than they can hold is charged with as much as they can.
func (p *Pod) normalize() { p.Request = p.Request.Cap(maxRequest) }

// Ref names the pod.
func (p *Pod) Ref() Ref { return Ref{UID: p.UID, Namespace: p.Namespace, Name: p.Name} }

func (p *Pod) placement() placement.Pod {
	return placement.Pod{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID),
		Labels: p.Labels, Annotations: p.Annotations,
	}
}

// state is where a pod is on its way; drawn in doc.go.
type state uint8

const (
	unplaced state = iota
	waiting
	admitted
	parked
	cooling
	assumed
	bound
)

var stateNames = [...]string{"unplaced", "waiting", "admitted", "parked", "cooling", "assumed", "bound"}

func (s state) String() string { return stateNames[s] }

// allocated tells whether the pod is charged as allocated.
func (s state) allocated() bool { return s == assumed || s == bound }

// pod is the record of a pod. Most pods of a cluster run, and there are many: what only
// those need that do not, or that go, is kept apart, and those that have none of it share
// what is given for it and stays empty (turn, prospect, asks).
type pod struct {
	*Pod // the latest event; never written, for readers have it, too
	*turn
	*prospect
	// Node and Deleting are what the store knows sooner than the latest event: a node that
	// the pod was assumed on, and what is told of it meanwhile.
	Node string

	Deleting bool
	state    state
	entered  bool   // it passed the gate since it was admitted
	asked    bool   // it came into its application without a node
	kept     bool   // parked because of its mates only
	seat     int32  // in on.pods
	arrival  uint32 // Store.arrivals when it came to that node

	app   *app             // nil while unplaced
	gang  *hardGang        // that it asks for, or is kept back by; nil if none
	mates *podGroup        // that it says it is of; nil if none
	asks  *asks            // what it knows of making room; Store.shared has it if it knows nothing
	held  resources.Vector // what it is charged: as an ask, or as an allocation
	on    *node            // where it uses something; nil for nowhere
	uses  resources.Vector // what it uses there
	elder seniority        // in app.living

	failed *failures // nil for none
	report *report   // nil once it runs and there is nothing more to tell

	shown  *PodRecord // what readers were told last; nil for nothing
	marked int        // in register.pods
}

// failures are the cycles of a pod that came to nothing. Never written.
type failures struct {
	count int // since it was placed
	last  time.Time
}

func (f *failures) attempts() int {
	if f == nil {
		return 0
	}
	return f.count
}

// say takes over an event.
func (p *pod) say(event *Pod) { p.Pod, p.Node, p.Deleting = event, event.Node, event.Deleting }

// newPod is a pod as its first event has it.
func newPod(event *Pod, with shared) *pod {
	p := &pod{turn: with.turn, prospect: with.prospect, asks: with.asks}
	p.say(event)
	p.elder = seniority{pod: p, at: ranking.Outside}
	if event.Node == "" || !event.Foreign {
		p.turn = newTurn() // until it runs in a queue
	}
	if event.Node == "" {
		p.asks = newAsks(p)
	}
	return p
}

// leaves tells whether the pod has a node and is about to go: it was deleted, or
// chosen as a victim.
func (p *pod) leaves() bool {
	return (p.Foreign || p.state.allocated()) && (p.Deleting || p.chosenBy != "")
}

// entry is the place of a pod in one more ranking.
type entry struct {
	pod  *pod
	when time.Time
	at   int
}

// Place serves the ranking.
func (e *entry) Place() *int { return &e.at }

// These orders look at UIDs of ties only: they are called again and again for pods of
// which nothing is in a cache.

// sooner orders entries: time, then UID.
func sooner(a, b *entry) bool {
	if c := a.when.Compare(b.when); c != 0 {
		return c < 0
	}
	return a.pod.UID < b.pod.UID
}

// earlier orders deadlines: time, then UID.
func earlier(a, b *pod) bool {
	if c := a.deadline.Compare(b.deadline); c != 0 {
		return c < 0
	}
	return a.UID < b.UID
}

func (p *pod) askKey() order.AskKey {
	return order.AskKey{Priority: p.Priority, Created: p.Created, UID: string(p.UID)}
}

// askKind tells asks that request the same apart: those of twins, and those that request
// something that does not count.
func (p *pod) askKind() string {
	if p.twins != nil {
		return p.twins.name()
	}
	return p.apartKind()
}

// apartKind is the same for an order that knows no twins.
func (p *pod) apartKind() string {
	if !p.Uncounted.IsZero() {
		return "uncounted"
	}
	return ""
}

// Key is the frozen place of an admitted pod in the scheduler's queue: higher
// Rank first, then earlier Time, then lower Seq. It does not change while the
// pod is in that queue.
type Key struct {
	Rank int64
	Time int64 // Unix nanoseconds of the admission
	Seq  uint64
}

// Key returns the sort key of an admitted pod, and false for every other pod.
// It takes no lock.
func (s *Store) Key(uid types.UID) (Key, bool) { return s.keys.get(uid) }

// the transitions. Each takes the pod from the named state and leaves the books
// right; callers hold the lock.

// toWaiting: unplaced, parked, cooling or admitted to waiting.
func (s *Store) toWaiting(p *pod) {
	s.enter(p, waiting)
	p.ask = s.index.PushKind(p.app.ordered, p.askKey(), p.Request, p.askKind())
}

// leaveOrder takes a waiting pod out of the order.
func (s *Store) leaveOrder(p *pod) {
	s.index.Remove(p.ask)
	p.ask = nil
}

// toAdmitted: waiting to admitted.
func (s *Store) toAdmitted(p *pod, now time.Time) {
	s.leaveOrder(p)
	s.admit(p, now)
}

// admit: a pod out of the order becomes admitted. An asker with a hold is
// charged as arriving and therefore not as admitted.
func (s *Store) admit(p *pod, now time.Time) {
	s.enter(p, admitted)
	s.reports.hadItsTurn(p, now)
	s.window.pods[p] = struct{}{}
	if p.arriving.IsZero() {
		p.slot = p.held
	}
	s.charge(p.app, charge{admitted: p.slot})
	p.app.slots++
	s.count(p.app)
	s.window.taken++
	p.hopes, p.entered = s.probing.hopes, false
	s.setDeadline(p, now.Add(s.lease(p)))
	s.seq++
	s.keys.add(p.UID, Key{
		Rank: queues.Rank(s.draft, p.app.leaf, p.Priority), Time: now.UnixNano(), Seq: s.seq,
	})
}

// leaveSlot takes an admitted pod out of the window. What it is charged as
// admitted is for the caller to take back. Its key stays, for it may still be in
// the scheduler's heap; who knows that it is not deletes the key.
func (s *Store) leaveSlot(p *pod) {
	p.asks.over = false
	p.app.slots--
	s.window.taken--
	delete(s.window.pods, p)
	s.clearDeadline(p)
	if s.asking.current == p {
		s.asking.current = nil
	}
	s.keepAsking(p)
}

// vacate takes an admitted pod, which does not go on to a node, out of the
// window: others may have the room.
func (s *Store) vacate(p *pod) {
	s.leaveSlot(p)
	s.charge(p.app, charge{admitted: minus(p.slot)})
	p.slot = resources.Vector{}
	s.count(p.app)
	s.release(p.app.leaf)
}

// toParked: admitted (out of its slot by now) or assumed (uncharged) to parked.
func (s *Store) toParked(p *pod, why reasons.Reason, now time.Time) {
	s.enter(p, parked)
	p.reason, p.erred = why, why.Code == reasons.BackingOff
	s.failedAt(p, now)
	p.notUntil = now.Add(s.backoff(p.failed.attempts()))
	if p.erred { // a cycle that is to make a plan would end the same way
		p.asks.retryAt = latest(p.asks.retryAt, p.notUntil)
	}
}

// toAllocated: an admitted pod, whose room goes over to the allocation, or an ask
// out of the order, becomes assumed or bound.
func (s *Store) toAllocated(p *pod, to state, node string) {
	c := charge{allocated: p.Request, pending: minus(p.held)}
	if p.state == admitted {
		s.leaveSlot(p)
		c.admitted = minus(p.slot)
		p.slot = resources.Vector{}
	}
	s.keys.remove(p.UID)
	s.leaveTwins(p)
	s.leaveDemand(p)
	s.disarm(p)
	s.enter(p, to)
	p.Node = node
	p.held = p.Request
	s.charge(p.app, c)
	s.settleOn(p, node, p.held)
	s.notePod(Allocated, p)
	s.weigh(p)
	s.dueAnew = s.dueAnew || p.asks.holds
	s.register.counts.Allocated++
	p.app.allocations++
	if to == bound {
		s.begin(p.app)
	}
	s.count(p.app)
}

// leaveAllocated takes back what an assumed or bound pod is charged. Nobody need
// wait for it to leave its node.
func (s *Store) leaveAllocated(p *pod) {
	s.notePod(Released, p)
	s.chosen(p, "")
	s.weighAs(p, weight{})
	s.settleOn(p, "", resources.Vector{})
	s.charge(p.app, charge{allocated: minus(p.held)})
	s.register.counts.Released++
	p.app.allocations--
	s.count(p.app)
	s.release(p.app.leaf)
}

// backoff is how long a pod waits after its n-th failure, as the scheduler's
// queue would have it wait.
func (s *Store) backoff(n int) time.Duration {
	d := max(s.options.InitialBackoff, 0)
	for i := 1; i < n && d < s.options.MaxBackoff; i++ {
		d *= 2
	}
	return min(d, max(s.options.MaxBackoff, 0))
}
