package store

import (
	"errors"
	"fmt"
	"iter"
	"reflect"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// Check verifies the store against itself: the usage of every queue, user and group
// against the sum over the pods, the window, the order, and that every pod has what its
// state requires. It visits everything under the lock, so it is for tests. Package audit
// has the checks for a running scheduler.
func (s *Store) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if !reflect.DeepEqual(s.noTurn, newTurn(nil)) {
		errs = append(errs, errors.New("pods that run share a turn that is not empty"))
	}
	for _, p := range s.sortedPods() {
		if err := s.checkPod(p); err != nil {
			errs = append(errs, fmt.Errorf("pod %s/%s (%s): %w", p.Namespace, p.Name, p.state, err))
		}
	}
	errs = append(errs, s.checkBooks()...)
	errs = append(errs, s.pending.Keys.Check(func(uid types.UID) bool { return s.pods[uid] != nil })...)
	errs = append(errs, s.pending.Classes.Check(func(yield func(*pending.Class, state.State) bool) {
		for _, p := range s.pods {
			if !yield(p.equivalenceClass, p.state) {
				return
			}
		}
	}))
	errs = append(errs, s.checkDemand())
	errs = append(errs, s.cache.Nodes.Check(s.cached()))
	errs = append(errs, s.checkGroups()...)
	errs = append(errs, s.preemption.Check())
	errs = append(errs, s.checkHolds()...)
	errs = append(errs, s.checkRegister()...)
	errs = append(errs, s.cache.Protection.Check(s.guardedPods()), s.cache.Capacity.Check(s.cache.Nodes.Capacity()), s.cache.Types.Check(s.objects()))
	errs = append(errs, s.pending.Check(), s.cache.CheckSnapshot())
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
	case p.In() != p.columns():
		return fmt.Errorf("is charged in columns %b, not in %b", p.In(), p.columns())
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
	case p.state != state.NoQueue && !p.state.HasNode() && !p.Amount().Equal(p.Request):
		return fmt.Errorf("is charged %v and requests %v", p.Amount(), p.Request)
	case p.state.HasNode() != (p.On() != nil):
		return fmt.Errorf("is on a node: %v", p.On() != nil)
	}
	return errors.Join(s.checkShares(p), s.checkAsks(p))
}

func (s *Store) checkBooks() []error {
	slots := map[*pod]struct{}{}
	for _, p := range s.pods {
		if p.state.HasSlot() {
			slots[p] = struct{}{}
		}
	}
	return []error{s.cache.Books.Check(s.cached()), s.cache.Originators.Check(s.cached()), s.apps.Check(s.cached()), s.pending.Window.Check(slots)}
}

// columns are the columns that a pod in its state is charged in.
func (p *pod) columns() cache.Columns {
	switch {
	case p.app == nil:
		return 0
	case p.state.HasNode():
		return cache.Allocated | p.moves()
	case p.state.HasSlot() && !p.asks.Holds():
		return cache.Pending | cache.Admitted
	}
	return cache.Pending | p.moves()
}

// cached yields the cache's records of all pods.
func (s *Store) cached() iter.Seq[*cache.Pod] {
	return func(yield func(*cache.Pod) bool) {
		for _, p := range s.pods {
			if !yield(&p.cachePod) {
				return
			}
		}
	}
}

// OwnersUse returns the usage of users and groups, and the number of all users and groups
// with usage. It holds the lock during the lookups, so pass at most a few hundred.
func (s *Store) OwnersUse(of []queues.Charged) (usage []queues.OwnerUsage, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cache.Books.OwnersUse(of)
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
	case p.state == state.Bound && !p.Amount().Equal(l.Request):
		return fmt.Errorf("uses %v, the store charges %v", l.Request, p.Amount())
	}
	return nil
}
