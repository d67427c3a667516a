package store

import (
	"errors"
	"fmt"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Check verifies the store against itself: the usage of every queue, user and group
// against the sum over the pods, the window, the order, and that every pod has what its
// state requires. It visits everything under the lock, so it is for tests. Package audit
// has the checks for a running scheduler.
func (s *Store) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, p := range s.sortedPods() {
		if err := s.checkPod(p); err != nil {
			errs = append(errs, fmt.Errorf("pod %s/%s (%s): %w", p.Namespace, p.Name, p.state, err))
		}
	}
	for uid, p := range s.leaving {
		if s.pods[uid] != p {
			errs = append(errs, fmt.Errorf("pod %s/%s is gone, and listed as leaving", p.Namespace, p.Name))
		}
	}
	errs = append(errs, s.checkApps()...)
	errs = append(errs, s.checkBooks()...)
	errs = append(errs, s.keys.Check(func(uid types.UID) bool { return s.pods[uid] != nil })...)
	errs = append(errs, s.checkClasses()...)
	errs = append(errs, s.checkDemand())
	errs = append(errs, s.checkNodes())
	errs = append(errs, s.checkGroups()...)
	errs = append(errs, s.preemption.Check())
	errs = append(errs, s.checkHolds()...)
	errs = append(errs, s.checkRegister()...)
	errs = append(errs, s.checkWaitCounts()...)
	errs = append(errs, s.cache.Protection.Check(s.guardedPods()), s.checkCapacity(), s.cache.Types.Check(s.objects()))
	if err := s.index.Check(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, s.transitions.Check(), s.deadlines.Check(), s.lost.Check(), s.tooEarly.Check())
	return errors.Join(errs...)
}

func (s *Store) checkPod(p *pod) error {
	if p.Foreign {
		return s.checkForeign(p)
	}
	_, listed := s.unplaced[p.UID]
	_, keyed := s.Key(p.UID)
	switch {
	case (p.state == state.NoQueue) != listed:
		return fmt.Errorf("listed as unplaced: %v", listed)
	case (p.state == state.NoQueue) != (p.app == nil):
		return fmt.Errorf("has an application: %v", p.app != nil)
	case p.leaving.IsZero() == (s.leaving[p.UID] == p):
		return fmt.Errorf("listed as leaving: %v", s.leaving[p.UID] == p)
	case p.gang != nil && (p.state != state.NoQueue || s.gangs[p.gang.name] != p.gang || len(p.gang.says) == 0):
		return fmt.Errorf("is kept back for the Hard gang of %v", p.gang.name)
	case p.state == state.GroupBlocked && (p.mates == nil || p.equivalenceClass != nil):
		return errors.New("waits for its PodGroup, and has none or an equivalence class")
	case (p.state == state.Queued) != (p.ask != nil):
		return fmt.Errorf("is in the order: %v", p.ask != nil)
	case (p.state.HasSlot() || p.state == state.BackingOff) != (p.timer.IsSet()):
		return fmt.Errorf("has a deadline: %v", p.timer.IsSet())
	case p.state.HasSlot() && !keyed:
		return errors.New("has no sort key")
	case p.state.HasNode() && keyed:
		return errors.New("still has a sort key")
	case p.state.HasNode() && p.Node == "":
		return errors.New("has no node")
	case p.state != state.NoQueue && !p.state.HasNode() && !p.held.Equal(p.Request):
		return fmt.Errorf("is charged %v and requests %v", p.held, p.Request)
	case p.state.HasNode() != (p.On() != nil):
		return fmt.Errorf("is on a node: %v", p.On() != nil)
	case (p.app != nil && !p.Deleting) != (p.elder.at != ranking.Outside):
		return fmt.Errorf("counts as living: %v", p.elder.at != ranking.Outside)
	}
	return errors.Join(s.checkShares(p), s.checkAsks(p))
}

// books are the usage sums computed from the pods.
type books struct {
	usage  map[queues.ID]*queues.Usage
	ledger *queues.Ledger
	slots  map[*pod]struct{} // pods that have a slot
}

func (s *Store) sum() books {
	b := books{usage: map[queues.ID]*queues.Usage{}, ledger: queues.NewLedger(), slots: map[*pod]struct{}{}}
	for q := range s.draft.All() {
		b.usage[q.ID] = &queues.Usage{}
	}
	counted := map[*app]bool{}
	for _, p := range s.pods {
		if p.app == nil {
			continue
		}
		first := !counted[p.app]
		counted[p.app] = true
		s.addPod(b.usage, p, first)
		b.ledger.Update(s.draft, p.app.leaf, p.app.owner, func(u *queues.OwnerUsage) {
			u.Allocated = u.Allocated.Add(p.part(state.Assumed, state.Bound))
			if p.state.HasSlot() {
				u.Admitted = u.Admitted.Add(p.slot)
			}
			if first && p.app.counted {
				u.Running++
			}
		})
		if p.state.HasSlot() {
			b.slots[p] = struct{}{}
		}
	}
	return b
}

