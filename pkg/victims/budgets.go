package victims

import (
	"cmp"
	"slices"
	"strings"
)

// Violations counts the victims that a PodDisruptionBudget allows no more. As in
// upstream's preemption each victim uses up one disruption of every budget that
// covers it, the most important victim first, and is one violation at most.
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

// compareImportance puts the pod first that upstream holds for more important: the
// one of higher priority, then the older one.
func compareImportance(a, b *Pod) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created), strings.Compare(a.UID, b.UID))
}

// Consume lets a pod use up its budgets, and tells whether it violates one.
func (p *Pod) Consume(left []int64) bool {
	violates := p.Violates(left)
	for _, b := range p.Budgets {
		left[b]--
	}
	return violates
}

// Violates tells whether a budget of the pod has no disruptions left.
func (p *Pod) Violates(left []int64) bool {
	return slices.ContainsFunc(p.Budgets, func(b int) bool { return left[b] <= 0 })
}

// violations counts those of a list of candidates.
func violations(of []candidate, allowed []int64) int64 {
	pods := make([]*Pod, len(of))
	for i := range of {
		pods[i] = of[i].pod
	}
	return Violations(pods, allowed)
}
