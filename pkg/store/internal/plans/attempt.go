package plans

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/admission"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/holds"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Plans makes room for pods that may run on many nodes.
type Plans struct {
	*model.Model
	states    *admission.States
	groups    *admission.Groups
	holds     *holds.Holds
	nodeBound *NodeBound
}

// New returns the plans for the preemptors of a model.
func New(m *model.Model, states *admission.States, groups *admission.Groups, held *holds.Holds, nodeBound *NodeBound) *Plans {
	return &Plans{m, states, groups, held, nodeBound}
}

// Attempt returns the input of a plan, or why no plan is made now.
func (x *Plans) Attempt(uid types.UID, kind string, inPermit []types.UID, now time.Time) (*output.Attempt, reasons.Reason) {
	p, known := x.Pods[uid]
	switch {
	case !known || !x.Started:
		return nil, reasons.Brief(reasons.Starting)
	case p.App == nil:
		return nil, x.states.Explain(p)
	case p.State.HasNode():
		return nil, reasons.Reason{Code: reasons.InOrder, Text: "the pod has a node"}
	case x.holds.MayNotHold(p):
		return nil, holds.NotLeading()
	}
	if v := x.states.CheckGroup(p); !v.OK() {
		return nil, v.Reason
	}
	if p.State.HasSlot() && !p.GroupIncomplete() {
		x.Pending.Classes.Join(&p.EquivalenceClass, p.App.Ordered, p.Request, kind, p.State)
	}
	if why := x.mayPlan(p, now); !why.None() {
		x.History.Say(p, why.Code, now.Add(x.Preemption.RetryInterval))
		return nil, why
	}
	x.holds.SetInPermit(p, inPermit)
	p.Asks.TriedAt = now
	x.Preemption.Watches.PlanBegins()
	ask := model.AskOf(&x.Preemption.Snapshot.Types, p) // before the snapshot: it may add a resource type
	ask.Group = x.groupFor(p, nil)
	w := x.PlanningWorld()
	x.setFree(ask.Group, p)
	w.Nodes = p.Sweeping().Rest(w.Nodes)
	return &output.Attempt{Ask: ask, World: w, Strict: x.Preemption.StrictGuarantee}, reasons.Reason{}
}

// mayPlan runs the checks before a plan.
func (x *Plans) mayPlan(p *model.Pod, now time.Time) reasons.Reason {
	if why := x.Never(p); !why.None() {
		return why
	}
	if h, ok := x.Preemption.Holds.Of(p.UID); ok {
		taken := x.holds.Taken(p, &h)
		if taken.None() {
			return preemption.MakingRoom(&h)
		}
		x.holds.EndHold(p, reservations.Superseded, taken, now)
	}
	why, again := x.Gate(p, now)
	if !again.IsZero() {
		if why.Code != reasons.PreemptionPaced {
			p.Asks.RetryAt = again
		}
		x.states.Arm(p, again)
	}
	return why
}

// Never returns why no plan is ever made for a pod under the current configuration.
func (x *Plans) Never(p *model.Pod) reasons.Reason {
	switch {
	case p.NeverPreempts:
		return reasons.New(reasons.PreemptionNever, "its preemptionPolicy is Never")
	case !x.Cache.Spec.PreemptionEnabled:
		return reasons.New(reasons.PreemptionDisabled, "queues do not preempt: the partition has preemption.enabled: false")
	}
	return cache.NotOffered(p.Pod)
}

// Gate returns why no plan is made for a pod now, and when one may be made; zero if time
// does not decide that.
func (x *Plans) Gate(p *model.Pod, now time.Time) (why reasons.Reason, again time.Time) {
	leaf := x.Cache.Tree().Queue(p.App.Leaf)
	if end := p.DelayEnd(x.Cache.Tree()); end.After(now) {
		if !x.MayAsk(p) { // no check of the pod follows the end of the delay
			return NotOwed(leaf), time.Time{}
		}
		return reasons.New(reasons.PreemptionDelayed, "queue %s preempts for pods that waited for %v, this one in %v",
			leaf.Path, leaf.Policies.PreemptionDelay, timeLeft(end, now)), time.Time{}
	}
	if v := x.Cache.Books.CheckLimits(x.Cache.Tree(), &p.App.CacheApp, p.Request, queues.OnAllocated); !v.OK() {
		return v.Reason, time.Time{}
	}
	if from, why := p.PlanFrom(); from.After(now) {
		return why, from
	}
	if tried, refused := p.LastRefused(); !refused.None() && tried.Add(model.AtMostEvery).After(now) {
		return refused, tried.Add(model.AtMostEvery)
	}
	if at := x.Preemption.VictimsFrom(1, now); at.After(now) {
		return x.Preemption.RoundIsFull(), at
	}
	if at := x.Preemption.Limiter.PlansFrom(now); at.After(now) {
		return reasons.New(reasons.PreemptionPaced, "plans for other pods came to nothing and used up the time there is for such; this pod is planned for as soon as there is time again"), at
	}
	return reasons.Reason{}, time.Time{}
}

