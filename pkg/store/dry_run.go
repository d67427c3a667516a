package store

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
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
	World   *planner.World
	Ask     *planner.Ask
	// Params does not have the filters.
	Params planner.Params
	// Delay is how long a pod of the queue has to wait before it may preempt.
	Delay time.Duration
	// Required is the input of a decision if the pod can run on one node only and that
	// node exists; nil otherwise. Its Params do not have the filters.
	Required *output.RequiredAttempt
}

// dryRunUID is the UID of the pod of a dry run.
const dryRunUID types.UID = "preview"

// atATime is the number of nodes that are made again in one hold of the lock.
const atATime = 64

// DryRun returns what would happen to a pod. It changes nothing.
func (s *Readers) DryRun(event objects.Pod, now time.Time) (r *DryRun) {
	event.UID, event.Foreign, event.Peer, event.Claim, event.Told = dryRunUID, false, false, nil, ""
	event.Normalize()
	event.Created = now
	for more := true; more; {
		s.mu.Lock()
		more = s.model.RenewSome(atATime)
		s.mu.Unlock()
	}
	for r == nil {
		r = s.dryRunOn(event, s.Spec())
	}
	return r
}

// dryRunOn makes one try; nil if the configuration is another one by now.
func (s *core) dryRunOn(event objects.Pod, spec *config.Spec) *DryRun {
	scratch := queues.NewDraftFrom(spec) // slow with many queues, so it is done without the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model.Cache.Spec != spec {
		return nil
	}
	r, p := &DryRun{}, model.NewPod(&event, nil)
	if s.dryRunPlace(r, p); r.Unplaced.None() {
		s.dryRunQuota(r, p, scratch)
	}
	if r.Unplaced.None() {
		s.dryRunWorld(r, p)
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

// with is a queue tree with additional queues that do not exist.
type with struct {
	queues.View
	made map[queues.ID]*queues.Queue
}

// Queue returns a queue of the tree, or one that would be created.
func (w with) Queue(id queues.ID) *queues.Queue {
	if q := w.made[id]; q != nil {
		return q
	}
	return w.View.Queue(id)
}

// dryRunQuota checks the quotas for a pod in its queue. If that does not exist, it is
// created in scratch.
func (s *core) dryRunQuota(r *DryRun, p *model.Pod, scratch *queues.Draft) {
	path := r.Placement.Path
	r.Snapshot, r.Holds, r.Waiting = s.model.Cache.Snapshot(), s.model.Preemption.Holds.View(), s.model.Pending.Order.Eligible()
	made := map[queues.ID]*queues.Queue{}
	if q, exists := s.model.Cache.Tree().Find(path); exists {
		r.Leaf = q.ID
	} else if r.Unplaced = s.model.Options.DynamicQueues.Admit(s.model.Cache.Tree(), path, p.Namespace); !r.Unplaced.None() {
		return
	} else if r.Leaf = s.createMissing(made, scratch, path, p.Namespace); r.Leaf == queues.NoQueue {
		r.Unplaced = reasons.New(reasons.PlacementRuleFailed, "rule %s: queue %s cannot be made", r.Placement.Rule, path)
		return
	}
	r.Queues = with{r.Snapshot, made}
	live := with{s.model.Cache.Tree(), made}
	if !r.Joins {
		p.App.Owner = queues.Owner{User: r.Identity.User.Name, Group: queues.GroupFor(live, r.Leaf, r.Identity.User.Groups)}
	}
	p.App.Leaf = r.Leaf
	r.OverMax = queues.Admit(live, r.Leaf, p.Request, queues.OnAllocated).Reason
	r.Limited = s.model.Cache.Books.CheckLimits(live, &p.App.CacheApp, p.Request, queues.OnAllocated).Reason
	r.Never, r.Delay = s.plans.Never(p), live.Queue(r.Leaf).Policies.PreemptionDelay
	r.Params.StrictGuarantee = s.model.Preemption.StrictGuarantee
}

// createMissing creates the missing queues of a path in scratch, as the configuration defines
// them, with IDs that no queue has.
func (s *core) createMissing(made map[queues.ID]*queues.Queue, scratch *queues.Draft, path, namespace string) queues.ID {
	leaf, err := scratch.AddDynamic(path, namespace)
	if err != nil {
		return queues.NoQueue
	}
	scratch.ApplyQuotasTo(leaf, s.model.Cache.Namespaces.Quota)
	next := queues.ID(0)
	for q := range s.model.Cache.Tree().All() {
		next = max(next, q.ID+1)
	}
	id := queues.NoQueue
	var missing []*queues.Queue
	for q := range scratch.Ancestors(leaf) {
		if there, exists := s.model.Cache.Tree().Find(q.Path); exists {
			id = there.ID
			break
		}
		missing = append(missing, q)
	}
	for _, q := range slices.Backward(missing) {
		settings := *q.Settings
		settings.Parent = id
		id = next
		made[id] = &queues.Queue{ID: id, Settings: &settings}
		next++
	}
	return id
}

// dryRunWorld takes the planning snapshot. The types that only the pod requests are not
// added to those of real plans.
func (s *core) dryRunWorld(r *DryRun, p *model.Pod) {
	r.World = s.model.PlanningWorld()
	own := s.model.Preemption.Snapshot.Types.Clone()
	r.Ask = model.AskOf(&own, p)
	if n := s.model.Cache.Nodes.Get(p.RequiredNode); n != nil && p.RequiredNode != "" {
		node, before := s.plans.RequiredView(&own, n, p)
		node.Types, node.Queues = own.Names(), r.Queues
		ask := &daemonset.Ask{Ask: r.Ask, OverMax: plans.OverMax(with{s.model.Cache.Tree(), r.Queues.(with).made}, p)}
		r.Required = &output.RequiredAttempt{Node: node, Before: before, Ask: ask, Params: s.model.Preemption.Required}
	}
	r.World.Types, r.World.Queues = own.Names(), r.Queues
}
