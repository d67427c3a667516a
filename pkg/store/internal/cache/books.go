package cache

import (
	"errors"
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Columns is a set of columns of the books. A pod is charged one amount in a set of
// columns. A pod without a queue is in none.
type Columns uint8

// The columns.
const (
	Pending   Columns = 1 << iota // the pod has no node
	Admitted                      // it has a slot of the window and holds no node
	Arriving                      // it has no node and holds one
	Allocated                     // it has a node
	Leaving                       // it has a node and is about to leave it
	Preempted                     // it is leaving because it was preempted
)

// Change is what one charge adds to the usage of an application and of its queues. Amounts
// may be negative.
type Change queues.Usage

// ForPlans tells whether the change matters to plans. Changes of pending pods do not.
func (c Change) ForPlans() bool {
	return !c.Allocated.IsZero() || !c.Leaving.IsZero() || !c.Arriving.IsZero()
}

// ChangesOrder tells whether the change matters to the order of queues, which depends on
// what is committed and on the part of it that plans take.
func (c Change) ChangesOrder() bool {
	return !c.committed().IsZero() || !c.Leaving.IsZero() || !c.Preempted.IsZero()
}

// LeavesRoom tells whether quotas may have more room after the change.
func (c Change) LeavesRoom() bool { return c.committed().HasNegative() }

func (c Change) committed() resources.Vector { return c.Allocated.Add(c.Admitted).Add(c.Arriving) }

// Books have the usage of queues, users and groups, and decide what the quotas allow. The
// usage of a queue is in the tree.
type Books struct {
	tree    *queues.Draft
	owners  *queues.Ledger
	leaving map[*Pod]struct{} // that are charged as leaving
}

// NewBooks returns books on a tree without usage.
func NewBooks(tree *queues.Draft) Books {
	return Books{tree: tree, owners: queues.NewLedger(), leaving: map[*Pod]struct{}{}}
}

// Charge sets what a pod of an application is charged, and in which columns. It may be
// called again. It is the only function that changes the usage by a pod.
func (b *Books) Charge(p *Pod, amount resources.Vector, in Columns) Change {
	a, before := p.app, p.charged()
	p.amount, p.in = amount, in
	c := p.charged().Sub(before)
	if in&Leaving != 0 {
		b.leaving[p] = struct{}{}
	} else {
		delete(b.leaving, p)
	}
	a.used = a.used.Add(c)
	if !c.Allocated.IsZero() && !a.mostUsed.Covers(a.used.Allocated) {
		a.mostUsed = a.mostUsed.Add(a.used.Allocated.Sub(a.mostUsed).Floor0())
	}
	b.tree.Update(a.Leaf, func(u *queues.Usage) { *u = u.Add(c) })
	if !c.Allocated.IsZero() || !c.Admitted.IsZero() || !c.Arriving.IsZero() {
		b.owners.Update(b.tree, a.Leaf, a.Owner, func(u *queues.OwnerUsage) { *u = u.Add(c) })
	}
	return Change(c)
}

// AddApplications adds to the number of applications of a leaf.
func (b *Books) AddApplications(leaf queues.ID, n int) {
	b.tree.Update(leaf, func(u *queues.Usage) { u.Applications += n })
}

// UpdateCounted updates whether an application counts against maxapplications. It tells whether
// this changed.
func (b *Books) UpdateCounted(a *App) bool {
	counts := a.counts(a.slots)
	if counts == a.counted {
		return false
	}
	a.counted = counts
	d := 1
	if !counts {
		d = -1
	}
	b.tree.Update(a.Leaf, func(u *queues.Usage) { u.Running += d })
	b.owners.Update(b.tree, a.Leaf, a.Owner, func(u *queues.OwnerUsage) { u.Running += d })
	return true
}

// counts tells whether an application with a number of slots counts against
// maxapplications.
func (a *App) counts(slots int) bool {
	return a.running || slots > 0 || !a.used.Allocated.IsZero() || !a.used.Arriving.IsZero()
}

// Rebuild computes the usage of users and groups again, because a configuration can change
// which queues limit which owners. apps are all applications.
func (b *Books) Rebuild(apps iter.Seq[*App]) {
	b.owners = queues.NewLedger()
	for a := range apps {
		a.Owner.Group = queues.GroupFor(b.tree, a.Leaf, a.Groups)
		b.owners.Update(b.tree, a.Leaf, a.Owner, func(u *queues.OwnerUsage) {
			*u = u.Add(a.used)
			if a.counted {
				u.Running++
			}
		})
	}
}

// The verdicts of the books on one more request of an application:
//
//	CheckQuota     all quotas: max on the path of its queue, limits of its owner, maxapplications
//	WithoutSlotOf  the same, as if a pod had no slot
//	CheckLimits    without max: what preemption never makes room in

// CheckQuota is the verdict of all quotas on one more request of an application. counted tells
// whether the application is taken as counted against maxapplications.
func (b *Books) CheckQuota(a *App, counted bool, request resources.Vector, on queues.Basis) queues.Verdict {
	if v := queues.Admit(b.tree, a.Leaf, request, on); !v.OK() {
		return v
	}
	return b.CheckLimits(b.tree, a, counted, request, on)
}

// CheckLimits is CheckQuota without max: the quotas that preemption never makes room in.
// The view may have more queues than the tree.
func (b *Books) CheckLimits(view queues.View, a *App, counted bool, request resources.Vector, on queues.Basis) queues.Verdict {
	if v := b.owners.Admit(view, a.Leaf, a.Owner, request, on); !v.OK() || counted {
		return v
	}
	if v := queues.AdmitApplication(view, a.Leaf, on); !v.OK() {
		return v
	}
	return b.owners.AdmitApplication(view, a.Leaf, a.Owner, on)
}

// WithoutSlotOf returns the verdict of all quotas, on what is committed, as if p had no slot.
func (b *Books) WithoutSlotOf(p *Pod) func(a *App, request resources.Vector) queues.Verdict {
	on, counted := queues.OnCommitted, true
	if p.in&Admitted != 0 {
		own, less := p.app, queues.NewDemand()
		counted = own.counts(own.slots - 1)
		less.Remove(b.tree, own.Leaf, own.Owner, p.amount, own.counted && !counted)
		on = on.With(less)
	}
	return func(a *App, request resources.Vector) queues.Verdict {
		return b.CheckQuota(a, a.counted && (a != p.app || counted), request, on)
	}
}

// Tight returns the queues in which a quota has no room for all of a demand.
func (b *Books) Tight(d *queues.Demand, on queues.Basis) map[queues.ID]bool {
	return d.Tight(b.tree, b.owners, on)
}

// Awaited returns the leaving pods, on any node, below the full queues of a leaf: those that have
// no room for a request before the pods are gone. Plans count the room of these pods as free,
// verdicts of quotas do not. Without this wait the store would conclude that others took the room,
// and would plan again and again.
func (b *Books) Awaited(leaf queues.ID, request resources.Vector) []types.UID {
	full := map[queues.ID]bool{}
	for q := range b.tree.Ancestors(leaf) {
		if !q.IsRoot() && !q.Leaving.IsZero() && !queues.AdmitAt(q, request, queues.OnAllocated).None() {
			full[q.ID] = true
		}
	}
	var out []types.UID
	for p := range b.leaving {
		for q := range b.tree.Ancestors(p.app.Leaf) {
			if full[q.ID] {
				out = append(out, p.UID)
				break
			}
		}
	}
	return out
}

// BelowGuarantee tells whether a queue on the path of a leaf, below root, is under its
// guarantee in something of a request (law 4). With strict it must be so with the request.
func (b *Books) BelowGuarantee(leaf queues.ID, request resources.Vector, strict bool) bool {
	for q := range b.tree.Ancestors(leaf) {
		if below, _ := q.Guaranteed.Standing(q.Has(), request, strict); below != 0 && !q.IsRoot() {
			return true
		}
	}
	return false
}

// OwnersUse returns the usage of users and groups, and the number of all users and groups
// with usage.
func (b *Books) OwnersUse(of []queues.Charged) (usage []queues.OwnerUsage, all int) {
	for _, k := range of {
		usage = append(usage, b.owners.Usage(k.Queue, k.Group, k.Name))
	}
	return usage, b.owners.Len()
}

// Check verifies the usage of queues, users and groups against the sum over all pods, by
// columns.
func (b *Books) Check(pods iter.Seq[*Pod]) error {
	sum := sums{usage: map[queues.ID]queues.Usage{}, owners: queues.NewLedger(), apps: map[*App]*App{}}
	var errs []error
	for p := range pods {
		switch {
		case p.app != nil:
			sum.add(b.tree, p)
		case p.in != 0:
			errs = append(errs, fmt.Errorf("pod %s/%s is charged without an application", p.Namespace, p.Name))
		}
	}
	for q := range b.tree.All() {
		if w := sum.usage[q.ID]; !q.Usage.Equal(w) {
			errs = append(errs, fmt.Errorf("queue %s: books say %+v, its pods %+v", q.Path, q.Usage, w))
		}
	}
	if len(b.leaving) != sum.leaving {
		errs = append(errs, fmt.Errorf("%d pods are listed as leaving, and %d leave", len(b.leaving), sum.leaving))
	}
	for a, w := range sum.apps {
		if !a.used.Equal(w.used) || a.pods != w.pods {
			errs = append(errs, fmt.Errorf("an application has %d pods and %+v, its pods sum up to %d and %+v", a.pods, a.used, w.pods, w.used))
		}
	}
	if !b.owners.Equal(sum.owners) {
		errs = append(errs, errors.New("the usage of users and groups is not that of their pods"))
	}
	return errors.Join(errs...)
}

// sums are what the books should say, added up from pods.
type sums struct {
	usage   map[queues.ID]queues.Usage
	owners  *queues.Ledger
	apps    map[*App]*App // by the application that is checked
	leaving int
}

// add adds a pod of an application.
func (s *sums) add(tree *queues.Draft, p *Pod) {
	a, c := p.app, p.charged()
	w := s.apps[a]
	if w == nil { // it is the first pod of the application
		w = &App{}
		s.apps[a] = w
		c.Applications = 1
		if a.counted {
			c.Running = 1
		}
	}
	w.used = w.used.Add(p.charged())
	w.pods++
	if p.Is(Leaving) {
		s.leaving++
	}
	for q := range tree.Ancestors(a.Leaf) {
		s.usage[q.ID] = s.usage[q.ID].Add(c)
	}
	s.owners.Update(tree, a.Leaf, a.Owner, func(u *queues.OwnerUsage) { *u = u.Add(c) })
}

// charged is what the pod is charged, by column.
func (p *Pod) charged() queues.Usage {
	return queues.Usage{
		Pending: p.Charged(Pending), Admitted: p.Charged(Admitted), Arriving: p.Charged(Arriving),
		Allocated: p.Charged(Allocated), Leaving: p.Charged(Leaving), Preempted: p.Charged(Preempted),
	}
}
