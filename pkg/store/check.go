package store

import (
	"errors"
	"fmt"
	"iter"
	"reflect"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Check verifies the store against itself: the usage of every queue, user and group
// against the sum over the pods, the window, the order, and that every pod has what its
// state requires. It visits everything under the lock, so it is for tests. Package audit
// has the checks for a running scheduler.
func (s *Readers) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if !reflect.DeepEqual(s.model.NoWaitState, model.NewWaitState(nil, "")) {
		errs = append(errs, errors.New("pods that run share a wait state that is not empty"))
	}
	for _, p := range s.model.SortedPods() {
		if err := errors.Join(s.checkPod(p), s.model.Cache.Types.Check(p.Pod)); err != nil {
			errs = append(errs, fmt.Errorf("pod %s/%s (%s): %w", p.Namespace, p.Name, p.State, err))
		}
	}
	errs = append(errs, s.checkBooks()...)
	errs = append(errs, s.model.Pending.Keys.Check(func(uid types.UID) bool { return s.model.Pods[uid] != nil })...)
	errs = append(errs, s.model.Pending.Classes.Check(func(yield func(*pending.Class, state.State) bool) {
		for _, p := range s.model.Pods {
			if !yield(p.EquivalenceClass, p.State) {
				return
			}
		}
	}))
	errs = append(errs, s.checkDemand())
	errs = append(errs, s.model.Cache.Nodes.Check(s.cached()))
	errs = append(errs, s.checkGroups()...)
	errs = append(errs, s.model.Preemption.Check())
	errs = append(errs, s.checkHolds()...)
	errs = append(errs, s.checkHistory()...)
	errs = append(errs, s.model.Cache.Protection.Check(s.model.GuardedPods()), s.model.Cache.Capacity.Check(s.model.Cache.Nodes.Capacity()))
	errs = append(errs, s.model.Pending.Check(), s.model.Cache.CheckSnapshot())
	for _, leaf := range s.model.Cache.Tree().ApplyQuotas(s.model.Cache.Namespaces.Quota) {
		errs = append(errs, fmt.Errorf("queue %s has not the quota of its namespace", s.model.Cache.Path(leaf)))
	}
	return errors.Join(errs...)
}

// checkPod verifies that a pod has what its state requires.
func (s *core) checkPod(p *model.Pod) error {
	if p.Foreign {
		return s.checkForeign(p)
	}
	_, listed := s.model.Unplaced[p.UID]
	_, keyed := s.model.Pending.Keys.Get(p.UID)
	switch {
	case (p.State == state.NoQueue) != listed:
		return fmt.Errorf("listed as unplaced: %v", listed)
	case (p.State == state.NoQueue) != (p.App == nil):
		return fmt.Errorf("has an application: %v", p.App != nil)
	case p.In() != p.Columns(s.model.Preemption.LongestLeaving()):
		return fmt.Errorf("is charged in columns %b, not in %b", p.In(), p.Columns(s.model.Preemption.LongestLeaving()))
	case p.Gang != nil && (p.State != state.NoQueue || s.model.Gangs[p.Gang.Name] != p.Gang || len(p.Gang.HardPods) == 0):
		return fmt.Errorf("is kept back for the Hard gang of %v", p.Gang.Name)
	case p.State == state.GroupBlocked && (p.PodGroup == nil || p.EquivalenceClass != nil):
		return errors.New("waits for its PodGroup, and has none or an equivalence class")
	case (p.State == state.Queued) != (p.Ask != nil):
		return fmt.Errorf("is in the order: %v", p.Ask != nil)
	case (p.State.HasSlot() || p.State == state.BackingOff || s.leavesInTime(p)) != (p.Timer.IsSet()):
		return fmt.Errorf("has a deadline: %v", p.Timer.IsSet())
	case p.State.HasSlot() && !keyed:
		return errors.New("has no sort key")
	case p.State.HasNode() && keyed:
		return errors.New("still has a sort key")
	case p.State.HasNode() && p.Node == "":
		return errors.New("has no node")
	case p.State != state.NoQueue && !p.State.HasNode() && !p.Amount().Equal(p.Request):
		return fmt.Errorf("is charged %v and requests %v", p.Amount(), p.Request)
	case p.State.HasNode() != (p.On() != nil):
		return fmt.Errorf("is on a node: %v", p.On() != nil)
	}
	return errors.Join(s.checkShares(p), s.checkAsker(p))
}

