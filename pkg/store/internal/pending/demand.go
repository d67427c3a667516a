package pending

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// While things change, the demand is computed again after a time in proportion to its pods. A
// pod takes 2 to 15 µs (BenchmarkDemand of package store), so with up to 10,000 pods the store's
// lock is held for at most 4 % of the time. Karpenter waits for a second before it adds nodes; a
// pod that lost its room to another must not be Unschedulable by then: true up to 2,500 pods.
const (
	demandPerPod = 400 * time.Microsecond
	demandSoon   = 100 * time.Millisecond
	demandLate   = 4 * time.Second // law: within 5 s
)

// Demand has the pods that found no node and may run if nodes are added, the sum of what
// those request that are within every quota, and the pods whose PodScheduled may need an
// update.
//
// Until the next computation the sum only grows. It may still contain pods that have a node by now,
// so a pod may be called beyond the quotas although it is within.
type Demand struct {
	sum    *queues.Demand
	starts map[*order.App]bool // applications that start in the sum
	pods   map[types.UID]bool
	check  map[types.UID]struct{}
	groups map[PodGroupName]queues.Verdict // on the missing members of a PodGroup together
	within map[types.UID]bool              // members in the sum by such a verdict
	stale  bool                            // pods or usage changed since the sum was computed
	made   time.Time                       // when the sum was computed
}

// NewDemand returns no demand.
func NewDemand() Demand {
	return Demand{
		sum:    queues.NewDemand(),
		starts: map[*order.App]bool{},
		pods:   map[types.UID]bool{},
		check:  map[types.UID]struct{}{},
		groups: map[PodGroupName]queues.Verdict{},
		within: map[types.UID]bool{},
	}
}

// Add adds a pod that found no node. It is not in the sum before Count.
func (d *Demand) Add(uid types.UID) {
	d.pods[uid] = true
	d.stale = true
}

// Remove takes out a pod that has got a node or lost its queue, and tells whether it was
// there.
func (d *Demand) Remove(uid types.UID) bool {
	delete(d.check, uid)
	if !d.Has(uid) {
		return false
	}
	delete(d.pods, uid)
	d.stale = true
	return true
}

// Has tells whether a pod was added.
func (d *Demand) Has(uid types.UID) bool { return d.pods[uid] }

// AnyBut tells whether a pod other than this one was added.
func (d *Demand) AnyBut(uid types.UID) bool {
	return len(d.pods) > 1 || len(d.pods) == 1 && !d.Has(uid)
}

// Pods returns the pods, sorted by UID.
func (d *Demand) Pods() []types.UID { return slices.Sorted(maps.Keys(d.pods)) }

// Changed notes that usage or quotas changed, so the sum must be computed again.
func (d *Demand) Changed() { d.stale = true }

// Sum is the sum of the pods within every quota.
func (d *Demand) Sum() *queues.Demand { return d.sum }

// Starts tells whether an application starts in the sum.
func (d *Demand) Starts(a *order.App) bool { return d.starts[a] }

// Count adds a request to the sum and, with the first one, its application. counted is
// true if the application counts against maxapplications already.
func (d *Demand) Count(v queues.View, leaf queues.ID, o queues.Owner, request resources.Vector, a *order.App, counted bool) {
	starts := !counted && !d.starts[a]
	if starts {
		d.starts[a] = true
	}
	d.sum.Add(v, leaf, o, request, starts)
}

// Decide notes the verdict on the missing members of a PodGroup together, which holds until
// the sum is computed again.
func (d *Demand) Decide(g PodGroupName, v queues.Verdict) { d.groups[g] = v }

// Decided returns the verdict on the missing members of a PodGroup, if there is one.
func (d *Demand) Decided(g PodGroupName) (v queues.Verdict, decided bool) {
	v, decided = d.groups[g]
	return v, decided
}

// CountMember notes that a pod is in the sum by the verdict on its PodGroup.
func (d *Demand) CountMember(uid types.UID) { d.within[uid] = true }

// HasMember tells whether a pod is in the sum by the verdict on its PodGroup.
func (d *Demand) HasMember(uid types.UID) bool { return d.within[uid] }

// Restart empties the sum if it must be computed again and that is due, and tells whether it
// did. The caller counts the pods again; each may need an update.
func (d *Demand) Restart(now time.Time) bool {
	wait := min(max(time.Duration(len(d.pods))*demandPerPod, demandSoon), demandLate)
	if !d.stale || now.Before(d.made.Add(wait)) {
		return false
	}
	d.stale, d.made, d.sum = false, now, queues.NewDemand()
	clear(d.starts)
	clear(d.groups)
	clear(d.within)
	for uid := range d.pods {
		d.check[uid] = struct{}{}
	}
	return true
}

// Recheck notes that PodScheduled of a pod may need an update, until Checked or Remove.
func (d *Demand) Recheck(uid types.UID) { d.check[uid] = struct{}{} }

// ToCheck returns the pods whose PodScheduled may need an update, sorted by UID.
func (d *Demand) ToCheck() []types.UID { return slices.Sorted(maps.Keys(d.check)) }

// Checked takes a pod out of ToCheck.
func (d *Demand) Checked(uid types.UID) { delete(d.check, uid) }

// Check verifies that every pod of the demand waits in a queue, as the function says, and that
// no application starts without pods.
func (d *Demand) Check(waits func(types.UID) bool) error {
	var errs []error
	for uid := range d.pods {
		if !waits(uid) {
			errs = append(errs, fmt.Errorf("demand: pod %s does not wait in a queue", uid))
		}
	}
	if len(d.pods) == 0 && len(d.starts) > 0 && !d.stale {
		errs = append(errs, errors.New("demand: applications start, and no pod is in it"))
	}
	return errors.Join(errs...)
}