// NotOwed is the refusal of a preemptor in a queue that already has its guarantee.
func NotOwed(leaf *queues.Queue) reasons.Reason {
	return reasons.New(reasons.PreemptionRefused, "neither queue %s nor one above it is below its guarantee in what the pod requests (law 4)", leaf.Path)
}

// RejectPlan notes why a plan failed, and when the next one may be made.
func (x *Plans) RejectPlan(uid types.UID, d *planner.Decision, now time.Time) reasons.Reason {
	p, over := x.planned(uid)
	if !over.None() {
		x.Preemption.Watches.PlanEnds()
		return over
	}
	why, code, watched, retry := output.Refusal(d), reasons.PreemptionRefused, named(x.Cache.Tree(), d), x.Preemption.RetryInterval
	if d.Outcome == planner.Wait {
		why, watched, retry = x.roomAwaited(p, d.Node)
		code = why.Code
	}
	x.EnterStep(p, output.Step{Kind: output.StepRefused, Decision: d, Reason: why}, now)
	x.History.Say(p, code, now.Add(x.Preemption.RetryInterval))
	if p.Sweeping().Continue(d) {
		retry = model.AtMostEvery
	}
	p.Asks.Refused, p.Asks.RetryAt = why, now.Add(retry)
	if t := p.EquivalenceClass; t != nil {
		t.TriedAt, t.RetryAt, t.Refused = now, p.Asks.RetryAt, why
	}
	x.states.Arm(p, p.Asks.RetryAt)
	x.Preemption.Limiter.PlanFailed(len(x.Preemption.Snapshot.Nodes()), d.FitsCalls, now)
	x.Preemption.Watches.Set(p.UID, watched)
	x.Preemption.Watches.PlanRefused(p.UID)
	return why
}

// roomAwaited is for a pod that fits a node without victims. It returns the room that the
// pod waits for, the changes that end the wait, and after which time the pod is planned
// for without such a change.
func (x *Plans) roomAwaited(p *model.Pod, node string) (why reasons.Reason, watched []preemption.Watched, retry time.Duration) {
	watched, retry = []preemption.Watched{preemption.WatchedNode(node)}, x.Preemption.RetryInterval
	leaving := x.holds.AwaitedOfQueues(p)
	if len(leaving) > 0 {
		watched = append(watched, watchedPath(x.Cache.Tree(), p)...)
	}
	leaving = append(leaving, x.holds.Awaited(&reservations.Hold{Node: node})...)
	var until []string
	for _, h := range x.Preemption.Holds.Holders(node) {
		until = append(until, fmt.Sprintf("pod %s/%s, which holds the node, is placed", h.Namespace, h.Name))
	}
	if len(leaving) > 0 {
		until = append(until, "pods that leave already are gone: "+x.holds.WhoLeaves(leaving, node))
	}
	if _, why := x.Cache.Nodes.Unusable(node); !why.None() {
		return why, watched, retry
	}
	if len(until) == 0 {
		return reasons.New(reasons.WaitingForRoom, "pods on node %s ended while this pod was tried; it is tried again in its turn", node), watched, model.AtMostEvery
	}
	return reasons.New(reasons.WaitingForRoom, "node %s has room for the pod once %s; the pod that is first in the order then gets it",
		node, strings.Join(until, ", and ")), watched, retry
}

// planned returns the pod that a plan was made for, or why the plan no longer applies:
// the pod is gone or has a node.
func (x *Plans) planned(uid types.UID) (*model.Pod, reasons.Reason) {
	p, known := x.Pods[uid]
	switch {
	case !known || p.App == nil:
		return nil, reasons.Brief(reasons.Starting)
	case p.State.HasNode():
		return nil, reasons.Reason{Code: reasons.InOrder, Text: "the pod has a node"}
	}
	return p, reasons.Reason{}
}

// named returns the queues and nodes where a change may lift a refusal. Root is left out
// because it changes with every pod; the retry interval covers it.
func named(tree *queues.Draft, d *planner.Decision) []preemption.Watched {
	var out []preemption.Watched
	for _, path := range d.Named {
		if q, ok := tree.Find(path); ok && !q.IsRoot() {
			out = append(out, preemption.WatchedQueue(q.ID))
		}
	}
	for _, node := range d.Unfit {
		out = append(out, preemption.WatchedNode(node))
	}
	return out
}

// timeLeft is the time left until a given time, rounded for messages.
func timeLeft(until, now time.Time) time.Duration {
	d := until.Sub(now)
	if d > time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

// watchedPath returns the queues on a pod's path, below root.
func watchedPath(tree *queues.Draft, p *model.Pod) []preemption.Watched {
	var out []preemption.Watched
	for q := range tree.Ancestors(p.App.Leaf) {
		if !q.IsRoot() {
			out = append(out, preemption.WatchedQueue(q.ID))
		}
	}
	return out
}