// checkBooks verifies the books, applications and slots against all pods.
func (s *core) checkBooks() []error {
	slots := map[*model.Pod]queues.ID{}
	for _, p := range s.model.Pods {
		if p.State.HasSlot() {
			slots[p] = p.App.Leaf
		}
	}
	return []error{
		s.model.Cache.Books.Check(s.cached()),
		s.model.Cache.Originators.Check(s.cached()),
		s.model.Apps.Check(s.cached()),
		s.model.Pending.Window.Check(slots),
	}
}

// cached yields the cache's records of all pods.
func (s *core) cached() iter.Seq[*cache.Pod] {
	return func(yield func(*cache.Pod) bool) {
		for _, p := range s.model.Pods {
			if !yield(&p.CachePod) {
				return
			}
		}
	}
}

// CompareWith compares the store with a complete listing of the managed pods, as the API
// server has them at a quiet moment.
func (s *Readers) CompareWith(listed []objects.Pod) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	listing := make(map[types.UID]*objects.Pod, len(listed))
	for _, l := range listed {
		listing[l.UID] = &l
	}
	var errs []error
	for _, p := range s.model.SortedPods() {
		l := listing[p.UID]
		delete(listing, p.UID)
		text := ""
		if l != nil {
			l.RequiredNode = p.RequiredNode // it depends on the DaemonSets, too
		}
		if !p.Foreign || l != nil {
			text = output.Differs(s.model.RecordOf(p), l)
		}
		if text == "" && l != nil && (p.State == state.Bound) != (l.Node != "") {
			text = fmt.Sprintf("it runs on node %q, the store has it as %s", l.Node, p.State)
		}
		if text != "" {
			errs = append(errs, fmt.Errorf("pod %s/%s: %s", p.Namespace, p.Name, text))
		}
	}
	for _, l := range listing {
		if text := output.Differs(nil, l); text != "" {
			errs = append(errs, fmt.Errorf("pod %s/%s: %s", l.Namespace, l.Name, text))
		}
	}
	return errors.Join(errs...)
}

// checkShares verifies that a pod has its own values where it needs them.
func (s *core) checkShares(p *model.Pod) error {
	switch runs := p.State == state.Bound; {
	case p.Asker == nil && p.Node == "":
		return errors.New("waits, and has no record of an asker")
	case p.WaitState == s.model.NoWaitState && !runs:
		return errors.New("does not run, and shares its wait state with pods that do")
	case runs && p.WaitState != s.model.NoWaitState && !p.Timer.IsSet():
		return errors.New("runs, but has its own wait state, without a timer")
	case runs && p.Asker != nil && !p.Asker.EverHeld():
		return errors.New("runs, held no node, and keeps a record of an asker")
	case p.Tallied != model.TallyOf(p):
		return fmt.Errorf("is counted as %+v, and is %+v", p.Tallied, model.TallyOf(p))
	}
	return nil
}

// checkDemand verifies that every pod of the demand waits in a queue, and that every pod with a
// verdict is in the demand.
func (s *core) checkDemand() error {
	errs := []error{s.model.Pending.Demand.Check(func(uid types.UID) bool {
		p := s.model.Pods[uid]
		return p != nil && p.App != nil && !p.State.HasNode() && p.State != state.NoQueue
	})}
	for uid, p := range s.model.Pods {
		if p.DemandVerdict != nil && !s.model.Pending.Demand.Has(uid) {
			errs = append(errs, fmt.Errorf("demand: pod %s has a verdict and is not known", uid))
		}
	}
	return errors.Join(errs...)
}
