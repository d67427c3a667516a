package store

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// The preemption queue is a [preemption.Queue]. This file has what it needs to know of the
// store: when a pod may be planned for, and whether a plan is worth making.

// arm schedules a check of a pod at a time, but not before its delay has ended.
func (s *Store) arm(p *pod, at time.Time) {
	if p.app == nil || p.state.HasNode() || p.asks.Holds() || p.NeverPreempts || p.RequiredNode != "" {
		return // pods that require a node: see required.go
	}
	if end := p.delayEnd(s.cache.Tree()); at.Before(end) {
		at = end
	}
	s.asking.Arm(p.asks, at)
}

// keepAsking arms a pod unless a check of it is already due.
func (s *Store) keepAsking(p *pod) {
	if !s.willAsk(p) {
		s.arm(p, p.asks.RetryAt)
	}
}

// willAsk tells whether a check of a pod is due, queued or triggered by a watch.
func (s *Store) willAsk(p *pod) bool {
	return s.asking.Waits(p.asks) || s.preemption.Watches.Has(p.UID)
}

// disarm ends all checks of a pod: it is gone, has a node, or has a hold.
func (s *Store) disarm(p *pod) {
	s.asking.Leave(p.asks)
	s.preemption.Watches.Remove(p.UID)
	s.preemption.NodeWaits.Remove(p.UID)
}

// delayEnd is when the preemption delay of the pod's leaf ends (P1).
func (p *pod) delayEnd(tree *queues.Draft) time.Time {
	return p.Created.Add(tree.Queue(p.app.Leaf).Policies.PreemptionDelay)
}

// tickAsking puts due pods into the order. If the delays of very many pods end at once,
// the next Tick goes on; it is due at once.
func (s *Store) tickAsking(now time.Time) {
	s.preemption.Limiter.Recover(now)
	room := s.preemption.Limiter.Room(s.asking.Order.Eligible())
	for range mostLooks {
		if room == 0 {
			return
		}
		uid, ok := s.asking.TakeDue(now)
		if !ok {
			return
		}
		if p := s.pods[uid]; s.worthAPlan(p, now) {
			s.asking.Enter(p.asks, s.cache.Tree(), p.app, p.app.info(s.cache.Tree()), preemption.Ask{Key: p.askKey(), Request: p.Request, Kind: p.apartKind()})
			room--
		}
	}
}

// mostLooks bounds the pods that are checked in one hold of the lock.
const mostLooks = 1000

// worthAPlan tells whether a plan is worth making for a pod. If not, it arms the pod or
// watches what may change that.
func (s *Store) worthAPlan(p *pod, now time.Time) bool {
	from, _ := p.planFrom()
	again := latest(p.delayEnd(s.cache.Tree()), latest(p.asks.RetryAt, from))
	if t := p.equivalenceClass; t != nil {
		again = latest(again, t.RetryAt)
	}
	switch {
	case again.After(now):
		s.arm(p, again)
	case !s.cache.Spec.PreemptionEnabled, !p.Uncounted.IsZero(): // until the next configuration, or until the types count
	case !s.mayAsk(p):
		s.preemption.Watches.Set(p.UID, p.watchedPath(s.cache.Tree()))
	case p.apart():
		s.retryTogether(p, now)
	case !p.stuck():
		s.arm(p, s.preemption.Later(now))
	default:
		return true
	}
	return false
}

// queuesChanged notes that the queues of a leaf changed for plans. Changes of pending pods
// do not count; otherwise a preemptor's own cycles would trigger its checks.
func (s *Store) queuesChanged(leaf queues.ID, c *cache.Change) {
	if s.preemption.Watches.Idle() || !c.ForPlans() {
		return
	}
	for q := range s.cache.Tree().Ancestors(leaf) {
		s.preemption.Watches.Change(preemption.WatchedQueue(q.ID))
	}
}

// takeChanges brings the next plan of the preemptors forward that watch a changed queue or
// node, to a second after their last one. Pods that law 4 stops keep watching.
func (s *Store) takeChanges(now time.Time) {
	for _, uid := range s.preemption.Watches.Take(now) {
		p := s.pods[uid]
		if !s.mayAsk(p) {
			continue
		}
		s.preemption.Watches.Remove(uid)
		p.sweeping().Restart()
		soonest := p.asks.TriedAt.Add(atMostEvery)
		if p.equivalenceClass != nil {
			p.equivalenceClass.RetryAt = soonest
		}
		from, _ := p.planFrom()
		p.asks.RetryAt = latest(soonest, from)
		s.arm(p, p.asks.RetryAt)
	}
}

// sweeping returns the sweep of a pod, shared by its equivalence class.
func (p *pod) sweeping() *preemption.Sweep {
	if p.equivalenceClass != nil {
		return (*preemption.Sweep)(&p.equivalenceClass.Sweep)
	}
	return &p.asks.Sweep
}

// watchedPath returns the queues on a pod's path, below root.
func (p *pod) watchedPath(tree *queues.Draft) []preemption.Watched {
	var out []preemption.Watched
	for q := range tree.Ancestors(p.app.Leaf) {
		if !q.IsRoot() {
			out = append(out, preemption.WatchedQueue(q.ID))
		}
	}
	return out
}

// stuck tells whether a pod waits for room that others use: no node took it, or the max
// of a queue above its leaf is used up.
func (p *pod) stuck() bool {
	switch p.state {
	case state.GroupBlocked, state.Unschedulable, state.BackingOff:
		return true
	case state.Queued:
		if p.heldByClass() {
			return true
		}
		v := p.ask.Group().Verdict()
		return v.Reason.Code == reasons.OverMax && v.At != p.app.Leaf
	}
	return false
}

// mayAsk tells whether law 4 can be met for a pod.
func (s *Store) mayAsk(p *pod) bool {
	return s.cache.Books.BelowGuarantee(p.app.Leaf, p.Request, s.preemption.StrictGuarantee)
}

// fillAsking lets the first pod of the preemption queue through to have a plan made, if
// no other pod is being tried.
func (s *Store) fillAsking(now time.Time) {
	s.takeChanges(now)
	s.preemption.Limiter.Recover(now)
	for s.started && !s.standby && !s.preemption.Limiter.PlansFrom(now).After(now) {
		uid, ok := s.asking.First()
		if !ok {
			return
		}
		p := s.pods[uid]
		s.asking.LeaveOrder(p.asks)
		if !s.worthAPlan(p, now) {
			continue
		}
		if at := s.preemption.VictimsFrom(1, now); at.After(now) {
			s.arm(p, at)
			continue
		}
		// Whatever the result, the pod is not tried again before that.
		p.asks.RetryAt = now.Add(s.preemption.RetryInterval)
		s.asking.Begin(uid)
		s.letThrough(p, now)
	}
}

// letThrough admits a stuck pod regardless of the window and the order.
func (s *Store) letThrough(p *pod, now time.Time) {
	if p.Foreign {
		p.asks.Activated = true
		s.park(p)
		s.out.activate = append(s.out.activate, p.Ref())
		return
	}
	s.withdraw(p)
	s.admit(p, now)
	s.out.activate = append(s.out.activate, p.Ref())
}
