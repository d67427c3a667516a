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
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// AcceptPlan begins the hold that a plan asks for.
func (x *Plans) AcceptPlan(uid types.UID, d *planner.Decision, now time.Time) reasons.Reason {
	x.m.Preemption.Watches.PlanEnds()
	p, why := x.asker(uid)
	if !why.None() {
		return why
	}
	if why = x.accept(p, d, now); !why.None() {
		x.m.EnterStep(p, output.Step{Kind: output.StepRefused, Decision: d, Reason: why}, now)
	}
	return why
}

// accept puts a plan into force, or returns why not.
func (x *Plans) accept(p *model.Pod, d *planner.Decision, now time.Time) reasons.Reason {
	if h, holds := x.m.Preemption.Ledger.Of(p.UID); holds {
		return preemption.MakingRoom(&h)
	}
	if _, why := x.m.Cache.Nodes.Unusable(d.Node); !why.None() {
		return why
	}
	chosen, why, from := x.takeVictims(d.Chosen(), now)
	if !from.IsZero() {
		x.deferPlan(p, why, from, now)
	}
	if !why.None() {
		return why
	}
	going := make([]*model.Pod, 0, len(chosen))
	for _, uid := range chosen {
		going = append(going, x.m.Pods[uid])
	}
	byFilters := x.holds.NotNeeded(p, x.m.Cache.Nodes.Get(d.Node), going) // asked before they count as leaving
	since := p.Asker.NextHold(now)
	h := reservations.Hold{Node: d.Node, Since: since, Chosen: chosen, Decision: preemption.DecisionID(p.UID, since)}
	stale := x.holds.ReadBefore(p, d.Node)
	if err := x.holds.PlaceHold(p, h, now); err != nil {
		return reasons.New(reasons.HoldGivenUp, "%v", err)
	}
	held, _ := x.m.Preemption.Ledger.Of(p.UID)
	if stale || len(byFilters) == 0 && x.holds.Ready(p, &held) { // it fits now: the plan counted pods that wait
		x.states.ReturnBy(p, now)
	}
	p.Asker.Decision, p.Asker.ByFilters = d, byFilters
	p.Sweeping().Restart()
	x.m.EnterStep(p, output.Step{Kind: output.StepHeld, Decision: d, Reason: p.Reason}, now)
	x.queueWrite(p, output.WorkDeleteVictims, now)
	return reasons.Reason{}
}

// queueWrite queues a write of the current hold of an asker.
func (x *Plans) queueWrite(p *model.Pod, kind output.WorkKind, now time.Time) {
	h, _ := x.m.Preemption.Ledger.Of(p.UID)
	p.Asker.ToldAt = now
	x.m.AddWork(output.Work{Ref: p.Ref(), Kind: kind, Hold: h, Decision: p.Asker.Decision, NodeBoundDecision: p.Asker.NodeBoundDecision})
}

// takeVictims returns the victims of a plan and counts them, if all of them are still there
// and the round has room for them. Otherwise it returns why they may not be chosen, and the
// next round if that is the reason.
func (x *Plans) takeVictims(victims []*planner.Pod, now time.Time) (chosen []types.UID, why reasons.Reason, from time.Time) {
	for _, v := range victims {
		p := x.m.Pods[types.UID(v.UID)]
		if p == nil || p.On() == nil || x.m.CountsAsLeaving(p) || !x.m.GoesSooner(p) {
			return nil, reasons.New(reasons.HoldGivenUp, "pod %s/%s went while the plan was made", v.Namespace, v.Name), time.Time{}
		}
		chosen = append(chosen, p.UID)
	}
	if at := x.m.Preemption.VictimsFrom(len(chosen), now); at.After(now) {
		return nil, x.m.Preemption.RoundIsFull(), at
	}
	x.m.Preemption.VictimsChosen(len(chosen), now)
	return chosen, reasons.Reason{}, time.Time{}
}

