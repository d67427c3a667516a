package queues

import "github.com/paddock-scheduler/paddock/pkg/resources"

// Demand is the sum of the requests of pods that found no node, as far as quotas allow all
// of these pods at once: what would run on new nodes. It is kept for each queue with a max,
// for each user and group with a limit, and as the number of applications that would start.
// If a quota has no room for a pod beside the demand, the pod could not run on a new node,
// and a cluster autoscaler should add none for it. Demand is not charged to queues.
// [Basis.With] also uses a Demand, as the sum of the pods that pass the gate together, or, with
// negative amounts, to leave out a pod.
//
// It has one writer and no lock. The zero value is empty; for readers, nil is empty too.
type Demand struct {
	queues  map[ID]asked
	owners  map[Charged]asked
	beneath *Demand // readers see the sum of both; nil for none
}

// asked is what a Demand adds to a queue, a user or a group.
type asked struct {
	request resources.Vector // of a queue only below root and with a max
	starts  int              // the number of applications that would start
}

func (a asked) add(b asked) asked { return asked{a.request.Add(b.request), a.starts + b.starts} }

// NewDemand returns an empty demand.
func NewDemand() *Demand { return &Demand{queues: map[ID]asked{}, owners: map[Charged]asked{}} }

// OnTop returns a demand that reads as the sum of d and of what is added to it. Adding to it
// does not change d.
func (d *Demand) OnTop() *Demand {
	top := NewDemand()
	top.beneath = d
	return top
}

// Add adds a pod of a leaf and an owner. starts is true for the first pod of an application
// that does not count against maxapplications yet.
func (d *Demand) Add(v View, leaf ID, o Owner, request resources.Vector, starts bool) {
	n := 0
	if starts {
		n = 1
	}
	d.add(v, leaf, o, request, n)
}

// Remove deducts what is already charged for a pod, so that the sum reads as if the pod were
// not charged. ends is true if its application then no longer counts against maxapplications.
func (d *Demand) Remove(v View, leaf ID, o Owner, request resources.Vector, ends bool) {
	n := 0
	if ends {
		n = -1
	}
	d.add(v, leaf, o, resources.Vector{}.Sub(request), n)
}

func (d *Demand) add(v View, leaf ID, o Owner, request resources.Vector, n int) {
	for q := v.Queue(leaf); q != nil; q = v.Queue(q.Parent) {
		here := asked{starts: n}
		if !q.IsRoot() && !q.Max.IsUnlimited() {
			here.request = request
		}
		d.queues[q.ID] = d.queues[q.ID].add(here)
		for _, by := range []Charged{{q.ID, false, o.User}, {q.ID, true, o.Group}} {
			if len(q.Limits) > 0 {
				d.owners[by] = d.owners[by].add(asked{request, n})
			}
		}
	}
}

// Tight returns the queues in which max, a limit or maxapplications has no room for all of the
// demand. Elsewhere all of its pods fit, in any order.
func (d *Demand) Tight(v View, owners *Ledger, on Basis) map[ID]bool {
	tight := map[ID]bool{}
	for id, all := range d.queues {
		q := v.Queue(id)
		running := max(q.Running, 0) + on.extra.of(id).starts
		if !AdmitAt(q, all.request, on).None() || all.starts > 0 && full(q.MaxApplications, running+all.starts-1) {
			tight[id] = true
		}
	}
	for by, all := range d.owners {
		limit := limitOf(v.Queue(by.Queue), by)
		if limit == nil {
			continue
		}
		over := !limit.MaxResources.Allows(on.usedBy(owners.usage[by], by), all.request)
		running := owners.usage[by].Running + on.extra.ofOwner(by).starts
		if over || all.starts > 0 && full(limit.MaxApplications, running+all.starts-1) {
			tight[by.Queue] = true
		}
	}
	return tight
}

func (d *Demand) of(id ID) (sum asked) {
	for ; d != nil; d = d.beneath {
		sum = sum.add(d.queues[id])
	}
	return sum
}

func (d *Demand) ofOwner(by Charged) (sum asked) {
	for ; d != nil; d = d.beneath {
		sum = sum.add(d.owners[by])
	}
	return sum
}

// HasQuota tells whether any quota is on the path of a leaf: a max below root, a limit of
// users or groups, or maxapplications. Pods of other leaves are always within quota.
func HasQuota(v View, leaf ID) bool {
	for q := v.Queue(leaf); q != nil; q = v.Queue(q.Parent) {
		if !q.IsRoot() && !q.Max.IsUnlimited() || q.MaxApplications > 0 || len(q.Limits) > 0 {
			return true
		}
	}
	return false
}
