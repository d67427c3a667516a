package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/victims"
	"github.com/paddock-scheduler/paddock/pkg/victims/required"
)

// asking says when pods that are stuck are to have a plan made for them, though
// nothing happens that would bring them back (P1, P2):
//
//	           due: the delay ended,         first of the order, and
//	           or the retry interval         nobody else is being tried
//	armed ───────────────────────────► in order ─────────────────────► admitted
//	  ▲  ▲                                │                               │ PostFilter
//	  │  └────────────────────────────────┘                               │
//	  │    not stuck any more, or law 4 is not met                        │
//	  └───────────────────────────────────────────────────────────────────┘
//	       refused: after the retry interval, or what was named changed
//
// The order is the hierarchical one on what queues use and expect. One pod is
// tried at a time, for each plan changes whose turn it is; the window does not
// count for it. A pod that gets a hold is not armed while it has it.
type asking struct {
	due   ranking.Heap[*entry]
	order annex
	// current is the pod whose cycle is under way; nil for none.
	current *pod
	// watching are the pods that a change of a queue or node may help, stirred the
	// queues and nodes that changed.
	watching map[named]map[*pod]struct{}
	stirred  map[named]struct{}
	// during are those that changed while the plan is made that is under way: it may
	// be refused for what is so no more. Nil while none is.
	during map[named]struct{}
	// settled is when the stirred ones were looked at last.
	settled time.Time
	toil    toil
}

func newAsking() asking {
	return asking{
		due: ranking.New(sooner), order: newAnnex((*queues.Queue).Expected, (*queues.Queue).Has),
		watching: map[named]map[*pod]struct{}{}, stirred: map[named]struct{}{},
		toil: toil{perNode: perNode, turns: fewTurns},
	}
}

// asks is what a pod knows of making room for it.
type asks struct {
	due     *entry     // in asking.due
	ask     *order.Ask // in asking.order
	holds   bool       // it has a hold
	triedAt time.Time  // of the last plan
	retryAt time.Time  // no plan before
	refused reasons.Reason
	losses  losses
	watches []named
	over    bool // the cycle that is under way was refused by a quota
	sweep   sweep
	missed  int    // cycles that failed though the hold was clear
	began   uint32 // Store.arrivals when its hold began
	// ended is when the latest hold began that is over. Claims of then, or from
	// before, are echoes.
	ended time.Time
	// decision is what led to its hold; nil for none, or after a restart. byFilters
	// are the victims without whose going it had room by amounts when the decision
	// was made: only the filters know why they go.
	decision  *victims.Decision
	byFilters []types.UID
	required  *required.Decision // of a pod that requires a node
	// toldAt is when people were told last what such a pod waits for, decidedAt when
	// the last decision was made.
	toldAt, decidedAt time.Time
	// awaits is its node, when a change of that may help; sawNode the generation of
	// it that the last decision was made on. It is hopeless if the pod would not have
	// fitted even without all who may go.
	awaits   *node
	sawNode  uint64
	hopeless bool
	// called: it is of no queue, and was let through since it holds its node.
	called bool
}

func newAsks(p *pod) *asks { return &asks{due: &entry{pod: p, at: ranking.Outside}} }

// empty tells whether it has nothing that anybody could still ask for.
func (a *asks) empty() bool {
	tried := a.ask != nil || !a.triedAt.IsZero() || !a.retryAt.IsZero() || !a.refused.None() || a.losses.count > 0 || !a.losses.placedAt.IsZero() || a.over
	watched := len(a.watches) > 0 || len(a.sweep) > 0 || a.awaits != nil || a.sawNode != 0 || a.hopeless || a.called
	decided := a.holds || a.missed > 0 || !a.ended.IsZero() || a.decision != nil || len(a.byFilters) > 0 || a.required != nil ||
		!a.toldAt.IsZero() || !a.decidedAt.IsZero()
	return a.due.at == ranking.Outside && !tried && !watched && !decided
}

// arm has a pod looked at, at a time; not before its delay has ended.
func (s *Store) arm(p *pod, at time.Time) {
	if p.app == nil || p.state.allocated() || p.asks.holds || p.NeverPreempts || p.RequiredNode != "" {
		return // for pods that require a node see required.go
	}
	if end := s.delayEnd(p); at.Before(end) {
		at = end
	}
	s.leaveAsking(p)
	p.asks.due.when = at
	s.asking.due.Update(p.asks.due, true)
}

// keepAsking sees to it that a pod is looked at again.
func (s *Store) keepAsking(p *pod) {
	if !p.willAsk() {
		s.arm(p, p.asks.retryAt)
	}
}

