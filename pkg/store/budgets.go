package store

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
)

// UpsertBudget sets a PodDisruptionBudget.
func (s *Store) UpsertBudget(b objects.Budget, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	if s.budgets.upsert(b) {
		s.touchNamespace(b.Namespace)
	}
}

// DeleteBudget handles the deletion of a PodDisruptionBudget.
func (s *Store) DeleteBudget(namespace, name string, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	if s.budgets.remove(namespace, name) {
		s.touchNamespace(namespace)
	}
}

func (s *Store) touchNamespace(namespace string) {
	for _, n := range s.nodes {
		if s.preemption.Snapshot.IsStale(n.name) {
			continue
		}
		for _, p := range n.pods {
			if p.Namespace == namespace {
				s.touch(n)
				break
			}
		}
	}
}

// disruptionsLeft is what the budgets still allow, for [victims.World]. Victims of plans
// in force count as gone if inForce is true.
func (s *Store) disruptionsLeft(inForce bool) []int64 {
	s.budgets.recount(s.guardedPods())
	return s.budgets.left(inForce)
}

func (s *Store) guardedPods() iter.Seq[guarded] {
	return func(yield func(guarded) bool) {
		for _, p := range s.pods {
			if !yield(p.guarded()) {
				return
			}
		}
	}
}

// guarded is the pod as budgets see it.
func (p *pod) guarded() guarded {
	return guarded{namespace: p.Namespace, name: p.Name, labels: p.Labels, part: p.budgetPart()}
}

// budgetPart is how the pod counts in the sums of budgets.
func (p *pod) budgetPart() part {
	switch {
	case p.Health != objects.Ready || p.Deleting:
		return inNoSum
	case p.chosenBy != "":
		return isChosen
	}
	return isHealthy
}

// budgetsFor lists the indexes in disruptionsLeft that a disruption of the pod counts
// against.
func (s *Store) budgetsFor(p *pod) []int { return s.budgets.over(p.guarded(), p.Health) }

// recounted runs a change of a known pod and updates the sums of budgets.
func (s *Store) recounted(p *pod, change func()) {
	if len(s.budgets.of[p.Namespace]) == 0 {
		change()
		return
	}
	before := p.guarded()
	change()
	after := p.guarded()
	if before.part == after.part && maps.Equal(before.labels, after.labels) {
		return
	}
	s.budgets.count(before, -1)
	s.budgets.count(after, 1)
}

// takeOver takes over an event of a known pod. The pod is marked as changed for plans if
// budgets count it differently.
func (s *Store) takeOver(p *pod, event *objects.Pod) {
	health, before := p.Health, []int(nil)
	if health != event.Health {
		before = s.budgetsFor(p)
	}
	s.recounted(p, func() { p.say(event) })
	s.resourceTypes.note(p)
	if health != event.Health && !slices.Equal(before, s.budgetsFor(p)) {
		s.touchPod(p)
	}
}
