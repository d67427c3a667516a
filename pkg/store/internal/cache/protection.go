package cache

import (
	"iter"
	"maps"

	"github.com/paddock-scheduler/paddock/pkg/objects"
)

// Protection has what makes a disruption of a pod worse: PriorityClasses that opt their
// pods out of preemption (law 1), and disruption budgets. Make one with NewProtection.
type Protection struct {
	optedOut map[string]bool // PriorityClasses
	budgets  budgets
}

// NewProtection returns a Protection without classes and budgets.
func NewProtection() Protection {
	return Protection{optedOut: map[string]bool{}, budgets: newBudgets()}
}

// SetClass sets whether the pods of a PriorityClass are opted out. It tells whether this
// is a change. A class that is gone is not opted out.
func (p *Protection) SetClass(name string, optOut bool) bool {
	if p.optedOut[name] == optOut {
		return false
	}
	if p.optedOut[name] = optOut; !optOut {
		delete(p.optedOut, name)
	}
	return true
}

// OptedOut tells whether a pod should not be preempted. The pod's own setting overrides
// that of its PriorityClass in both directions, unless ignoreOwn is true.
func (p *Protection) OptedOut(pod *objects.Pod, ignoreOwn bool) bool {
	if pod.OptOut != objects.OptOutUnsaid && !ignoreOwn {
		return pod.OptOut == objects.OptOutYes
	}
	return p.optedOut[pod.Class]
}

// UpsertBudget sets a PodDisruptionBudget. It tells whether the budget may cover other
// pods than before.
func (p *Protection) UpsertBudget(b objects.Budget) bool { return p.budgets.upsert(b) }

// DeleteBudget removes a PodDisruptionBudget. It tells whether the budget was known.
func (p *Protection) DeleteBudget(namespace, name string) bool {
	return p.budgets.remove(namespace, name)
}

// Change updates the sums of budgets after a change of a pod. The zero Guarded is a pod
// that is not there.
func (p *Protection) Change(before, after Guarded) {
	if len(p.budgets.of) == 0 || before.Pod != nil && after.Pod != nil && before.part() == after.part() && maps.Equal(before.Labels, after.Labels) {
		return
	}
	p.budgets.count(before, -1)
	p.budgets.count(after, 1)
}

// Left is what all budgets still allow, by the indexes that Budgets returns. If inForce is
// true, victims of plans in force count as gone. pods are all pods.
func (p *Protection) Left(pods iter.Seq[Guarded], inForce bool) []int64 {
	p.budgets.recount(pods)
	return p.budgets.left(inForce)
}

// Budgets lists the indexes in the result of Left that a disruption of a pod counts
// against. It is a list, because several budgets may cover a pod.
func (p *Protection) Budgets(pod Guarded) []int { return p.budgets.over(pod) }

// Check verifies the sums of budgets against all pods.
func (p *Protection) Check(pods iter.Seq[Guarded]) error { return p.budgets.check(pods) }