// willAsk tells whether a pod is going to be looked at.
func (p *pod) willAsk() bool {
	return p.asks.due.at != ranking.Outside || p.asks.ask != nil || len(p.asks.watches) > 0
}

// disarm: a pod that is gone, has a node or a hold, is not looked at.
func (s *Store) disarm(p *pod) {
	s.asking.due.Update(p.asks.due, false)
	s.leaveAsking(p)
	s.unwatch(p)
	s.leaveNode(p)
}

func (s *Store) leaveAsking(p *pod) {
	if p.asks.ask != nil {
		s.asking.order.index.Remove(p.asks.ask)
		p.asks.ask = nil
	}
}

// delayEnd is when the pod's leaf lets it preempt (P1).
func (s *Store) delayEnd(p *pod) time.Time {
	return p.Created.Add(s.draft.Queue(p.app.leaf).Policies.PreemptionDelay)
}

// later is when a pod that need not be looked at now is looked at again. Many
// pods share the moment.
func (s *Store) later(now time.Time) time.Time {
	return now.Add(s.preemption.RetryInterval).Truncate(atMostEvery).Add(atMostEvery)
}

// tickAsking puts the pods whose time has come into the order. When the delay of
// very many ends at once the next Tick, which is due, goes on.
func (s *Store) tickAsking(now time.Time) {
	s.asking.toil.rest(now)
	room := s.asking.toil.room(s.asking.order.index.Eligible())
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

// mostLooks bounds the pods that are looked at while nobody else can use the store.
const mostLooks = 1000

// worthAPlan tells whether a plan is worth making for a pod. If not it sees to
// it that the pod is looked at again when one may be.
func (s *Store) worthAPlan(p *pod, now time.Time) bool {
	from, _ := s.planFrom(p)
	again := latest(s.delayEnd(p), latest(p.asks.retryAt, from))
	if t := p.twins; t != nil {
		again = latest(again, t.retryAt)
	}
	switch {
	case again.After(now):
		s.arm(p, again)
	case !s.spec.PreemptionEnabled, !p.Uncounted.IsZero(): // until the next configuration, or until they count
	case !s.mayAsk(p):
		s.watch(p, s.pathOf(p))
	case p.apart():
		s.retryTogether(p, now)
	case !s.stuck(p):
		s.arm(p, s.later(now))
	default:
		return true
	}
	return false
}

// pathOf are the queues of a pod's path, below root.
func (s *Store) pathOf(p *pod) []named {
	var out []named
	for q := range s.draft.Ancestors(p.app.leaf) {
		if !q.IsRoot() {
			out = append(out, named{queue: q.ID})
		}
	}
	return out
}

// stuck tells whether a pod waits for room that others have: no node took it, or
// the max of a queue above its leaf is used up.
func (s *Store) stuck(p *pod) bool {
	switch p.state {
	case parked, cooling:
		return true
	case waiting:
		if p.heldByTwin() {
			return true
		}
		v := p.ask.Group().Verdict()
		return v.Reason.Code == reasons.OverMax && v.At != p.app.leaf
	}
	return false
}

// mayAsk tells whether law 4 can be met: some queue of the pod's path, below
// root, is under what it guarantees of something that the pod requests.
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

// askingDue is when Tick has something to do for pods that ask; zero for never.
func (s *Store) askingDue() time.Time {
	first, ok := s.asking.due.First()
	switch t := &s.asking.toil; {
	case !t.tired && ok:
		return first.when
	case !t.tired, s.asking.current != nil: // then, it goes on when that cycle is over
		return time.Time{}
	case s.asking.order.index.Eligible() > 0:
		return t.paid
	case ok:
		return latest(first.when, t.paid)
	}
	return time.Time{}
}

// fillAsking lets the first pod of the order through to have a plan made, if
// nobody else is being tried.
func (s *Store) fillAsking(now time.Time) {
	s.settleStirred(now)
	s.asking.toil.rest(now)
	for s.started && !s.standby && s.asking.current == nil && !s.asking.toil.until(now).After(now) {
		ask, ok := s.asking.order.index.Next()
		if !ok {
			return
		}
		p := s.pods[types.UID(ask.UID())]
		s.leaveAsking(p)
		if !s.worthAPlan(p, now) {
			continue
		}
		if at := s.pace.until(1, s.preemption, now); at.After(now) {
			s.arm(p, at)
			continue
		}
		// Whatever comes of it: not again before that.
		p.asks.retryAt = now.Add(s.preemption.RetryInterval)
		s.asking.current = p
		s.letThrough(p, now)
	}
}

// letThrough admits a stuck pod, whatever the window and the order say.
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
