package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// asking is the preemption queue. It decides when stuck pods get a plan although no event
// would bring them back (P1, P2):
//
//	           due: the delay ended,         first of the order, and
//	           or the retry interval         no other pod is being tried
//	armed ───────────────────────────► in order ─────────────────────► admitted
//	  ▲  ▲                                │                               │ PostFilter
//	  │  └────────────────────────────────┘                               │
//	  │    no longer stuck, or law 4 is not met                           │
//	  └───────────────────────────────────────────────────────────────────┘
//	       refused: after the retry interval, or a watched queue or node changed
//
// The order is the hierarchical one on the used and expected amounts of queues. One pod
// is tried at a time, because each plan changes the order; the window does not limit it.
// A pod with a hold is not armed.
type asking struct {
	due   ranking.Heap[*entry]
	order deferred
	// current is the pod in the current cycle; nil for none.
	current *pod
}

func newAsking() asking {
	return asking{
		due: ranking.New(sooner), order: newDeferred((*queues.Queue).Expected, (*queues.Queue).Has),
	}
}

// asks is the preemptor state of a pod.
type asks struct {
	due     *entry     // entry in asking.due
	ask     *order.Ask // entry in asking.order
	holds   bool       // it has a hold
	triedAt time.Time  // time of the last plan
	retryAt time.Time  // no plan before this time
	refused reasons.Reason
	losses  preemption.Losses
	over    bool // a quota refused the current cycle
	sweep   preemption.Sweep
	missed  int    // cycles that failed although the hold was clear
	began   uint32 // Store.arrivals when its hold began
	// ended is when the latest ended hold had begun. Claims with that or an earlier time
	// are echoes of ended holds.
	ended time.Time
	// decision is what led to the pod's hold; nil for none, or after a restart. byFilters
	// are the victims that are not needed by amounts, as of the decision: only the
	// filters know why they must go.
	decision  *planner.Decision
	byFilters []types.UID
	required  *daemonset.Decision // the decision for a pod that requires a node
	// toldAt is when users were last told what such a pod waits for; decidedAt is when
	// the last decision was made.
	toldAt, decidedAt time.Time
	// awaits is the pod's node, if a change of it may help; sawNode is the node's
	// generation at the last decision. hopeless: the pod would not fit the node even
	// without all possible victims.
	awaits     *node
	sawNode    uint64
	impossible bool
	// called: a pod of no queue was let through since it holds its node.
	called bool
}

func newAsks(p *pod) *asks { return &asks{due: &entry{pod: p, at: ranking.Outside}} }

// empty tells whether the preemptor state has nothing worth keeping.
func (a *asks) empty() bool {
	tried := a.ask != nil || !a.triedAt.IsZero() || !a.retryAt.IsZero() || !a.refused.None() || !a.losses.IsEmpty() || a.over
	watched := len(a.sweep) > 0 || a.awaits != nil || a.sawNode != 0 || a.impossible || a.called
	decided := a.holds || a.missed > 0 || !a.ended.IsZero() || a.decision != nil || len(a.byFilters) > 0 || a.required != nil ||
		!a.toldAt.IsZero() || !a.decidedAt.IsZero()
	return a.due.at == ranking.Outside && !tried && !watched && !decided
}

// arm schedules a check of a pod at a time, but not before its delay has ended.
func (s *Store) arm(p *pod, at time.Time) {
	if p.app == nil || p.state.allocated() || p.asks.holds || p.NeverPreempts || p.RequiredNode != "" {
		return // pods that require a node: see required.go
	}
	if end := s.delayEnd(p); at.Before(end) {
		at = end
	}
	s.leaveAsking(p)
	p.asks.due.when = at
	s.asking.due.Update(p.asks.due, true)
}

// keepAsking arms a pod unless a check of it is already due.
func (s *Store) keepAsking(p *pod) {
	if !s.willAsk(p) {
		s.arm(p, p.asks.retryAt)
	}
}

// willAsk tells whether a check of a pod is due, queued or triggered by a watch.
func (s *Store) willAsk(p *pod) bool {
	return p.asks.due.at != ranking.Outside || p.asks.ask != nil || s.preemption.Watches.Has(p.UID)
}

// disarm ends all checks of a pod: it is gone, has a node, or has a hold.
func (s *Store) disarm(p *pod) {
	s.asking.due.Update(p.asks.due, false)
	s.leaveAsking(p)
	s.preemption.Watches.Remove(p.UID)
	s.leaveNode(p)
}

func (s *Store) leaveAsking(p *pod) {
	if p.asks.ask != nil {
		s.asking.order.index.Remove(p.asks.ask)
		p.asks.ask = nil
	}
}

// delayEnd is when the preemption delay of the pod's leaf ends (P1).
func (s *Store) delayEnd(p *pod) time.Time {
	return p.Created.Add(s.draft.Queue(p.app.leaf).Policies.PreemptionDelay)
}

// later is the time of the next check of a pod that needs none now. Times are rounded, so
// that many pods share one.
func (s *Store) later(now time.Time) time.Time {
	return now.Add(s.preemption.RetryInterval).Truncate(atMostEvery).Add(atMostEvery)
}

// tickAsking puts due pods into the order. If the delays of very many pods end at once,
// the next Tick goes on; it is due at once.
func (s *Store) tickAsking(now time.Time) {
	s.preemption.Limiter.Recover(now)
	room := s.preemption.Limiter.Room(s.asking.order.index.Eligible())
	for range mostLooks {
		e, ok := s.asking.due.First()
		if !ok || e.when.After(now) || room == 0 {
			return
		}
		s.asking.due.Update(e, false)
		if s.worthAPlan(e.pod, now) {
			e.pod.asks.ask = s.asking.order.push(s, e.pod)
			room--
		}
	}
}

