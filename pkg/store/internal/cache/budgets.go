package cache

import (
	"errors"
	"fmt"
	"iter"
	"maps"

	"github.com/paddock-scheduler/paddock/pkg/objects"
)

// budgets has the PodDisruptionBudgets, and how many disruptions each allows after those
// that are under way: the victims of plans in force, and deleted pods that the status of
// the budget does not include yet.
//
// A status has the number of pods that were healthy when it was written, but not which
// ones. So the healthy pods are also counted here, from the pods' current state. The
// smaller number counts: the status may lack a deletion, or the pods may lag behind the
// status. Counting deletions until the status falls would fail if a replacement becomes
// ready in between, because the status then never changes.
type budgets struct {
	byName map[budgetName]*budget
	of     map[string][]*budget // by namespace
	// at has the budgets by index; nil for a free index. In planning snapshots budget i
	// is two numbers: what it allows of ready pods at 2i, and of running pods that are
	// not ready at 2i+1.
	at []*budget
	// uncounted is true while the pods of some budget must be counted again.
	uncounted bool
}

// budget is a PodDisruptionBudget with its pods.
type budget struct {
	objects.Budget
	index int
	// healthy counts the pods that are ready and not deleted, without those that the
	// status lists as disrupted. chosen counts the victims among them.
	healthy, chosen int64
	uncounted       bool
}

type budgetName struct{ namespace, name string }

// Guarded is a pod as budgets see it.
type Guarded struct {
	*objects.Pod
	// Deleting is true once the pod is being deleted. It may be ahead of the event.
	Deleting bool
	// Chosen is true for a victim of a plan in force.
	Chosen bool
}

// part is how a pod counts in the sums of budgets.
type part uint8

// A pod that is not ready or was deleted is in no sum. A victim of a plan in force that
// is not deleted yet is healthy and chosen.
const (
	inNoSum part = iota
	isHealthy
	isChosen
)

// part is how the pod counts in the sums of budgets.
func (g Guarded) part() part {
	switch {
	case g.Pod == nil || g.Health != objects.Ready || g.Deleting:
		return inNoSum
	case g.Chosen:
		return isChosen
	}
	return isHealthy
}

// boundless is more than the number of pods.
const boundless = int64(1) << 40

func newBudgets() budgets {
	return budgets{byName: map[budgetName]*budget{}, of: map[string][]*budget{}}
}

// upsert sets a budget, and tells whether it may cover other pods than before.
func (d *budgets) upsert(next objects.Budget) bool {
	key := budgetName{next.Namespace, next.Name}
	b := d.byName[key]
	if b == nil {
		b = &budget{index: d.free()}
		d.at[b.index] = b
		d.byName[key] = b
		d.of[next.Namespace] = append(d.of[next.Namespace], b)
	}
	same := b.Generation == next.Generation && b.Generation > 0 && maps.Equal(b.Disrupted, next.Disrupted)
	if b.Budget = next; !same {
		b.uncounted, d.uncounted = true, true
	}
	return !same
}

// free returns a free index.
func (d *budgets) free() int {
	for i, b := range d.at {
		if b == nil {
			return i
		}
	}
	d.at = append(d.at, nil)
	return len(d.at) - 1
}

// remove forgets a budget, and tells whether it was known.
func (d *budgets) remove(namespace, name string) bool {
	key := budgetName{namespace, name}
	b := d.byName[key]
	if b == nil {
		return false
	}
	delete(d.byName, key)
	d.at[b.index] = nil
	var left []*budget
	for _, other := range d.of[namespace] {
		if other != b {
			left = append(left, other)
		}
	}
	if d.of[namespace] = left; len(left) == 0 {
		delete(d.of, namespace)
	}
	return true
}

// count adds a pod to the sums of the budgets that cover it, or subtracts it if n is -1.
func (d *budgets) count(p Guarded, n int64) {
	if p.part() == inNoSum {
		return
	}
	for _, b := range d.of[p.Namespace] {
		if !b.uncounted {
			b.count(p, n)
		}
	}
}

