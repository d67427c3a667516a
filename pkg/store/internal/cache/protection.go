package cache

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/objects"
)

// Protection has what makes a disruption of a pod worse: PriorityClasses that opt their
// pods out of preemption (law 1), and PodDisruptionBudgets with how many disruptions each
// allows after those that are under way: the victims of plans in force, and deleted pods
// that the status of the budget does not include yet. Make one with NewProtection.
type Protection struct {
	optedOut map[string]bool      // PriorityClasses
	of       map[string][]*budget // by namespace
	// at has the budgets by index; nil for a free index. In planning snapshots budget i
	// is two numbers: what it allows of ready pods at 2i, and of running pods that are
	// not ready at 2i+1.
	at []*budget
	// changed are the namespaces with a budget that may cover other pods than at the last TakeChanged.
	changed map[string]bool
}

// NewProtection returns a Protection without classes and budgets.
func NewProtection() Protection {
	return Protection{optedOut: map[string]bool{}, of: map[string][]*budget{}, changed: map[string]bool{}}
}

// SetClass sets whether the pods of a PriorityClass are opted out. It tells whether this
// is a change. A class that is gone is not opted out.
func (d *Protection) SetClass(name string, optOut bool) bool {
	if d.optedOut[name] == optOut {
		return false
	}
	if d.optedOut[name] = optOut; !optOut {
		delete(d.optedOut, name)
	}
	return true
}

// OptedOut tells whether a pod should not be preempted. The pod's own setting overrides
// that of its PriorityClass in both directions, unless ignoreOwn is true.
func (d *Protection) OptedOut(pod *objects.Pod, ignoreOwn bool) bool {
	if pod.OptOut != objects.OptOutUnsaid && !ignoreOwn {
		return pod.OptOut == objects.OptOutYes
	}
	return d.optedOut[pod.Class]
}

// A status of a PodDisruptionBudget has the number of pods that were healthy when it was
// written, but not which ones. So the healthy pods are also counted here, from the pods'
// current state. The smaller number counts: the status may lack a deletion, or the pods may
// lag behind the status. Counting deletions until the status falls would fail if a
// replacement becomes ready in between, because the status then never changes.

// budget is a PodDisruptionBudget with its pods.
type budget struct {
	objects.Budget
	index int // in Protection.at
	// healthy counts the pods that are ready and not deleted, without those that the
	// status lists as disrupted. chosen counts the victims among them. Both are 0 while the
	// pods must be counted again.
	healthy, chosen int64
	uncounted       bool
}

// Guarded is a pod as budgets see it.
type Guarded struct {
	*objects.Pod
	// Deleting is true once the pod is being deleted. It may be ahead of the event.
	Deleting bool
	// Chosen is true for a victim of a plan in force.
	Chosen bool
}

// healthy tells whether the pod is in the sums of budgets.
func (g Guarded) healthy() bool {
	return g.Pod != nil && g.Health == objects.Ready && !g.Deleting
}

// boundless is more than the number of pods.
const boundless = int64(1) << 40

// UpsertBudget sets a PodDisruptionBudget.
func (d *Protection) UpsertBudget(next objects.Budget) {
	b := d.budget(next.Namespace, next.Name)
	if b == nil {
		b = &budget{index: slices.Index(d.at, nil)}
		if b.index < 0 {
			b.index, d.at = len(d.at), append(d.at, nil)
		}
		d.at[b.index] = b
		d.of[next.Namespace] = append(d.of[next.Namespace], b)
	}
	same := b.Generation == next.Generation && b.Generation > 0 && maps.Equal(b.DisruptedPods, next.DisruptedPods)
	if b.Budget = next; !same {
		b.healthy, b.chosen, b.uncounted = 0, 0, true
		d.changed[b.Namespace] = true
	}
}

// TakeChanged returns the namespaces with budgets that may cover other pods than at the last call.
func (d *Protection) TakeChanged() map[string]bool {
	taken := d.changed
	d.changed = map[string]bool{}
	return taken
}

// budget returns a budget; nil if it is not known.
func (d *Protection) budget(namespace, name string) *budget {
	for _, b := range d.of[namespace] {
		if b.Name == name {
			return b
		}
	}
	return nil
}

