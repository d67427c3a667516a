package store

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// A pod whose plan was refused watches the queues that the refusal named: a
// change there may help it before the retry interval is over (P2). Queues change
// with every pod that starts or ends, and thousands of pods may watch one, so the
// changes of a second are looked at together.

// watch has a pod looked at when one of the queues changes.
func (s *Store) watch(p *pod, ids []queues.ID) {
	s.unwatch(p)
	for _, id := range ids {
		if s.asking.watching[id] == nil {
			s.asking.watching[id] = map[*pod]struct{}{}
		}
		s.asking.watching[id][p] = struct{}{}
	}
	p.asks.watches = ids
}

func (s *Store) unwatch(p *pod) {
	for _, id := range p.asks.watches {
		delete(s.asking.watching[id], p)
		if len(s.asking.watching[id]) == 0 {
			delete(s.asking.watching, id)
		}
	}
	p.asks.watches = nil
}

// stir notes that the queues of a leaf changed.
func (s *Store) stir(leaf queues.ID) {
	if len(s.asking.watching) == 0 {
		return
	}
	for q := range s.draft.Ancestors(leaf) {
		if s.asking.watching[q.ID] != nil {
			s.asking.stirred[q.ID] = struct{}{}
		}
	}
}

// stirredDue is when the queues that changed are looked at; zero for never.
func (s *Store) stirredDue() time.Time {
	if len(s.asking.stirred) == 0 {
		return time.Time{}
	}
	return s.asking.settled.Add(atMostEvery)
}

// settleStirred brings forward the next plan of pods whose refusal named a queue
// that changed, to a second after the last one. Those that law 4 stops go on
// watching.
func (s *Store) settleStirred(now time.Time) {
	if due := s.stirredDue(); due.IsZero() || due.After(now) {
		return
	}
	s.asking.settled = now
	for _, id := range slices.Sorted(maps.Keys(s.asking.stirred)) {
		delete(s.asking.stirred, id)
		helped := slices.Collect(maps.Keys(s.asking.watching[id]))
		helped = slices.DeleteFunc(helped, func(p *pod) bool { return !s.mayAsk(p) })
		slices.SortFunc(helped, func(a, b *pod) int { return cmp.Compare(a.UID, b.UID) })
		for _, p := range helped {
			s.unwatch(p)
			p.asks.retryAt = latest(p.asks.triedAt.Add(atMostEvery), p.asks.givenUp)
			if p.twins != nil {
				p.twins.retryAt = p.asks.retryAt
			}
			s.arm(p, p.asks.retryAt)
		}
	}
}
