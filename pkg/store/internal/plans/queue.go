package plans

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// EnqueueDue puts due pods into the order. If the delays of very many pods end at once,
// the next Tick goes on; it is due at once.
func (x *Plans) EnqueueDue(now time.Time) {
	x.m.Preemption.Limiter.Recover(now)
	room := x.m.Preemption.Limiter.Room(x.m.PreemptionQueue.Order.Eligible())
	for looks := 0; room > 0 && looks < mostLooks; looks++ {
		uid, ok := x.m.PreemptionQueue.TakeDue(now)
		if !ok {
			return
		}
		if p := x.m.Pods[uid]; x.decideNext(p, now) {
			x.m.PreemptionQueue.Enter(p.Asker, x.m.Cache.Tree(), p.App.Ordered, p.AskKey(), p.Request)
			room--
		}
	}
}

// mostLooks bounds the pods that are checked in one hold of the lock.
const mostLooks = 1000

// decideNext sets what follows for a pod that left the preemption queue: when it is checked
// again, and what it watches. It tells whether a plan is worth making for it now.
func (x *Plans) decideNext(p *model.Pod, now time.Time) (plan bool) {
	next := x.nextFor(p, now)
	if !next.keepWatches {
		x.m.Preemption.Watches.Set(p.UID, next.watch)
	}
	if next.retryGroup {
		x.states.ToQueued(p)
	}
	if !next.again.IsZero() {
		x.states.Arm(p, next.again)
	}
	return next.plan
}

// next is what follows for a pod that left the preemption queue.
type next struct {
	plan        bool                 // a plan is worth making
	again       time.Time            // when the pod is checked again
	keepWatches bool                 // the time after its last refusal lasts, so its watches stay
	watch       []preemption.Watched // the queues that it watches from now on
	retryGroup  bool                 // its group tries again: it is not admitted alone
}

// nextFor returns what follows for a pod. It is not built on WhyNotNow. That returns the first
// reason, and lets a cycle that takes place anyway plan a second after the last refusal. Here
// the latest of all times counts, with the retry interval, and law 4 comes after them.
func (x *Plans) nextFor(p *model.Pod, now time.Time) next {
	from, _ := p.PlanFrom()
	from = preemption.Latest(p.DelayEnd(x.m.Cache.Tree()), p.Asker.RetryAt, from, x.m.Preemption.VictimsFrom(1, now))
	if t := p.EquivalenceClass; t != nil {
		from = preemption.Latest(from, t.RetryAt)
	}
	switch {
	case from.After(now):
		return next{again: from, keepWatches: true}
	case !x.Never(p).None():
		return next{} // until the next configuration, or until the types count
	case !x.m.MeetsLaw4(p), !x.m.CheckPodLimits(p).OK():
		return next{watch: watchedPath(x.m.Cache.Tree(), p)}
	case p.GroupIncomplete(), !isStuck(p):
		// An unschedulable pod is stuck, so its group is incomplete.
		return next{again: x.m.Preemption.Later(now), retryGroup: p.State == state.Unschedulable}
	}
	return next{plan: true}
}

// isStuck tells whether a pod waits for room that others use: no node took it, or the max
// of a queue above its leaf is used up.
func isStuck(p *model.Pod) bool {
	switch p.State {
	case state.Unschedulable, state.BackingOff: // one that is GroupBlocked is about to be woken
		return true
	case state.Queued:
		if p.HeldByClass() {
			return true
		}
		v := p.Ask.Group().Verdict()
		return v.Reason.Code == reasons.OverMax && v.At != p.App.Leaf
	}
	return false
}

// takeChanges brings the next plan of the askers forward that watch a changed queue or
// node, to a second after their last one. Pods that law 4 stops keep watching, and so do node-bound
// pods until their next plan.
func (x *Plans) takeChanges(now time.Time) {
	for _, uid := range x.m.Preemption.Watches.Take(now) {
		p := x.m.Pods[uid]
		soonest := p.Asker.TriedAt.Add(preemption.AtMostEvery)
		if p.RequiredNode != "" {
			x.states.ReturnBy(p, preemption.Latest(now, soonest))
			continue
		}
		if !x.m.MeetsLaw4(p) {
			continue
		}
		x.m.Preemption.Watches.Remove(uid)
		p.Sweeping().Restart()
		if p.EquivalenceClass != nil {
			p.EquivalenceClass.RetryAt = soonest
		}
		from, _ := p.PlanFrom()
		p.Asker.RetryAt = preemption.Latest(soonest, from)
		x.states.Arm(p, p.Asker.RetryAt)
	}
}

// LetAskerThrough lets the first pod of the preemption queue through to have a plan made, if
// no other pod is being tried.
func (x *Plans) LetAskerThrough(now time.Time) {
	x.takeChanges(now)
	x.m.Preemption.Limiter.Recover(now)
	for x.m.Started && !x.m.Standby && !x.m.Preemption.Limiter.PlansFrom(now).After(now) {
		uid, ok := x.m.PreemptionQueue.First()
		if !ok {
			return
		}
		p := x.m.Pods[uid]
		x.m.PreemptionQueue.LeaveOrder(p.Asker)
		if !x.decideNext(p, now) {
			continue
		}
		// Whatever the result, the pod is not tried again before that.
		p.Asker.RetryAt = now.Add(x.m.Preemption.RetryInterval)
		x.m.PreemptionQueue.Begin(uid)
		x.states.LetThrough(p, now)
	}
}
