package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/plans"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// DryRun is what would happen to a pod if it existed. The pod is never
// charged.
type DryRun struct {
	Identity placement.Identity
	// Placement is the result of the rules. Unplaced is why the pod has no queue or is
	// not evaluated further; then the rest is empty.
	Placement placement.Result
	Unplaced  reasons.Reason
	// Joins is true if its application has pods already, so that their queue is the
	// pod's.
	Joins bool
	// Queues are all queues, with those that would be created; Leaf is the pod's.
	Queues   queues.View
	Snapshot *queues.Snapshot
	Leaf     queues.ID
	// OverMax is why the max of a queue refuses the pod, Limited why a limit of users,
	// groups or applications does; none if they allow it.
	OverMax, Limited reasons.Reason
	// Never is why no plan would ever be made for the pod.
	Never reasons.Reason
	// Waiting is the number of pods in the order now.
	Waiting int
	Holds   *reservations.View

	// Request is what the pod would be charged.
	Request resources.Vector
	Plan    output.PlanInput
	// Delay is how long a pod of the queue has to wait before it may preempt.
	Delay time.Duration
	// NodeBound is the input of a decision if the pod is node-bound and its node exists; nil
	// otherwise. Its Params do not have the filters.
	NodeBound *output.NodeBoundPlanInput
	// OwnLeave is why that node is not held for the pod if no pod is chosen to go; none if it is held.
	OwnLeave reasons.Reason
}

// dryRunUID is the UID of the pod of a dry run.
const dryRunUID types.UID = "preview"

// DryRun returns what would happen to a pod; never nil. It changes nothing.
func (s *Readers) DryRun(event objects.Pod, now time.Time) *DryRun {
	event.UID, event.Foreign, event.Peer, event.Claim, event.Told = dryRunUID, false, false, nil, ""
	event.Normalize()
	event.Created = now
	for more := true; more; {
		s.mu.Lock()
		more = s.model.UpdateSome(atOnce)
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, p := &DryRun{}, model.NewPod(&event, nil)
	if s.dryRunPlace(r, p); r.Unplaced.None() {
		s.dryRunQuota(r, p)
	}
	if r.Unplaced.None() {
		s.dryRunSnapshot(r, p, now)
	}
	return r
}

// dryRunPlace places the pod by the rules, or in the queue of its application.
func (s *core) dryRunPlace(r *DryRun, p *model.Pod) {
	if !s.model.Started {
		r.Unplaced = s.model.NotStarted()
		return
	}
	s.model.Cache.Types.Split(p.Pod)
	r.Request = p.Request
	if r.Unplaced = cache.Chargeable(p.Pod); !r.Unplaced.None() {
		return
	}
	if r.Identity, r.Unplaced = s.model.Identify(p.Pod); !r.Unplaced.None() {
		return
	}
	if _, r.Unplaced = s.life.KeptBackBy(p, r.Identity); !r.Unplaced.None() {
		return
	}
	r.Placement, r.Unplaced = s.model.Rules(p, r.Identity)
	name := model.AppName(p, r.Identity)
	a := s.model.Apps.Joinable(s.model.Cache.Tree(), name, false)
	if leaf, ok := s.model.Cache.Tree().Find(r.Placement.Path); a == nil && ok && r.Unplaced.None() {
		a = s.model.Apps.In(leaf.ID, name)
	}
	if a != nil {
		r.Joins, r.Unplaced = true, reasons.Reason{}
		r.Placement.Path, r.Placement.Create = s.model.Cache.Path(a.Leaf), false
		joined := *a
		p.App = &joined
		return
	}
	p.App = &model.App{CacheApp: model.CacheApp{Name: name}}
}

// dryRunQuota checks the quotas for a pod in its queue. If that does not exist, it is
// created in a fork of the tree.
func (s *core) dryRunQuota(r *DryRun, p *model.Pod) {
	tree, path := s.model.Cache.Tree(), r.Placement.Path
	r.Snapshot, r.Holds, r.Waiting = s.model.Cache.Snapshot(), s.model.Preemption.Ledger.View(), s.model.Pending.Order.Eligible()
	if r.Unplaced = s.model.Options.DynamicQueues.Admit(tree, path, p.Namespace); !r.Unplaced.None() {
		return
	}
	fork := tree.Fork()
	r.Leaf = fork.AddDynamic(path, p.Namespace)
	if fork.Changed() {
		fork.ApplyQuotasTo(r.Leaf, s.model.Cache.Namespaces.Quota)
	}
	r.Queues = fork.Publish(r.Snapshot)
	if !r.Joins {
		p.App.Owner = queues.Owner{User: r.Identity.User.Name, Group: queues.GroupFor(r.Queues, r.Leaf, r.Identity.User.Groups)}
	}
	p.App.Leaf = r.Leaf
	r.OverMax = queues.Admit(r.Queues, r.Leaf, p.Request, queues.OnArriving).Reason
	r.Limited = s.model.Cache.Books.CheckLimits(r.Queues, &p.App.CacheApp, p.App.Counted(), p.Request, queues.OnArriving).Reason
	r.Never, r.Delay = s.plans.Never(p), r.Queues.Queue(r.Leaf).Policies.PreemptionDelay
}

// dryRunSnapshot takes the planning snapshot. The types that only the pod requests are not
// added to those of real plans.
func (s *core) dryRunSnapshot(r *DryRun, p *model.Pod, now time.Time) {
	planning, own := s.model.PlanningSnapshot(), s.model.Preemption.Snapshot.Types.Clone()
	planning.Nodes = s.plans.BesideWaiting(p, planning.Nodes)
	r.Plan = output.PlanInput{Snapshot: planning, Ask: model.AskOf(&own, p), Params: s.plans.Params()}
	if n := s.model.Cache.Nodes.Get(p.RequiredNode); n != nil && p.RequiredNode != "" {
		node, before := s.plans.RequiredView(&own, n, p, now)
		node.Types, node.Queues = own.Names(), r.Queues
		ask := &daemonset.Ask{Ask: r.Plan.Ask, OverMax: plans.OverMaxPath(r.Queues, p)}
		r.NodeBound = &output.NodeBoundPlanInput{Node: node, Before: before, Ask: ask, Params: s.model.Preemption.NodeBoundParams}
		if s.holds.AwaitsItsOwn(p, n) {
			r.OwnLeave = plans.OwnLeave(n.Name())
		}
	}
	planning.Types, planning.Queues = own.Names(), r.Queues
}
