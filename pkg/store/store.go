package store

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
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
	options Options
	ready   atomic.Bool // Start was called

	// mu guards all fields below and everything reachable from them, except for the sort
	// keys and what is published.
	mu      sync.Mutex
	started bool
	standby bool
	hold    reasons.Reason // why it cannot start yet, if something is missing

	cache    *cache.Cache
	pods     map[types.UID]*pod
	noTurn   *turn // of all pods that run and need none; it stays empty
	unplaced map[types.UID]*pod
	apps     cache.Apps[*app]
	gangs    map[cache.AppName]*hardGang

	pending    *pending.Pending[*pod, *app, groupData]
	preemption *preemption.Preemption
	asking     preemption.Queue[*app]
	history    storeHistory
	out        outbox
}

// New returns a store with the queues of spec, before any event. It admits no pod before
// Start.
func New(spec *config.Spec, options Options) *Store {
	options.setDefaults()
	s := &Store{
		options:    options,
		pods:       map[types.UID]*pod{},
		noTurn:     newTurn(nil),
		unplaced:   map[types.UID]*pod{},
		apps:       cache.NewApps[*app](),
		gangs:      map[cache.AppName]*hardGang{},
		pending:    pending.New[*pod, *app, groupData](options.Window, options.MaxWindow, firstMember),
		preemption: preemption.New(),
		asking:     preemption.NewQueue[*app](),
		history:    newHistory(),
		out:        newOutbox(),
	}
	s.cache = cache.New(spec, options.QueueGrace, func(uid types.UID) *cache.Pod {
		if p := s.pods[uid]; p != nil {
			return &p.cachePod
		}
		return nil
	})
	s.indexQueues()
	s.cache.Snapshot()
	return s
}

// Snapshot returns the state after the last completed event. It takes the lock only if
// the queues changed since the last call.
func (s *Store) Snapshot() *queues.Snapshot {
	if snapshot, current := s.cache.Shown(); current {
		return snapshot
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cache.Snapshot()
}

// Wake delivers a value when pods wait in TakeActivations or the next deadline moved.
// Several such changes may be one value.
func (s *Store) Wake() <-chan struct{} { return s.out.wake }

// Returning tells whether pods came back by [Store.Gate] since the last TakeActivations.
// More may follow: one event, such as the end of a pod, makes the scheduler's queue move
// many pods, in no particular order.
func (s *Store) Returning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending.Returning()
}

// TakeActivations returns the pods that were admitted since the last call. The caller
// activates them in the scheduler's queue. It also admits pods that came back, and fills
// the slots of pods that were assumed, so call it when all pods that one event moved have
// come back.
func (s *Store) TakeActivations() []objects.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, due := s.pending.TakeFill(); due {
		s.fill(now)
		s.show()
	}
	return take(&s.out.activate)
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
	s.out.vacated = append(s.out.vacated, s.preemption.Holds.Begin()...) // nodes of holds that were not adopted are free again
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
	wake := s.pending.IsFillDue() || len(s.out.activate) > 0 || len(s.out.vacated) > 0 || s.out.moved(s.next())
	toWrite := len(s.out.work) > 0
	s.mu.Unlock()
	if toWrite {
		signal(s.out.toWrite)
	}
	if wake {
		signal(s.out.wake)
	}
}

// endChange publishes a change and stamps it with its time.
func (s *Store) endChange(now time.Time) {
	s.show()
	s.history.end(s.cache.Tree().TreeGeneration(), s.cache.Snapshot, now)
}

// show marks what was published as out of date, or publishes it.
func (s *Store) show() {
	s.cache.Show()
	s.preemption.Holds.Publish()
}

// Holds returns the holds by node. It takes no lock.
func (s *Store) Holds() *reservations.View { return s.preemption.Holds.View() }
