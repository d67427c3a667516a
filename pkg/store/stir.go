package store

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// After a refused plan, a pod watches the queues and nodes that the refusal named,
// because a change there may help it before the retry interval ends (P2). Queues change
// with every pod that starts or ends, and thousands of pods may watch one, so the changes
// of one second are processed together.

// named is a queue or node named by a refusal.
type named struct {
	queue queues.ID // queues.NoQueue for a node
	node  string
}

func (a named) compare(b named) int {
	return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.node, b.node))
}

// watch schedules a check of a pod when one of these changes.
func (s *Store) watch(p *pod, what []named) {
	s.unwatch(p)
	for _, x := range what {
		if s.asking.watching[x] == nil {
			s.asking.watching[x] = map[*pod]struct{}{}
		}
		s.asking.watching[x][p] = struct{}{}
	}
	p.asks.watches = what
}

func (s *Store) unwatch(p *pod) {
	for _, x := range p.asks.watches {
		delete(s.asking.watching[x], p)
		if len(s.asking.watching[x]) == 0 {
			delete(s.asking.watching, x)
		}
	}
	p.asks.watches = nil
}

// stirQueues notes that the queues of a leaf changed for plans. Changes of pending pods
// do not count; otherwise a preemptor's own cycles would trigger its checks.
func (s *Store) stirQueues(leaf queues.ID, c *charge) {
	if len(s.asking.watching) == 0 && s.asking.during == nil || c.allocated.IsZero() && c.leaving.IsZero() && c.arriving.IsZero() {
		return
	}
	for q := range s.draft.Ancestors(leaf) {
		s.stir(named{queue: q.ID})
	}
}

// stirNode notes that a node changed for plans.
func (s *Store) stirNode(name string) { s.stir(named{queue: queues.NoQueue, node: name}) }

func (s *Store) stir(what named) {
	if s.asking.during != nil {
		s.asking.during[what] = struct{}{}
	}
	if s.asking.watching[what] != nil {
		s.asking.stirred[what] = struct{}{}
	}
}

// stirMissed ends a refused plan: a watched queue or node that changed while the plan was
// made is a change that the plan has not seen.
func (s *Store) stirMissed(p *pod) {
	for _, x := range p.asks.watches {
		if _, changed := s.asking.during[x]; changed {
			s.asking.stirred[x] = struct{}{}
		}
	}
	s.asking.during = nil
}

// stirredDue is when changes are processed; zero for never.
func (s *Store) stirredDue() time.Time {
	if len(s.asking.stirred) == 0 {
		return time.Time{}
	}
	return s.asking.settled.Add(atMostEvery)
}

// settleStirred brings the next plan of a watching pod forward, to a second after its
// last one. Pods that law 4 stops keep watching.
func (s *Store) settleStirred(now time.Time) {
	if due := s.stirredDue(); due.IsZero() || due.After(now) {
		return
	}
	s.asking.settled = now
	for _, what := range slices.SortedFunc(maps.Keys(s.asking.stirred), named.compare) {
		delete(s.asking.stirred, what)
		helped := slices.Collect(maps.Keys(s.asking.watching[what]))
		helped = slices.DeleteFunc(helped, func(p *pod) bool { return !s.mayAsk(p) })
		slices.SortFunc(helped, func(a, b *pod) int { return cmp.Compare(a.UID, b.UID) })
		for _, p := range helped {
			s.unwatch(p)
			p.sweeping().end()
			soonest := p.asks.triedAt.Add(atMostEvery)
			if p.equivalenceClass != nil {
				p.equivalenceClass.retryAt = soonest
			}
			from, _ := s.planFrom(p)
			p.asks.retryAt = latest(soonest, from)
			s.arm(p, p.asks.retryAt)
		}
	}
}