// RejectPlan notes why a plan failed, and when the next one may be made.
func (x *Plans) RejectPlan(uid types.UID, d *planner.Decision, now time.Time) reasons.Reason {
	p, over := x.asker(uid)
	if !over.None() {
		x.m.Preemption.Watches.PlanEnds()
		return over
	}
	why, code, watched, retry := output.Refusal(d), reasons.PreemptionRefused, watchesOf(x.m.Cache.Tree(), d), x.m.Preemption.RetryInterval
	if d.Outcome == planner.Wait {
		why, watched, retry = x.roomAwaited(p, d.Node)
		code = why.Code
	}
	x.m.EnterStep(p, output.Step{Kind: output.StepRefused, Decision: d, Reason: why}, now)
	x.m.History.NotePlanResult(p, code, now.Add(x.m.Preemption.RetryInterval))
	p.Asker.NoRoom = why.Code == reasons.PreemptionRefused && d.FitsCalls == 0 && len(*p.Sweeping()) == 0
	if p.Sweeping().Continue(d) {
		retry = preemption.AtMostEvery
	}
	p.Asker.Refused, p.Asker.RetryAt = why, now.Add(retry)
	if t := p.EquivalenceClass; t != nil && d.Outcome != planner.Wait { // the others of the class need other room
		t.TriedAt, t.RetryAt, t.Refused = now, p.Asker.RetryAt, why
	}
	x.states.Arm(p, p.Asker.RetryAt)
	x.m.Preemption.Limiter.PlanFailed(len(x.m.Preemption.Snapshot.Nodes()), d.FitsCalls, now)
	x.m.Preemption.Watches.Set(p.UID, watched)
	x.setWaiting(p, d.Node, code == reasons.WaitingForRoom)
	x.m.Preemption.Watches.PlanRefused(p.UID)
	return why
}

// roomAwaited is for a pod that fits a node without victims. It returns the room that the
// pod waits for, the changes that end the wait, and after which time the pod is planned
// for without such a change.
func (x *Plans) roomAwaited(p *model.Pod, node string) (why reasons.Reason, watched []preemption.Watched, retry time.Duration) {
	watched, retry = []preemption.Watched{preemption.WatchedNode(node)}, x.m.Preemption.RetryInterval
	if len(x.holds.AwaitedOfQueues(p)) > 0 {
		watched = append(watched, watchedPath(x.m.Cache.Tree(), p)...)
	}
	leaving := x.holds.Awaited(p, &reservations.Hold{Node: node})
	var until []string
	for _, h := range x.m.Preemption.Ledger.On(node) {
		until = append(until, fmt.Sprintf("pod %s/%s, which holds the node, is placed", h.Namespace, h.Name))
	}
	if len(leaving) > 0 {
		until = append(until, "pods that leave already are gone: "+x.holds.ListLeaving(leaving, node))
	}
	if _, why := x.m.Cache.Nodes.Unusable(node); !why.None() {
		return why, watched, retry
	}
	if len(until) == 0 {
		return reasons.New(reasons.WaitingForRoom, "pods on node %s ended while this pod was tried; it is tried again in its turn", node),
			watched, preemption.AtMostEvery
	}
	return reasons.New(reasons.WaitingForRoom, "node %s has room for the pod once %s; the pod that is first in the order then gets it",
		node, strings.Join(until, ", and ")), watched, retry
}

// watchesOf returns the queues and nodes where a change may lift a refusal.
func watchesOf(tree *queues.Draft, d *planner.Decision) []preemption.Watched {
	var out []preemption.Watched
	for _, path := range d.Named {
		if q, ok := tree.Find(path); ok {
			out = append(out, preemption.WatchedQueue(q.ID))
		}
	}
	for _, node := range d.Unfit {
		out = append(out, preemption.WatchedNode(node))
	}
	return out
}

// watchedPath returns the queues on a pod's path.
func watchedPath(tree *queues.Draft, p *model.Pod) (out []preemption.Watched) {
	for q := range tree.Ancestors(p.App.Leaf) {
		out = append(out, preemption.WatchedQueue(q.ID))
	}
	return out
}
