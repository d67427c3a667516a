package model

import (
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
)

// ReapplyNamespace applies the current annotations of a namespace to the dynamic leaves
// that have its quota or its applications.
func (x *Model) ReapplyNamespace(name string) {
	for _, leaf := range x.Apps.Leaves() {
		q := x.Cache.Tree().Queue(leaf)
		if q.Managed || (q.QuotaNamespace != "" && q.QuotaNamespace != name) || !x.Apps.AnyOf(leaf, name) {
			continue
		}
		x.Cache.Tree().SetNamespaceQuota(leaf, name, x.Cache.Namespaces[name].Quota)
		x.Pending.Demand.Changed()
		x.indexPath(leaf)
		x.Pending.MoreRoom(leaf)
	}
}

// ReapplyQuotas applies changed templates to dynamic leaves with the quota of a
// namespace.
func (x *Model) ReapplyQuotas() {
	for _, leaf := range x.Apps.Leaves() {
		if ns := x.Cache.Tree().Queue(leaf).QuotaNamespace; ns != "" {
			x.Cache.Tree().SetNamespaceQuota(leaf, ns, x.Cache.Namespaces[ns].Quota)
		}
	}
}

// Reledger rebuilds the usage of users and groups, because a configuration can change
// which queues limit which owners.
func (x *Model) Reledger() {
	x.Cache.Books.Rebuild(x.Apps.Records())
	for _, a := range x.Apps.All() {
		x.History.Apps.Add(a)
		x.History.rename(a, x.Cache.Path(a.Leaf))
		x.Pending.Order.SetClass(a.Ordered, a.Class(x.Cache.Tree()))
	}
}

// IndexQueues gives the orders all queues with changed settings.
func (x *Model) IndexQueues() {
	for q := range x.Cache.Tree().All() {
		x.indexQueue(q)
	}
}

// indexPath is IndexQueues for the queues from root to a leaf.
func (x *Model) indexPath(leaf queues.ID) {
	path := slices.Collect(x.Cache.Tree().Ancestors(leaf))
	slices.Reverse(path)
	for _, q := range path {
		x.indexQueue(q)
	}
}

// keepBack refuses a member of a gang while another pod asks for a Hard gang.
func (x *Model) keepBack(p *Pod, id placement.Identity) reasons.Reason {
	g := x.Gangs[cache.AppName{Namespace: p.Namespace, ID: id.Application}]
	if g == nil || id.Shared || id.Gang != placement.GangSoft {
		return reasons.Reason{}
	}
	g.Kept[p.UID], p.Gang = p, g
	return reasons.New(reasons.HardGangUnsupported,
		"application %s has a pod that asks for gangSchedulingStyle=Hard, which is not offered, so no pod of its task groups is started",
		id.Application)
}

// Info is an application as additional orders know it.
func (a *App) Info(tree *queues.Draft) order.AppInfo {
	return order.AppInfo{Leaf: a.Leaf, Name: a.Name.String(), Submitted: a.Submitted, Class: a.Class(tree), Used: a.Committed()}
}

// indexQueue gives a queue to all orders that do not have its current settings.
func (x *Model) indexQueue(q *queues.Queue) {
	if x.Pending.SetQueue(q) {
		x.Asking.Order.SetQueue(q)
	}
}

// AppFor finds or creates the application of a pod, and its queue if that is missing. It
// also returns which gang the pod asks for.
func (x *Model) AppFor(p *Pod) (*App, placement.Gang, reasons.Reason) {
	id, reason := placement.Identify(PlacementOf(p.Pod), x.Options.Placement)
	if reason.None() && p.Node == "" {
		reason = x.keepBack(p, id)
	}
	if !reason.None() && p.Node == "" {
		return nil, id.Gang, reason
	}
	a, reason := x.appOf(p, id)
	return a, id.Gang, reason
}

func (x *Model) appOf(p *Pod, id placement.Identity) (*App, reasons.Reason) {
	running := p.Node != ""
	name := cache.AppName{Namespace: p.Namespace, ID: id.Application}
	if id.Shared {
		name.Queue = id.Queue // the pod's own queue counts, not that of another pod
	}
	if a := x.Apps.Joinable(x.Cache.Tree(), name, running); a != nil {
		return a, reasons.Reason{}
	}
	quota := x.Cache.Namespaces[p.Namespace].Quota
	result, reason := placement.Place(x.Cache.Spec.Rules, placement.Request{
		Identity:  id,
		Namespace: x.Cache.Namespaces.Of(p.Namespace),
		Running:   running,
	}, Tree{x.Cache.Tree()})
	if !reason.None() {
		return nil, reason
	}
	if reason := x.Options.DynamicQueues.Admit(x.Cache.Tree(), result.Path, p.Namespace); !running && !reason.None() {
		return nil, reason
	}
	leaf, err := x.Cache.Tree().AddDynamic(result.Path, p.Namespace)
	if err != nil {
		return nil, reasons.New(reasons.PlacementRuleFailed, "rule %s: %v", result.Rule, err)
	}
	if quota != nil {
		x.Cache.Tree().SetNamespaceQuota(leaf, p.Namespace, quota)
		x.Pending.MoreRoom(leaf)
	}
	x.indexPath(leaf)
	if a := x.Apps.Rejoin(leaf, name); a != nil {
		return a, reasons.Reason{}
	}
	return x.newApp(name, leaf, id.User.Name, id.User.Groups, p.Created), reasons.Reason{}
}

// Tree adapts the draft to package placement.
type Tree struct{ *queues.Draft }

// Queue returns what placement needs to know about a queue.
func (t Tree) Queue(path string) (placement.QueueInfo, bool) {
	q, ok := t.Find(path)
	if !ok {
		return placement.QueueInfo{}, false
	}
	return placement.QueueInfo{Leaf: q.Leaf, Managed: q.Managed, Draining: q.State == queues.Draining}, true
}

// MaySubmit tells whether the user may submit to an existing queue.
func (t Tree) MaySubmit(path, user string, groups []string) bool {
	q, ok := t.Find(path)
	return ok && queues.MaySubmit(t.Draft, q.ID, user, groups)
}
