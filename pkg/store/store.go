package store

import (
	"sync/atomic"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/admission"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cycle"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/holds"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/lifecycle"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/plans"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Store is the live state of all queues: what informers and scheduling cycles tell goes
// in here, and [Readers] tells what is. Make one with New.
type Store struct {
	*core
	Readers
}

// core is the model under its lock, and all that works on it, lowest first: each part
// calls only those before it.
type core struct {
	ready atomic.Bool // Start was called

	// mu guards the model and everything reachable from it, except for the sort keys and
	// what is published.
	mu     locks.Mutex
	model  *model.Model
	demand *admission.Demand
	states *admission.States
	groups *admission.PodGroups
	slots  *admission.Slots
	holds  *holds.Holds
	plans  *plans.Plans
	life   *lifecycle.Lifecycle
	cycle  *cycle.Cycle
}

// New returns a store with the queues of spec, before any event. It admits no pod before
// Start.
func New(spec *config.Spec, options Options) *Store {
	m := model.New(spec, options)
	s := &core{model: m}
	s.demand = admission.NewDemand(m)
	s.states = admission.NewStates(m, s.demand)
	s.groups = admission.NewPodGroups(m, s.states)
	s.slots = admission.NewSlots(m, s.states, s.groups)
	s.holds = holds.New(m, s.states)
	s.plans = plans.New(m, s.states, s.holds)
	s.life = lifecycle.New(m, s.demand, s.states, s.holds, s.plans)
	s.cycle = cycle.New(m, s.demand, s.states, s.slots, s.holds, s.plans, s.life)
	return &Store{core: s, Readers: Readers{s}}
}

// Wake delivers a value when pods wait in TakeActivations or the next deadline moved.
// Several such changes may be one value.
func (s *Store) Wake() <-chan struct{} { return s.model.Out.Wake }

// TakeActivations returns the pods that were admitted since the last call. The caller
// activates them in the scheduler's queue. It also admits pods that came back, and fills
// the slots of pods that were assumed, so call it when all pods that one event moved have
// come back.
func (s *Store) TakeActivations() []objects.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, due := s.model.Pending.TakeFill(); due {
		s.fill(now)
		s.slots.JudgeNodeBound(now)
		s.model.Publish()
	}
	return cache.Take(&s.model.Out.Activate)
}

// Start says that all events of existing objects have been delivered. It places the pods
// seen so far (running ones first, then by age) and admits the first ones.
func (s *Store) Start(now time.Time) {
	s.mu.Lock()
	defer s.endChange(now)
	if s.model.Started {
		return
	}
	s.model.Started = true
	s.life.PlaceAll(now)
	s.plans.RestoreHolds(now)
	s.states.RetryAllTooEarly(now)
	s.model.Out.Vacated = append(s.model.Out.Vacated, s.model.Preemption.Ledger.EndRestore()...) // nodes of holds that were not restored are free again
	s.model.History.Started = true
	s.ready.Store(true)
}

// StartLeading ends the standby: this process schedules from now on. It leads only once, because
// the scheduler exits when it loses its lease.
func (s *Store) StartLeading(now time.Time) { s.change(now, func() { s.plans.StartLeading(now) }) }

// SetNotReady sets the reason why the store cannot be started yet. It is the reason that pods
// wait until Start.
func (s *Store) SetNotReady(why reasons.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.NotReady = why
}

// FollowPodGroups turns PodGroups on; otherwise their label has no effect. Call it before
// Start.
func (s *Store) FollowPodGroups() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.Pending.PodGroups.Followed = true
	for _, p := range s.model.Pods {
		s.states.JoinGroup(p)
	}
}

// change makes a change under the lock.
func (s *core) change(now time.Time, f func()) {
	s.mu.Lock()
	defer s.endChange(now)
	f()
}

// endChange ends a change. It admits pods as far as there is room, publishes the new state,
// releases the lock, and wakes the goroutine that takes activations if there is work for
// it.
func (s *core) endChange(now time.Time) {
	s.fill(now)
	s.endChangeUnfilled(now)
}

// endChangeUnfilled is endChange without admitting pods: for changes that leave this to
// [Store.TakeActivations] or have done it.
func (s *core) endChangeUnfilled(now time.Time) {
	s.slots.JudgeNodeBound(now)
	s.model.EndChange(now)
	wake := s.model.Pending.IsFillDue() || len(s.model.Out.Activate) > 0 || len(s.model.Out.Vacated) > 0 || s.model.Out.Moved(s.next())
	toWrite := len(s.model.Out.Work) > 0
	s.mu.Unlock()
	if toWrite {
		history.Signal(s.model.Out.WorkReady)
	}
	if wake {
		history.Signal(s.model.Out.Wake)
	}
}

// fill gives slots after each change, in these steps:
//
//  1. take back slots of PodGroups that cannot start, and check again the waiting pods that a
//     quota refused, where the refusing queue has more room
//  2. let holders through that have room now: members of PodGroups, then those that a quota
//     refused
//  3. let one asker through, to have a plan made for it
//  4. put back the PodGroups that can go on
//  5. admit pods in order while the window has room
//  6. when the order has none, put back the first pod that backs off, and admit it
//
// Three other functions give slots: Holds.WakeHolder (to a holder that is ready), timerEnded in
// deadline.go (to a holder when its time has come), and Slots.GiveWay (the slot of a pod that
// Reserve puts back into the order, to a pod that the order did not show).
func (s *core) fill(now time.Time) {
	if s.model.Pending.Returning() {
		return // the order is about to change
	}
	s.model.Pending.Fills()
	s.groups.TakeBackSlots()
	s.slots.Unblock()
	if !s.model.Started {
		return
	}
	s.holds.WakeMembers(now)
	s.holds.WakeRefused(now)
	s.plans.LetAskerThrough(now)
	s.groups.WakeGroups(now)
	s.slots.FillInOrder(now)
	for s.states.RetryFirst() {
		s.slots.FillInOrder(now)
	}
}

// Work delivers a value when there is work to take.
func (s *Store) Work() <-chan struct{} { return s.model.Out.WorkReady }

// TakeWork returns what to write to the cluster. Items about the same asker must be
// written in this order.
func (s *Store) TakeWork() []output.Work {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cache.Take(&s.model.Out.Work)
}

// TakeVacated returns the nodes that are kept for fewer pods since the last call, so that pods that
// were refused there may try again. A node is also listed when its holder was bound there. Room may
// be left, and the scheduler has no event that would bring back the pods that the hold kept off.
func (s *Store) TakeVacated() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cache.Take(&s.model.Out.Vacated)
}

// Options are the settings of a store.
type Options = model.Options

// PreemptionOptions set when and how fast queues preempt for their guarantees.
type PreemptionOptions = preemption.Options

// DefaultPreemption returns the options of a store without SetPreemption.
func DefaultPreemption() PreemptionOptions { return preemption.DefaultOptions() }

// SetPreemption replaces the options.
func (s *Store) SetPreemption(o PreemptionOptions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.TouchAll()
	s.model.Preemption.Options = o
	s.model.Preemption.Ledger.TimesChange()
	s.model.SetStrict(o.StrictGuarantee)
}
