package store

import (
	"iter"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
)

// UpsertBudget sets a PodDisruptionBudget.
func (s *Store) UpsertBudget(b objects.Budget, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	if s.cache.Protection.UpsertBudget(b) {
		s.touchNamespace(b.Namespace)
	}
}

// DeleteBudget handles the deletion of a PodDisruptionBudget.
func (s *Store) DeleteBudget(namespace, name string, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	if s.cache.Protection.DeleteBudget(namespace, name) {
		s.touchNamespace(namespace)
	}
}

func (s *Store) touchNamespace(namespace string) {
	for n := range s.cache.Nodes.All() {
		if s.preemption.Snapshot.IsStale(n.Name()) {
			continue
		}
		for p := range n.Pods() {
			if p.Namespace == namespace {
				s.touch(n)
				break
			}
		}
	}
}

// disruptionsLeft is what the budgets still allow, for [planner.World]. Victims of plans
// in force count as gone if inForce is true.
func (s *Store) disruptionsLeft(inForce bool) []int64 {
	return s.cache.Protection.Left(s.guardedPods(), inForce)
}

func (s *Store) guardedPods() iter.Seq[cache.Guarded] {
	return func(yield func(cache.Guarded) bool) {
		for _, p := range s.pods {
			if !yield(p.guarded()) {
				return
			}
		}
	}
}

// objects yields the latest event of each pod.
func (s *Store) objects() iter.Seq[*objects.Pod] {
	return func(yield func(*objects.Pod) bool) {
		for _, p := range s.pods {
			if !yield(p.Pod) {
				return
			}
		}
	}
}

// guarded is the pod as budgets see it.
func (p *pod) guarded() cache.Guarded {
	return cache.Guarded{Pod: p.Pod, Deleting: p.Deleting, Chosen: p.chosenBy != ""}
}

// recounted runs a change of a known pod and updates the sums of budgets.
func (s *Store) recounted(p *pod, change func()) {
	before := p.guarded()
	change()
	s.cache.Protection.Change(before, p.guarded())
}

// takeOver takes over an event of a known pod. The pod is marked as changed for plans if
// budgets count it differently.
func (s *Store) takeOver(p *pod, event *objects.Pod) {
	health, before := p.Health, []int(nil)
	if health != event.Health {
		before = s.cache.Protection.Budgets(p.guarded())
	}
	s.recounted(p, func() { p.Say(event) })
	s.cache.Types.Note(p.Pod)
	if health != event.Health && !slices.Equal(before, s.cache.Protection.Budgets(p.guarded())) {
		s.touchPod(p)
	}
}

// setCapacity sets the capacity of all nodes.
func (s *Store) setCapacity(sum resources.Vector, now time.Time) {
	s.cache.Tree().SetCapacity(sum)
	if s.cache.Capacity.Set(sum, s.started, now) {
		s.tellCapacity()
	}
}

// tellCapacity gives the orders the capacity that they are to use.
func (s *Store) tellCapacity() {
	told := s.cache.Capacity.Told()
	s.pending.SetCapacity(told)
	s.asking.Order.SetCapacity(told)
}