// pendingStates are the states that are charged as pending.
var pendingStates = []state.State{state.Queued, state.GroupBlocked, state.Admitted, state.Scheduling, state.Unschedulable, state.BackingOff}

// part is the pod's charge if the pod is in one of the states, else nothing.
func (p *pod) part(states ...state.State) resources.Vector {
	for _, st := range states {
		if p.state == st {
			return p.held
		}
	}
	return resources.Vector{}
}

func (s *Store) addPod(usage map[queues.ID]*queues.Usage, p *pod, first bool) {
	for q := range s.draft.Ancestors(p.app.leaf) {
		u := usage[q.ID]
		u.Allocated = u.Allocated.Add(p.part(state.Assumed, state.Bound))
		if p.state.HasSlot() {
			u.Admitted = u.Admitted.Add(p.slot)
		}
		u.Pending = u.Pending.Add(p.part(pendingStates...))
		switch {
		case p.leaves():
			u.Leaving = u.Leaving.Add(p.part(state.Assumed, state.Bound))
			if p.chosenBy != "" || p.Preempted {
				u.Preempted = u.Preempted.Add(p.part(state.Assumed, state.Bound))
			}
		case p.asks.Holds():
			u.Arriving = u.Arriving.Add(p.part(pendingStates...))
		}
		if first {
			u.Applications++
			if p.app.counted {
				u.Running++
			}
		}
	}
}

func (s *Store) checkBooks() []error {
	var errs []error
	b := s.sum()
	for q := range s.draft.All() {
		if w := b.usage[q.ID]; !sameUsage(q.Usage, *w) {
			errs = append(errs, fmt.Errorf("queue %s: books say %+v, its pods %+v", q.Path, q.Usage, *w))
		}
	}
	if !s.ledger.Equal(b.ledger) {
		errs = append(errs, errors.New("the usage of users and groups is not that of their pods"))
	}
	if err := s.shared.check(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, s.window.Check(b.slots))
	if got := s.snapshot.Load().Root().Usage; !s.unshown.Load() && !sameUsage(got, s.draft.Root().Usage) {
		errs = append(errs, fmt.Errorf("snapshot: root has %+v, the books %+v", got, s.draft.Root().Usage))
	}
	return errs
}

func sameUsage(a, b queues.Usage) bool {
	return a.Allocated.Equal(b.Allocated) && a.Admitted.Equal(b.Admitted) && a.Pending.Equal(b.Pending) &&
		a.Leaving.Equal(b.Leaving) && a.Arriving.Equal(b.Arriving) && a.Preempted.Equal(b.Preempted) &&
		a.Applications == b.Applications && a.Running == b.Running
}

// OwnersUse returns the usage of users and groups, and the number of all users and groups
// with usage. It holds the lock during the lookups, so pass at most a few hundred.
func (s *Store) OwnersUse(of []queues.Charged) (usage []queues.OwnerUsage, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range of {
		usage = append(usage, s.ledger.Usage(k.Queue, k.Group, k.Name))
	}
	return usage, s.ledger.Len()
}

// Recount compares the store with a complete listing of the managed pods, as the API
// server has them at a quiet moment. Every listed pod that uses resources must be known
// with that request and node, and no other pod may be.
func (s *Store) Recount(listed []objects.Pod) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	seen := make(map[types.UID]bool, len(listed))
	for i := range listed {
		l := listed[i]
		l.Normalize()
		s.cache.Types.Split(&l)
		if !l.Terminal && (!l.Deleting || l.Node != "") {
			seen[l.UID] = true
			if err := s.compare(&l); err != nil {
				errs = append(errs, fmt.Errorf("pod %s/%s: %w", l.Namespace, l.Name, err))
			}
		}
	}
	for _, p := range s.sortedPods() {
		if !seen[p.UID] && !p.Foreign {
			errs = append(errs, fmt.Errorf("pod %s/%s: in the store (%s) and not in the listing", p.Namespace, p.Name, p.state))
		}
	}
	return errors.Join(errs...)
}

func (s *Store) compare(l *objects.Pod) error {
	p, known := s.pods[l.UID]
	switch {
	case !known:
		return errors.New("in the listing and not in the store")
	case l.Node != "" && p.state != state.Bound:
		return fmt.Errorf("runs on %s, the store has it as %s", l.Node, p.state)
	case l.Node == "" && p.state == state.Bound:
		return fmt.Errorf("has no node, the store has it bound to %s", p.Node)
	case l.Node != "" && p.Node != l.Node:
		return fmt.Errorf("runs on %s, the store says %s", l.Node, p.Node)
	case p.state == state.Bound && !p.held.Equal(l.Request):
		return fmt.Errorf("uses %v, the store charges %v", l.Request, p.held)
	}
	return nil
}
