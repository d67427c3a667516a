package planner

import (
	"cmp"
	"slices"
	"strings"
)

// Violations counts the victims that a PodDisruptionBudget no longer allows to be
// disrupted. As in upstream's preemption, victims are taken in order of importance, the
// most important first. Each uses one disruption of every budget that covers it, and
// counts as one violation at most.
func Violations(victims []*Pod, allowed []int64) int64 {
	order, left := slices.Clone(victims), slices.Clone(allowed)
	slices.SortFunc(order, compareImportance)
	n := int64(0)
	for _, v := range order {
		if v.Consume(left) {
			n++
		}
	}
	return n
}

// compareImportance orders pods as upstream does: higher priority first, then the older
// pod.
func compareImportance(a, b *Pod) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created), strings.Compare(a.UID, b.UID))
}

// Consume uses one disruption of each budget of a pod, and reports whether the pod
// violates a budget.
func (p *Pod) Consume(left []int64) bool {
	violates := p.Violates(left)
	for _, b := range p.Budgets {
		left[b]--
	}
	return violates
}

// Violates reports whether a budget of the pod has no disruptions left.
func (p *Pod) Violates(left []int64) bool {
	return slices.ContainsFunc(p.Budgets, func(b int) bool { return left[b] <= 0 })
}
