package store

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// Options are what a store is told once. The zero value of a field means its
// default.
type Options struct {
	// Window and MaxWindow bound the number of pods let through the gate at a
	// time (defaults 64 and 1,024).
	Window, MaxWindow int
	// SlotLease is how long a pod keeps its slot without a sign of life (30s).
	SlotLease time.Duration
	// InitialBackoff and MaxBackoff are the scheduler's back-off for pods that
	// failed (1s and 10s); negative means none.
	InitialBackoff, MaxBackoff time.Duration
	// Placement are the options of placement.
	Placement placement.Options
	// QueueGrace is how long an empty dynamic or draining queue is kept (10s).
	QueueGrace time.Duration
}

func (o *Options) setDefaults() {
	setDefault(&o.Window, 64)
	setDefault(&o.MaxWindow, 1024)
	setDefault(&o.SlotLease, 30*time.Second)
	setDefault(&o.InitialBackoff, time.Second)
	setDefault(&o.MaxBackoff, 10*time.Second)
	setDefault(&o.QueueGrace, 10*time.Second)
	o.MaxWindow = max(o.MaxWindow, o.Window)
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Store is the live state of all queues. Make one with New.
type Store struct {
	options  Options
	snapshot atomic.Pointer[queues.Snapshot] // of the queues as they were when somebody last asked
	unshown  atomic.Bool                     // the queues changed since; written under mu
	ready    atomic.Bool                     // it was started
	keys     keys                            // of admitted pods; written under mu, read without
	wake     chan struct{}

	// mu guards all fields below, and everything they lead to. It is taken by lock.
	mu         sync.Mutex
	spec       *config.Spec
	started    bool
	standby    bool
	hold       reasons.Reason // why it has not started, where that is not just a matter of time
	draft      *queues.Draft
	ledger     *queues.Ledger
	index      *order.Index
	lane       annex     // of pods that may be tried before their back-off ends
	returning  bool      // pods are coming back, and the order is not complete
	unfilled   bool      // there may be room in the window, left to TakeActivations
	unfilledAt time.Time // when that, or one of those that come back, was last so
	pods       map[types.UID]*pod
	shared     shared
	apps       map[appName][]*app             // the records of an application, one for each leaf, the oldest first
	leaves     map[queues.ID]map[appName]*app // the same by appName.inLeaf
	unplaced   map[types.UID]*pod
	leaving    map[types.UID]*pod // that are charged as such
	gangs      map[appName]*hardGang
	together   together
	namespaces map[string]namespace
	nodes      map[string]*node
	stale      []*node // that plans see differently since the last world
	roused     []*node // that changed and have askers
	capacity   capacity
	window     window
	probing    probing
	deadlines  ranking.Heap[*pod]
	told       time.Time // the next deadline as the caller knows it
	emptied    map[queues.ID]time.Time
	sweepAt    time.Time // when the first of emptied may go
	reconsider map[queues.ID]struct{}

	preemption PreemptionOptions
	holds      *reservations.Ledger
	heldView   atomic.Pointer[reservations.View] // published copy of holds
	heldAnew   bool                              // holds changed since
	// early are the holds that are written on pods, until Start takes them up: other
	// profiles schedule before, and keep off these nodes. Nil from then on.
	early         *reservations.Ledger
	due           time.Time // when the first of holds times out
	dueAnew       bool      // that has to be looked up again
	scenery       scenery
	resourceTypes resourceTypes
	asking        asking
	pace          pace
	work          work
	optedOut      map[string]bool // PriorityClasses whose pods are
	budgets       disruptions
	// waitingInPermit are pods that a Permit plugin holds back, as they may go for who
	// asked last.
	waitingInPermit map[types.UID]bool
	vacated         []string // nodes a hold of which ended
	// owned counts, for each pod, the pods that it owns: those of no queue have no
	// application by which originators are known.
	owned    map[types.UID]int
	refusals []*refusal // the oldest first
	arrivals uint32     // pods that came to a node so far; pod.arrival counts by it
	missed   missed
	// nodeBound are pods that can run on one node only and go first there.
	nodeBound nodeBound
	lost      lost

	activate  []Ref
	reports   reports
	register  register
	journal   journal
	chronicle chronicle
	census    census
	demand    demand
	seq       uint64
}

// Ref names a pod for the caller.
type Ref struct {
	UID             types.UID
	Namespace, Name string
}

// New returns a store with the queues of spec that has seen nothing yet. It
// admits nothing before Start.
func New(spec *config.Spec, options Options) *Store {
	options.setDefaults()
	s := &Store{
		options:    options,
		wake:       make(chan struct{}, 1),
		spec:       spec,
		draft:      queues.NewDraftFrom(spec),
		ledger:     queues.NewLedger(),
		index:      order.NewIndex(),
		lane:       newAnnex((*queues.Queue).Committed, (*queues.Queue).CommittedKept),
		pods:       map[types.UID]*pod{},
		shared:     newShared(),
		apps:       map[appName][]*app{},
		leaves:     map[queues.ID]map[appName]*app{},
		unplaced:   map[types.UID]*pod{},
		leaving:    map[types.UID]*pod{},
		gangs:      map[appName]*hardGang{},
		together:   newTogether(),
		namespaces: map[string]namespace{},
		nodes:      map[string]*node{},
		window:     newWindow(options.Window, options.MaxWindow),
		probing:    probing{limit: 1},
		deadlines:  ranking.New(earlier),
		emptied:    map[queues.ID]time.Time{},
		reconsider: map[queues.ID]struct{}{},
		preemption: DefaultPreemption(),
		holds:      reservations.NewLedger(),
		early:      reservations.NewLedger(),
		asking:     newAsking(),
		work:       work{ready: make(chan struct{}, 1)},
		journal:    journal{ready: make(chan struct{}, 1)},
		optedOut:   map[string]bool{},
		budgets:    newDisruptions(),
		owned:      map[types.UID]int{},
		reports:    newReports(),
		census:     newCensus(),
		demand:     newDemand(),

		resourceTypes: newResourceTypes(),
	}
	s.resourceTypes.add(typesOf(spec))
	s.heldView.Store(s.holds.View())
	s.indexQueues()
	s.current()
	return s
}

// Snapshot returns the state after the last event that has ended. It takes the lock
// for a moment if the queues changed since somebody asked, else none.
func (s *Store) Snapshot() *queues.Snapshot {
	if !s.unshown.Load() {
		return s.snapshot.Load()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current()
}

// Wake delivers a value when pods wait in TakeActivations or the next deadline
// moved. There is one value however much there is to do.
func (s *Store) Wake() <-chan struct{} { return s.wake }

// Returning tells whether pods came back by [Store.Gate] since the last
// TakeActivations. The scheduler's queue may be about to bring more of them: one
// event, such as a pod that ends, makes it move many, in no order.
func (s *Store) Returning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.returning
}

// TakeActivations returns the pods that were admitted since the last call. The
// caller tells the scheduler's queue about them. Pods that came back, and those
// that have the slot of one that was assumed, are admitted here: call it when all
// that one event moved are there.
func (s *Store) TakeActivations() []Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.returning || s.unfilled {
		s.returning = false
		s.fill(s.unfilledAt)
		s.show()
	}
	taken := s.activate
	s.activate = nil
	return taken
}