// mostLooks bounds the pods that are checked in one hold of the lock.
const mostLooks = 1000

// worthAPlan tells whether a plan is worth making for a pod. If not, it arms the pod or
// watches what may change that.
func (s *Store) worthAPlan(p *pod, now time.Time) bool {
	from, _ := s.planFrom(p)
	again := latest(s.delayEnd(p), latest(p.asks.retryAt, from))
	if t := p.equivalenceClass; t != nil {
		again = latest(again, t.retryAt)
	}
	switch {
	case again.After(now):
		s.arm(p, again)
	case !s.spec.PreemptionEnabled, !p.Uncounted.IsZero(): // until the next configuration, or until the types count
	case !s.mayAsk(p):
		s.preemption.Watches.Set(p.UID, s.pathOf(p))
	case p.apart():
		s.retryTogether(p, now)
	case !s.stuck(p):
		s.arm(p, s.later(now))
	default:
		return true
	}
	return false
}

// queuesChanged notes that the queues of a leaf changed for plans. Changes of pending pods
// do not count; otherwise a preemptor's own cycles would trigger its checks.
func (s *Store) queuesChanged(leaf queues.ID, c *charge) {
	if s.preemption.Watches.Idle() || c.allocated.IsZero() && c.leaving.IsZero() && c.arriving.IsZero() {
		return
	}
	for q := range s.draft.Ancestors(leaf) {
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
		soonest := p.asks.triedAt.Add(atMostEvery)
		if p.equivalenceClass != nil {
			p.equivalenceClass.retryAt = soonest
		}
		from, _ := s.planFrom(p)
		p.asks.retryAt = latest(soonest, from)
		s.arm(p, p.asks.retryAt)
	}
}

// sweeping returns the sweep of a pod, shared by its equivalence class.
func (p *pod) sweeping() *preemption.Sweep {
	if p.equivalenceClass != nil {
		return &p.equivalenceClass.sweep
	}
	return &p.asks.sweep
}

// pathOf returns the queues on a pod's path, below root.
func (s *Store) pathOf(p *pod) []preemption.Watched {
	var out []preemption.Watched
	for q := range s.draft.Ancestors(p.app.leaf) {
		if !q.IsRoot() {
			out = append(out, preemption.WatchedQueue(q.ID))
		}
	}
	return out
}

// stuck tells whether a pod waits for room that others use: no node took it, or the max
// of a queue above its leaf is used up.
func (s *Store) stuck(p *pod) bool {
	switch p.state {
	case parked, cooling:
		return true
	case waiting:
		if p.heldByClass() {
			return true
		}
		v := p.ask.Group().Verdict()
		return v.Reason.Code == reasons.OverMax && v.At != p.app.leaf
	}
	return false
}

// mayAsk tells whether law 4 can be met: some queue on the pod's path, below root, is
// under its guarantee in something that the pod requests.
func (s *Store) mayAsk(p *pod) bool {
	for q := range s.draft.Ancestors(p.app.leaf) {
		if q.IsRoot() {
			break
		}
		has := q.Has()
		for t, g := range q.Guaranteed.All() {
			want := p.Request.Get(t)
			if want <= 0 {
				continue
			}
			if s.preemption.StrictGuarantee && has.Get(t).Add(want) <= g || !s.preemption.StrictGuarantee && has.Get(t) < g {
				return true
			}
		}
	}
	return false
}

// askingDue is when Tick next has work for the preemption queue; zero for never.
func (s *Store) askingDue() time.Time {
	first, ok := s.asking.due.First()
	switch l := &s.preemption.Limiter; {
	case !l.TakesTurns() && ok:
		return first.when
	case !l.TakesTurns(), s.asking.current != nil: // goes on when the current cycle is over
		return time.Time{}
	case s.asking.order.index.Eligible() > 0:
		return l.Paid()
	case ok:
		return latest(first.when, l.Paid())
	}
	return time.Time{}
}

// fillAsking lets the first pod of the preemption queue through to have a plan made, if
// no other pod is being tried.
func (s *Store) fillAsking(now time.Time) {
	s.takeChanges(now)
	s.preemption.Limiter.Recover(now)
	for s.started && !s.standby && s.asking.current == nil && !s.preemption.Limiter.PlansFrom(now).After(now) {
		ask, ok := s.asking.order.index.Next()
		if !ok {
			return
		}
		p := s.pods[types.UID(ask.UID())]
		s.leaveAsking(p)
		if !s.worthAPlan(p, now) {
			continue
		}
		if at := s.preemption.VictimsFrom(1, now); at.After(now) {
			s.arm(p, at)
			continue
		}
		// Whatever the result, the pod is not tried again before that.
		p.asks.retryAt = now.Add(s.preemption.RetryInterval)
		s.asking.current = p
		s.letThrough(p, now)
	}
}

// letThrough admits a stuck pod regardless of the window and the order.
func (s *Store) letThrough(p *pod, now time.Time) {
	if p.Foreign {
		p.asks.called = true
		s.park(p)
		s.activate = append(s.activate, p.Ref())
		return
	}
	s.withdraw(p)
	s.admit(p, now)
	s.activate = append(s.activate, p.Ref())
}
