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
	slices.SortFunc(order, func(a, b *Pod) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created), strings.Compare(a.UID, b.UID))
	})
	n := int64(0)
	for _, v := range order {
		if v.Consume(left) {
			n++
		}
	}
	return n
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

// Spare removes the victims that are not needed, from the last to the first, and returns
// the rest. It tries whole runs before their halves: if many were taken because of one,
// most are not needed. count subtracts a victim from the sums that enough checks (sign -1),
// or adds it again. passes checks what goes beyond the sums.
func Spare[V any](taken []V, count func(v *V, sign int64), enough func() bool, passes func(rest []V) bool) []V {
	rest := taken
	var try func(from, to int) // rest has all that are before to
	try = func(from, to int) {
		for i := from; i < to; i++ {
			count(&taken[i], -1)
		}
		if enough() {
			if less := slices.Concat(rest[:from], rest[to:]); passes(less) {
				rest = less
				return
			}
		}
		for i := from; i < to; i++ {
			count(&taken[i], 1)
		}
		if half := (from + to) / 2; half > from {
			try(half, to)
			try(from, half)
		}
	}
	try(0, len(taken))
	return rest
}
