package victims_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// closedSystem is a fixed set of pods: some run, some ask, and who is preempted
// is created again at once and asks.
type closedSystem struct {
	m        *model
	planner  planner
	asks     []*mpod // oldest first
	now      int
	preempts int
	log      []string
}

// newClosedSystem makes a system of a few leaves, each with about its share of
// the cluster guaranteed, on full nodes, with priorities that mostly agree.
func newClosedSystem(seed uint64, p planner) *closedSystem {
	m := &model{types: []string{"vcore", "memory", "pods"}}
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 11)), m: m, pods: 12}
	if g.chance(30) {
		m.types = []string{"vcore", "pods"}
	}
	g.tree()
	s := &closedSystem{m: m, planner: p, now: 100}
	g.whoRuns()
	m.pods = slices.DeleteFunc(m.pods, func(p *mpod) bool { return p.protection != victims.Unprotected })
	g.room()
	for i := range g.between(3, 9) {
		s.asks = append(s.asks, &mpod{
			uid: fmt.Sprintf("x%d", i), app: fmt.Sprintf("app%d", g.IntN(40)), queue: g.leaf(-1), request: g.request(3),
		})
	}
	for _, p := range append(s.asks, m.pods...) {
		if g.chance(80) {
			p.priority = 0
		}
	}
	for i, q := range m.queues {
		for t := range m.types {
			if share := g.used(0, t); i > 0 && share > 0 && g.chance(60) {
				q.guaranteed[t] = g.Int64N(share)
			}
		}
	}
	if g.chance(30) {
		g.policies()
	}
	return s
}

// round lets every asker try once, and tells whether anything changed.
func (s *closedSystem) round() bool {
	changed := false
	for _, p := range slices.Clone(s.asks) {
		node, gone := s.try(p)
		if node < 0 {
			continue
		}
		changed = true
		s.now++
		s.asks = slices.DeleteFunc(s.asks, func(q *mpod) bool { return q == p })
		for _, v := range gone {
			s.m.pods = slices.DeleteFunc(s.m.pods, func(q *mpod) bool { return q == v })
			s.asks = append(s.asks, v)
		}
		p.node, p.created = node, s.now
		s.m.pods = append(s.m.pods, p)
	}
	return changed
}

// try finds a node for an asker, with or without preemption; -1 for none.
func (s *closedSystem) try(p *mpod) (node int, gone []*mpod) {
	s.m.ask = mask{p.app, p.queue, p.request, p.priority, false}
	o := newOracle(s.m)
	for node := range s.m.nodes {
		if o.room(node, nil, o.taken(nil)) {
			return node, nil
		}
	}
	_, d, _ := s.planner(s.m, nil)
	if d.Outcome != victims.Preempt {
		return -1, nil
	}
	s.preempts++
	s.log = append(s.log, fmt.Sprintf("%s of %s: %s", p.uid, s.m.queues[p.queue].path, d))
	for _, v := range d.Victims {
		i := slices.IndexFunc(s.m.pods, func(q *mpod) bool { return q.uid == v.UID })
		gone = append(gone, s.m.pods[i])
	}
	return slices.IndexFunc(s.m.nodes, func(n *mnode) bool { return n.name == d.Node }), gone
}

// settle runs rounds until nothing changes, and then some in other orders.
func (s *closedSystem) settle(chance *rand.Rand) error {
	const many = 300
	for s.round() {
		if s.preempts > many {
			return fmt.Errorf("%d preemptions and no end", s.preempts)
		}
	}
	for range 3 {
		slices.SortFunc(s.asks, func(a, b *mpod) int { return cmp.Compare(a.uid, b.uid) })
		chance.Shuffle(len(s.asks), func(i, j int) { s.asks[i], s.asks[j] = s.asks[j], s.asks[i] })
		if s.round() {
			return fmt.Errorf("a round after the last changed something")
		}
	}
	return nil
}

// TestClosedSystemsSettle shows that preemption ends where nothing else happens.
func TestClosedSystemsSettle(t *testing.T) { closedSystems(t, 1000, 1) }

func closedSystems(t *testing.T, systems, first uint64) {
	t.Helper()
	with, many := 0, 0
	for seed := first; seed < first+systems; seed++ {
		s := newClosedSystem(seed, real)
		before := s.m.String()
		if err := s.settle(rand.New(rand.NewPCG(seed, 12))); err != nil {
			t.Fatalf("closed system %d: %v\n%s\nlast: %v", seed, err, before, s.log[max(len(s.log)-8, 0):])
		}
		if s.preempts > 0 {
			with++
		}
		if s.preempts > 2 {
			many++
		}
	}
	if with < int(systems)/5 || many < int(systems)/200 {
		t.Errorf("of %d systems only %d have preemption and %d three times or more", systems, with, many)
	}
	t.Log(systems, with, many)
}