// Start says that all events of what existed before have been delivered. Pods
// seen so far are placed, the running ones first, the oldest first, and the
// first ones are admitted.
func (s *Store) Start(now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	if s.started {
		return
	}
	s.started = true
	s.placeAll(now)
	s.adoptAll(now)
	s.recallAll(now)
	s.vacated = append(s.vacated, s.early.Nodes()...) // what was not taken up is free again
	s.early, s.heldAnew = nil, true
	s.chronicle.begin()
	s.ready.Store(true)
}

// Hold says why the store cannot be started yet. Pods that wait are told so.
func (s *Store) Hold(why reasons.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = why
}

// notStarted is why a pod waits before Start.
func (s *Store) notStarted() reasons.Reason {
	if !s.hold.None() {
		return s.hold
	}
	return reasons.New(reasons.Starting, "the scheduler has not seen all pods and queues yet")
}

// Ready tells whether Start was called. It takes no lock.
func (s *Store) Ready() bool { return s.ready.Load() }

// Started tells whether Start was called.
func (s *Store) Started() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

// unlock ends a change: it lets pods through the gate as far as there is room,
// publishes the new state, releases the lock and then wakes the goroutine that
// takes activations, if there is something for it.
func (s *Store) unlock(now time.Time) {
	s.rouse(now)
	s.fill(now)
	s.unlockUnfilled(now)
}

// unlockUnfilled does so for a change that leaves letting pods through to
// [Store.TakeActivations], or that has let them through.
func (s *Store) unlockUnfilled(now time.Time) {
	s.endChange(now)
	wake := s.returning || s.unfilled || len(s.activate) > 0 || len(s.vacated) > 0 || s.nextMoved()
	toWrite := len(s.work.items) > 0
	s.journal.signal()
	s.mu.Unlock()
	if toWrite {
		select {
		case s.work.ready <- struct{}{}:
		default:
		}
	}
	if wake {
		select {
		case s.wake <- struct{}{}:
		default: // the goroutine that takes activations is awake, or will be
		}
	}
}

// endChange notes that a change is over, at a time.
func (s *Store) endChange(now time.Time) {
	s.show()
	s.register.stamp(now)
	s.endMoment(now)
}

// show lets readers know of the new state. It makes no snapshot: what the books
// share with one they must copy before they change it, and most events pass
// without anybody looking.
func (s *Store) show() {
	if s.draft.Changed() {
		s.unshown.Store(true)
	}
	if !s.heldAnew {
		return
	}
	s.heldAnew = false
	if s.early != nil {
		s.heldView.Store(s.early.View())
		return
	}
	s.heldView.Store(s.holds.View())
}

// current is the snapshot of the queues as they are.
func (s *Store) current() *queues.Snapshot {
	snapshot := s.draft.Publish(s.snapshot.Load())
	s.snapshot.Store(snapshot)
	s.unshown.Store(false)
	return snapshot
}

// Holds returns who holds which node. It takes no lock.
func (s *Store) Holds() *reservations.View { return s.heldView.Load() }