// DeleteBudget removes a PodDisruptionBudget, if it is known.
func (d *Protection) DeleteBudget(namespace, name string) {
	b := d.budget(namespace, name)
	if b == nil {
		return
	}
	d.changed[namespace] = true
	d.at[b.index] = nil
	d.of[namespace] = slices.DeleteFunc(d.of[namespace], func(o *budget) bool { return o == b })
	if len(d.of[namespace]) == 0 {
		delete(d.of, namespace)
	}
}

// PodChanged updates the sums of budgets after a change. The zero Guarded is a pod that is not there.
func (d *Protection) PodChanged(before, after Guarded) {
	if len(d.of) == 0 || before.Pod != nil && after.Pod != nil &&
		before.healthy() == after.healthy() && before.Chosen == after.Chosen && maps.Equal(before.Labels, after.Labels) {
		return
	}
	d.count(before, -1)
	d.count(after, 1)
}

// count adds a pod to the sums of the budgets that cover it, or subtracts it if n is -1.
func (d *Protection) count(p Guarded, n int64) {
	if !p.healthy() {
		return
	}
	for _, b := range d.of[p.Namespace] {
		if !b.uncounted {
			b.count(p, n)
		}
	}
}

// count is Protection.count for one budget of the namespace.
func (b *budget) count(p Guarded, n int64) {
	if !p.healthy() || !b.covers(p) {
		return
	}
	b.healthy += n
	if p.Chosen {
		b.chosen += n
	}
}

// covers tells whether the budget covers a pod of its namespace. A pod that the status
// lists as disrupted is already counted there.
func (b *budget) covers(p Guarded) bool {
	return b.Matches != nil && b.Matches(p.Labels) && !b.DisruptedPods[p.Name]
}

// Budgets lists the indexes in the result of Left that a disruption of a pod counts
// against; several budgets may cover a pod. As in upstream's eviction, no budget guards a
// pod that has not started. As in upstream's preemption, no budget covers a pod without
// labels.
func (d *Protection) Budgets(p Guarded) []int {
	if len(p.Labels) == 0 || p.Health == objects.NotStarted {
		return nil
	}
	var out []int
	for _, b := range d.of[p.Namespace] {
		switch {
		case !b.covers(p):
		case p.Health == objects.Ready:
			out = append(out, 2*b.index)
		default:
			out = append(out, 2*b.index+1)
		}
	}
	return out
}

// Left is what all budgets still allow, by the indexes that Budgets returns. If inForce is
// true, victims of plans in force count as gone. pods are all pods.
func (d *Protection) Left(pods iter.Seq[Guarded], inForce bool) []int64 {
	if slices.ContainsFunc(d.at, func(b *budget) bool { return b != nil && b.uncounted }) {
		d.recount(pods)
	}
	out := make([]int64, 2*len(d.at))
	for i, b := range d.at {
		if b != nil {
			out[2*i], out[2*i+1] = b.left(inForce)
		}
	}
	return out
}

// recount counts the pods of budgets that may cover other pods than before.
func (d *Protection) recount(pods iter.Seq[Guarded]) {
	for p := range pods {
		for _, b := range d.of[p.Namespace] {
			if b.uncounted {
				b.count(p, 1)
			}
		}
	}
	for _, b := range d.at {
		if b != nil {
			b.uncounted = false
		}
	}
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

// Check verifies the sums of budgets against all pods.
func (d *Protection) Check(pods iter.Seq[Guarded]) error {
	var errs []error
	for i, b := range d.at {
		if b == nil {
			continue
		}
		anew := budget{Budget: b.Budget}
		for p := range pods {
			if p.Namespace == b.Namespace && !b.uncounted {
				anew.count(p, 1)
			}
		}
		if b.healthy != anew.healthy || b.chosen != anew.chosen {
			errs = append(errs, fmt.Errorf("budget %s/%s counts %d healthy and %d chosen pods, there are %d and %d",
				b.Namespace, b.Name, b.healthy, b.chosen, anew.healthy, anew.chosen))
		}
		if b.index != i || d.budget(b.Namespace, b.Name) != b {
			errs = append(errs, fmt.Errorf("budget %s/%s is not at its index", b.Namespace, b.Name))
		}
	}
	return errors.Join(errs...)
}
