package store

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// Options are the settings of a store, given once to New. A zero field means its default.
type Options struct {
	// Window and MaxWindow are the smallest and the largest number of pods let through
	// the gate at a time (defaults 64 and 1,024).
	Window, MaxWindow int
	// SlotLease is how long a pod keeps its slot without progress of its cycle (30s).
	SlotLease time.Duration
	// InitialBackoff and MaxBackoff are the scheduler's back-off for pods that
	// failed (1s and 10s); negative means none.
	InitialBackoff, MaxBackoff time.Duration
	// Placement has the options of placement.
	Placement placement.Options
	// DynamicQueues bound the queues that rules make (no bound).
	DynamicQueues queues.DynamicLimits
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
	snapshot atomic.Pointer[queues.Snapshot] // of the queues, as last published
	unshown  atomic.Bool                     // the queues changed since; written under mu
	ready    atomic.Bool                     // Start was called
	keys     pending.Keys                    // sort keys of admitted pods; written under mu, read without it
	wake     chan struct{}

	// mu guards all fields below and everything reachable from them.
	mu           sync.Mutex
	spec         *config.Spec
	started      bool
	standby      bool
	hold         reasons.Reason // why it cannot start yet, if something is missing
	cache        *cache.Cache
	draft        *queues.Draft
	index        *order.Index
	lane         order.Sparse[*app] // backing-off pods that may be tried before their back-off ends
	returning    bool               // pods are coming back, and the order is not complete
	unfilled     bool               // the window may have room, which TakeActivations fills
	unfilledAt   time.Time          // when returning or unfilled was last set
	pods         map[types.UID]*pod
	noTurn       *turn // of all pods that run and need none; it stays empty
	apps         cache.Apps[*app]
	unplaced     map[types.UID]*pod
	gangs        map[cache.AppName]*hardGang
	groups       *pending.Groups[*pod, groupData]
	followGroups bool // otherwise PodGroupLabel has no effect
	transitions  state.Transitions
	window       pending.Window[*pod]
	classLimit   pending.ClassLimit
	deadlines    pending.Timers[*pod]
	told         time.Time // the next deadline as last returned to the caller
	reconsider   map[queues.ID]struct{}

	preemption *preemption.Preemption
	asking     preemption.Queue[*app]
	work       work
	vacated    []string // nodes where a hold ended
	tooEarly   pending.TooEarly
	lost       pending.Lost

	activate []objects.Ref
	history  storeHistory
	demand   pending.Demand[*app]
}

// New returns a store with the queues of spec, before any event. It admits no pod before
// Start.
func New(spec *config.Spec, options Options) *Store {
	options.setDefaults()
	s := &Store{
		options:    options,
		wake:       make(chan struct{}, 1),
		spec:       spec,
		index:      order.NewIndex(),
		lane:       order.NewSparse[*app]((*queues.Queue).Committed, (*queues.Queue).CommittedKept),
		pods:       map[types.UID]*pod{},
		noTurn:     newTurn(nil),
		apps:       cache.NewApps[*app](),
		unplaced:   map[types.UID]*pod{},
		gangs:      map[cache.AppName]*hardGang{},
		groups:     newGroups(),
		window:     pending.NewWindow[*pod](options.Window, options.MaxWindow),
		classLimit: pending.NewClassLimit(options.MaxWindow),
		deadlines:  pending.NewTimers[*pod](),
		reconsider: map[queues.ID]struct{}{},
		preemption: preemption.New(),
		asking:     preemption.NewQueue[*app](),
		work:       work{ready: make(chan struct{}, 1)},
		history:    newHistory(),
		demand:     pending.NewDemand[*app](),
	}
	s.cache = cache.New(spec, options.QueueGrace, func(uid types.UID) *cache.Pod {
		if p := s.pods[uid]; p != nil {
			return &p.cachePod
		}
		return nil
	})
	s.draft = s.cache.Books.Tree()
	s.indexQueues()
	s.current()
	return s
}

// Snapshot returns the state after the last completed event. It takes the lock only if
// the queues changed since the last call.
func (s *Store) Snapshot() *queues.Snapshot {
	if !s.unshown.Load() {
		return s.snapshot.Load()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current()
}

// Wake delivers a value when pods wait in TakeActivations or the next deadline moved.
// Several such changes may be one value.
func (s *Store) Wake() <-chan struct{} { return s.wake }

// Returning tells whether pods came back by [Store.Gate] since the last TakeActivations.
// More may follow: one event, such as the end of a pod, makes the scheduler's queue move
// many pods, in no particular order.
func (s *Store) Returning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.returning
}

// TakeActivations returns the pods that were admitted since the last call. The caller
// activates them in the scheduler's queue. It also admits pods that came back, and fills
// the slots of pods that were assumed, so call it when all pods that one event moved have
// come back.
func (s *Store) TakeActivations() []objects.Ref {
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

// Start says that all events of existing objects have been delivered. It places the pods
// seen so far (running ones first, then by age) and admits the first ones.
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
	s.vacated = append(s.vacated, s.preemption.Holds.Begin()...) // nodes of holds that were not adopted are free again
	s.history.events.Resume(Facts)
	s.ready.Store(true)
}

// Hold sets the reason why the store cannot be started yet. It is the reason that pods
// wait until Start.
func (s *Store) Hold(why reasons.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = why
}

// notStarted is the reason that a pod waits before Start.
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

// unlock ends a change. It admits pods as far as there is room, publishes the new state,
// releases the lock, and wakes the goroutine that takes activations if there is work for
// it.
func (s *Store) unlock(now time.Time) {
	s.recheckLater(now)
	s.fill(now)
	s.unlockUnfilled(now)
}

// unlockUnfilled is unlock without admitting pods: for changes that leave this to
// [Store.TakeActivations] or have done it.
func (s *Store) unlockUnfilled(now time.Time) {
	s.endChange(now)
	wake := s.returning || s.unfilled || len(s.activate) > 0 || len(s.vacated) > 0 || s.nextMoved()
	toWrite := len(s.work.items) > 0
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

// endChange publishes a change and stamps it with its time.
func (s *Store) endChange(now time.Time) {
	s.show()
	s.history.end(s.draft.TreeGeneration(), s.current, now)
}

// show marks the published state as out of date. It makes no snapshot: the accounting
// copies on write what it shares with a snapshot, and most events pass without a reader.
func (s *Store) show() {
	if s.draft.Changed() {
		s.unshown.Store(true)
	}
	s.preemption.Holds.Publish()
}

// current publishes and returns a snapshot of the queues.
func (s *Store) current() *queues.Snapshot {
	snapshot := s.draft.Publish(s.snapshot.Load())
	s.snapshot.Store(snapshot)
	s.unshown.Store(false)
	return snapshot
}

// Holds returns the holds by node. It takes no lock.
func (s *Store) Holds() *reservations.View { return s.preemption.Holds.View() }
