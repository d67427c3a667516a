package store

import (
	"fmt"
	"iter"
	"maps"
)

// disruptions are the PodDisruptionBudgets, and how many disruptions each allows
// once those that are on their way are counted: the victims of plans in force, and
// deleted pods that the status of the budget does not know of yet. It knows nothing
// of the store, and the store's mutex guards it.
//
// A status says how many pods were healthy when it was written, and not which. So
// the healthy pods are counted here, too, with what pods say now. The smaller number
// counts: the status may lack a deletion, or the pods may lag behind the status.
// Counting deletions and waiting for the status to fall instead would fail where a
// replacement becomes ready in between: then the status never changes.
type disruptions struct {
	budgets map[budgetName]*budget
	of      map[string][]*budget // by namespace
	// at are the budgets by index; nil where there is none. In the worlds of plans
	// budget i is two numbers: what it allows of ready pods at 2i, and of pods that
	// run and are not ready at 2i+1.
	at []*budget
	// uncounted is true while the pods of a budget have to be counted anew.
	uncounted bool
}

// budget is a PodDisruptionBudget with its pods.
type budget struct {
	Budget
	index int
	// healthy counts the pods that are ready and not deleted, without those that
	// the status lists as disrupted; chosen are those among them that are victims.
	healthy, chosen int64
	uncounted       bool
}

type budgetName struct{ namespace, name string }

// Budget is a PodDisruptionBudget as far as the choice of victims goes.
type Budget struct {
	Namespace, Name string
	// Generation changes with the spec; 0 for unknown. Observed is the one that the
	// status is of.
	Generation, Observed int64
	// Matches tells whether it covers pods with such labels; nil covers no pod.
	Matches func(labels map[string]string) bool
	// Allowed is how many disruptions the status allows, Healthy how many pods are
	// healthy by it, and Desired how many have to be.
	Allowed, Healthy, Desired int64
	// AlwaysAllow is unhealthyPodEvictionPolicy AlwaysAllow.
	AlwaysAllow bool
	// Disrupted are the names of pods whose disruption the status has counted already.
	Disrupted map[string]bool
}

// part is what a pod is in the sums of budgets.
type part uint8

// A pod that is not ready, or that was deleted, is in no sum. A victim of a plan in
// force that was not deleted yet is healthy and chosen.
const (
	inNoSum part = iota
	isHealthy
	isChosen
)

// guarded is a pod as budgets see it.
type guarded struct {
	namespace, name string
	labels          map[string]string
	part            part
}

// boundless is more disruptions than there are pods.
const boundless = int64(1) << 40

func newDisruptions() disruptions {
	return disruptions{budgets: map[budgetName]*budget{}, of: map[string][]*budget{}}
}

// upsert takes what is said of a budget, and tells whether it may cover other pods
// than before.
func (d *disruptions) upsert(next Budget) bool {
	key := budgetName{next.Namespace, next.Name}
	b := d.budgets[key]
	if b == nil {
		b = &budget{index: d.free()}
		d.at[b.index] = b
		d.budgets[key] = b
		d.of[next.Namespace] = append(d.of[next.Namespace], b)
	}
	same := b.Generation == next.Generation && b.Generation > 0 && maps.Equal(b.Disrupted, next.Disrupted)
	if b.Budget = next; !same {
		b.uncounted, d.uncounted = true, true
	}
	return !same
}

// free returns an index that no budget has.
func (d *disruptions) free() int {
	for i, b := range d.at {
		if b == nil {
			return i
		}
	}
	d.at = append(d.at, nil)
	return len(d.at) - 1
}

