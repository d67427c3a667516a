package order_test

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// model is the simplest form of the order: plain lists that are sorted for every
// question, and shares as big fractions.
type model struct {
	draft    *queues.Draft
	used     map[queues.ID]resources.Vector
	leaving  map[queues.ID]resources.Vector // part of used
	capacity resources.Vector
	strict   bool
	apps     []*modelApp
	asks     []*modelAsk
	blocked  map[modelGroup]queues.ID
	closed   map[modelClass]bool
}

type modelApp struct {
	leaf      queues.ID
	name      string
	submitted time.Time
	used      resources.Vector
	class     order.Class
}

type modelAsk struct {
	app     *modelApp
	key     order.AskKey
	request resources.Vector
	hash    string
}

// modelClass is what is closed together.
type modelClass struct {
	app           *modelApp
	request, hash string
}

func (a *modelAsk) of() modelClass { return modelClass{a.app, a.request.String(), a.hash} }

type modelGroup struct {
	leaf    queues.ID
	class   order.Class
	request string
}

func (a *modelAsk) group() modelGroup { return modelGroup{a.app.leaf, a.app.class, a.request.String()} }

func (m *model) dropBlocks() {
	left := map[modelGroup]queues.ID{}
	for _, a := range m.asks {
		if at, is := m.blocked[a.group()]; is && !m.closed[a.of()] {
			left[a.group()] = at
		}
	}
	m.blocked = left
}

// eligible returns the asks below a queue, or of the queue itself, that are neither blocked nor closed.
func (m *model) eligible(id queues.ID, own bool) []*modelAsk {
	var out []*modelAsk
	for _, a := range m.asks {
		if _, is := m.blocked[a.group()]; is || m.closed[a.of()] {
			continue
		}
		for q := range m.draft.Ancestors(a.app.leaf) {
			if q.ID == id {
				out = append(out, a)
			}
			if own {
				break
			}
		}
	}
	return out
}

func (m *model) next() *modelAsk { return m.nextOf(m.draft.Root()) }

func (m *model) nextOf(q *queues.Queue) *modelAsk {
	for {
		if own := m.eligible(q.ID, true); len(own) > 0 {
			return m.firstOf(q, own)
		}
		var best *queues.Queue
		for _, id := range q.Children {
			c := m.draft.Queue(id)
			if len(m.eligible(id, false)) > 0 && (best == nil || m.queueBefore(q, c, best)) {
				best = c
			}
		}
		if best == nil {
			return nil
		}
		q = best
	}
}

func (m *model) queueBefore(parent, a, b *queues.Queue) bool {
	byPriority := cmp.Compare(m.exposed(b), m.exposed(a))
	byShare := m.share(m.used[a.ID], a).Cmp(m.share(m.used[b.ID], b))
	rank := map[bool]int{true: 0, false: 1} // queues below their guarantee go first
	byGuarantee := rank[m.isBelow(a)] - rank[m.isBelow(b)]
	first, last := byPriority, 0
	if !parent.Policies.PrioritySort {
		first, last = 0, byPriority
	}
	return cmp.Or(first, byGuarantee, byShare, last,
		len(m.eligible(b.ID, false))-len(m.eligible(a.ID, false)), strings.Compare(a.Path, b.Path)) < 0
}

// isBelow reports whether law 4 permits the next ask below a queue to take the place of a
// pod of another queue because of one type, considering the queues up to this one: some
// of them guarantee the type, and all that do are below their guarantee.
func (m *model) isBelow(q *queues.Queue) bool {
	ask := m.nextOf(q)
	for name, amount := range ask.request.All() {
		guaranteed, below := 0, 0
		for up := range m.draft.Ancestors(ask.app.leaf) {
			if g, named := up.Guaranteed.Get(name); named && amount > 0 {
				guaranteed++
				used := m.used[up.ID].Get(name) - m.leaving[up.ID].Get(name)
				if m.strict && used+amount <= g || !m.strict && used < g {
					below++
				}
			}
			if up.ID == q.ID {
				break
			}
		}
		if guaranteed > 0 && below == guaranteed {
			return true
		}
	}
	return false
}

// exposed is the priority that a queue shows to its siblings. The queue has eligible asks.
func (m *model) exposed(q *queues.Queue) int64 {
	if q.Policies.PriorityFence {
		return int64(q.Policies.PriorityOffset)
	}
	var seen []int64
	for _, a := range m.eligible(q.ID, true) {
		seen = append(seen, int64(a.key.Priority))
	}
	for _, id := range q.Children {
		if len(m.eligible(id, false)) > 0 {
			seen = append(seen, m.exposed(m.draft.Queue(id)))
		}
	}
	p := slices.Max(seen) + int64(q.Policies.PriorityOffset)
	return max(-1<<31, min(p, 1<<31-1))
}

// share is the dominant share of what is used, as a fraction.
func (m *model) share(used resources.Vector, q *queues.Queue) *big.Rat {
	largest := new(big.Rat)
	for name, amount := range used.All() {
		if amount <= 0 {
			continue
		}
		of, known := q.Guaranteed.Get(name)
		if !known {
			of, known = q.PathMax.Get(name)
		}
		if !known {
			if of = m.capacity.Get(name); of == 0 {
				continue
			}
		}
		s := big.NewRat(1, 1)
		if of > 0 {
			s = big.NewRat(int64(amount), int64(of))
		}
		if s.Cmp(largest) > 0 {
			largest = s
		}
	}
	return largest
}

// firstOf sorts the applications of a leaf, and then the asks of the first.
func (m *model) firstOf(leaf *queues.Queue, asks []*modelAsk) *modelAsk {
	var apps []*modelApp
	highest := map[*modelApp]int64{}
	for _, a := range asks {
		if p, seen := highest[a.app]; !seen {
			apps = append(apps, a.app)
			highest[a.app] = int64(a.key.Priority)
		} else {
			highest[a.app] = max(p, int64(a.key.Priority))
		}
	}
	app := slices.MinFunc(apps, func(a, b *modelApp) int {
		byPriority := cmp.Compare(highest[b], highest[a])
		main := a.submitted.Compare(b.submitted)
		if leaf.Policies.ApplicationSort == config.SortFair {
			main = m.share(a.used, leaf).Cmp(m.share(b.used, leaf))
		}
		first, second := byPriority, main
		if !leaf.Policies.PrioritySort {
			first, second = main, byPriority
		}
		return cmp.Or(first, second, a.submitted.Compare(b.submitted), strings.Compare(a.name, b.name))
	})
	asks = slices.DeleteFunc(slices.Clone(asks), func(a *modelAsk) bool { return a.app != app })
	return slices.MinFunc(asks, func(a, b *modelAsk) int {
		return cmp.Or(cmp.Compare(b.key.Priority, a.key.Priority), a.key.Created.Compare(b.key.Created), strings.Compare(a.key.UID, b.key.UID))
	})
}

func (m *model) remove(a *modelAsk) {
	m.asks = slices.DeleteFunc(m.asks, func(b *modelAsk) bool { return a == b })
	m.dropBlocks()
}