func (b *budget) count(p Guarded, n int64) {
	if !b.covers(p.Labels) || b.Disrupted[p.Name] {
		return
	}
	b.healthy += n
	if p.part() == isChosen {
		b.chosen += n
	}
}

func (b *budget) covers(labels map[string]string) bool { return b.Matches != nil && b.Matches(labels) }

// recount counts the pods of budgets that may cover other pods than before.
func (d *budgets) recount(pods iter.Seq[Guarded]) {
	if !d.uncounted {
		return
	}
	anew := map[string][]*budget{}
	for _, b := range d.byName {
		if b.uncounted {
			b.healthy, b.chosen, b.uncounted = 0, 0, false
			anew[b.Namespace] = append(anew[b.Namespace], b)
		}
	}
	d.uncounted = false
	for p := range pods {
		if p.part() != inNoSum {
			for _, b := range anew[p.Namespace] {
				b.count(p, 1)
			}
		}
	}
}

// over lists the indexes in the result of left that a disruption of a pod counts against.
// As in upstream's eviction, no budget guards a pod that has not started. As in
// upstream's preemption, no budget covers a pod without labels, and a pod that the status
// lists as disrupted is already counted.
func (d *budgets) over(p Guarded) []int {
	if len(p.Labels) == 0 || p.Health == objects.NotStarted {
		return nil
	}
	var out []int
	for _, b := range d.of[p.Namespace] {
		switch {
		case !b.covers(p.Labels) || b.Disrupted[p.Name]:
		case p.Health == objects.Ready:
			out = append(out, 2*b.index)
		default:
			out = append(out, 2*b.index+1)
		}
	}
	return out
}

// left is what all budgets still allow. If inForce is true, the victims of plans in force
// are deducted. All pods must be counted before.
func (d *budgets) left(inForce bool) []int64 {
	out := make([]int64, 2*len(d.at))
	for i, b := range d.at {
		if b != nil {
			out[2*i], out[2*i+1] = b.left(inForce)
		}
	}
	return out
}

// left is how many ready pods, and how many running pods that are not ready, may be
// disrupted. The rules for the latter are those of upstream's eviction: they may be if
// the budget's policy says so, or if the budget has as many healthy pods as it requires.
func (b *budget) left(inForce bool) (ready, unready int64) {
	healthy := b.healthy
	if inForce {
		healthy -= b.chosen
	}
	if ready = max(min(b.Allowed, b.healthy-b.Desired)-(b.healthy-healthy), 0); b.Observed < b.Generation {
		ready = 0 // the status is for an older spec: upstream then evicts no pod
	}
	if b.AlwaysAllow || b.Desired > 0 && min(b.Healthy, b.healthy)-(b.healthy-healthy) >= b.Desired {
		return ready, boundless
	}
	return ready, ready
}

func (d *budgets) check(pods iter.Seq[Guarded]) error {
	sums := d.sums(pods)
	var errs []error
	for key, b := range d.byName {
		if got := [2]int64{b.healthy, b.chosen}; !b.uncounted && got != sums[b] {
			errs = append(errs, fmt.Errorf("budget %s/%s counts %v healthy and chosen pods, there are %v", key.namespace, key.name, got, sums[b]))
		}
		if d.at[b.index] != b {
			errs = append(errs, fmt.Errorf("budget %s/%s is not at its index", key.namespace, key.name))
		}
	}
	return errors.Join(errs...)
}

// sums counts the healthy and the chosen pods of each budget from scratch.
func (d *budgets) sums(pods iter.Seq[Guarded]) map[*budget][2]int64 {
	sums := map[*budget][2]int64{}
	for p := range pods {
		for _, b := range d.of[p.Namespace] {
			if p.part() == inNoSum || !b.covers(p.Labels) || b.Disrupted[p.Name] {
				continue
			}
			sum := sums[b]
			sum[0]++
			if p.part() == isChosen {
				sum[1]++
			}
			sums[b] = sum
		}
	}
	return sums
}