// remove forgets a budget, and tells whether it was known.
func (d *disruptions) remove(namespace, name string) bool {
	key := budgetName{namespace, name}
	b := d.budgets[key]
	if b == nil {
		return false
	}
	delete(d.budgets, key)
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

// count adds a pod to the sums of the budgets that cover it, or with -1 takes it off.
func (d *disruptions) count(p guarded, n int64) {
	if p.part == inNoSum {
		return
	}
	for _, b := range d.of[p.namespace] {
		if !b.uncounted {
			b.count(p, n)
		}
	}
}

func (b *budget) count(p guarded, n int64) {
	if !b.covers(p.labels) || b.Disrupted[p.name] {
		return
	}
	b.healthy += n
	if p.part == isChosen {
		b.chosen += n
	}
}

func (b *budget) covers(labels map[string]string) bool { return b.Matches != nil && b.Matches(labels) }

// recount counts the pods of budgets that may cover others than before.
func (d *disruptions) recount(pods iter.Seq[guarded]) {
	if !d.uncounted {
		return
	}
	anew := map[string][]*budget{}
	for _, b := range d.budgets {
		if b.uncounted {
			b.healthy, b.chosen, b.uncounted = 0, 0, false
			anew[b.Namespace] = append(anew[b.Namespace], b)
		}
	}
	d.uncounted = false
	for p := range pods {
		if p.part != inNoSum {
			for _, b := range anew[p.namespace] {
				b.count(p, 1)
			}
		}
	}
}

// over lists the numbers that a disruption of a pod counts against, in the order of
// left. A pod that has not started is in no budget's way, as for upstream's
// eviction. As for upstream's preemption a pod without labels is covered by no
// budget, and one that the status lists as disrupted is counted already.
func (d *disruptions) over(p guarded, health Health) []int {
	if len(p.labels) == 0 || health == NotStarted {
		return nil
	}
	var out []int
	for _, b := range d.of[p.namespace] {
		switch {
		case !b.covers(p.labels) || b.Disrupted[p.name]:
		case health == Ready:
			out = append(out, 2*b.index)
		default:
			out = append(out, 2*b.index+1)
		}
	}
	return out
}

// left is what all budgets still allow. What the victims of plans in force take is
// deducted where inForce is true. All pods have to be counted.
func (d *disruptions) left(inForce bool) []int64 {
	out := make([]int64, 2*len(d.at))
	for i, b := range d.at {
		if b != nil {
			out[2*i], out[2*i+1] = b.left(inForce)
		}
	}
	return out
}

// left is how many ready pods may go, and how many that run and are not ready. The
// rules for the latter are those of upstream's eviction: they may go if the policy
// of the budget says so, or if the budget has as many healthy pods as it wants.
func (b *budget) left(inForce bool) (ready, unready int64) {
	healthy := b.healthy
	if inForce {
		healthy -= b.chosen
	}
	if ready = max(min(b.Allowed, b.healthy-b.Desired)-(b.healthy-healthy), 0); b.Observed < b.Generation {
		ready = 0 // the status is of another spec: upstream evicts no pod then
	}
	if b.AlwaysAllow || b.Desired > 0 && min(b.Healthy, b.healthy)-(b.healthy-healthy) >= b.Desired {
		return ready, boundless
	}
	return ready, ready
}

// check compares the sums with the pods.
func (d *disruptions) check(pods iter.Seq[guarded]) []error {
	sums := d.sums(pods)
	var errs []error
	for key, b := range d.budgets {
		if got := [2]int64{b.healthy, b.chosen}; !b.uncounted && got != sums[b] {
			errs = append(errs, fmt.Errorf("budget %s/%s counts %v healthy and chosen pods, there are %v", key.namespace, key.name, got, sums[b]))
		}
		if d.at[b.index] != b {
			errs = append(errs, fmt.Errorf("budget %s/%s is not at its index", key.namespace, key.name))
		}
	}
	return errs
}

// sums counts the healthy and the chosen pods of each budget from nothing.
func (d *disruptions) sums(pods iter.Seq[guarded]) map[*budget][2]int64 {
	sums := map[*budget][2]int64{}
	for p := range pods {
		for _, b := range d.of[p.namespace] {
			if p.part == inNoSum || !b.covers(p.labels) || b.Disrupted[p.name] {
				continue
			}
			sum := sums[b]
			sum[0]++
			if p.part == isChosen {
				sum[1]++
			}
			sums[b] = sum
		}
	}
	return sums
}
