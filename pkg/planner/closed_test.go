package planner_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner"
)

// closedSystem is a fixed set of pods. Some run, the others are askers. A preempted pod
// is created again at once and becomes an asker.
type closedSystem struct {
	m        *model
	planner  planFunc
	asks     []*mpod // oldest first
	now      int
	preempts int
	log      []string
}

// newClosedSystem makes a random system.
func newClosedSystem(seed uint64, p planFunc) *closedSystem {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 11)), m: &model{}, pods: 12}
	s := &closedSystem{m: g.m, planner: p, now: 100}
	if seed%2 == 0 {
		g.tenants(s)
	} else {
		g.rivals(s)
	}
	for i, q := range g.m.queues {
		for t := range g.m.types {
			if share := g.used(0, t); i > 0 && share > 0 && g.chance(70) {
				q.guaranteed[t] = g.Int64N(share + 1)
			}
		}
	}
	return s
}

// tenants has a tree with all policies, pods of mostly equal priority, and nodes on which
// one or two types are used up.
func (g *generator) tenants(s *closedSystem) {
	m := g.m
	m.types = []string{"vcore", "memory", "pods"}
	if g.chance(30) {
		m.types = []string{"vcore", "pods"}
	}
	g.tree()
	g.whoRuns()
	m.pods = slices.DeleteFunc(m.pods, func(p *mpod) bool { return p.protection != planner.Unprotected })
	g.room()
	for i := range g.between(3, 9) {
		app := fmt.Sprintf("app%d", g.IntN(40))
		s.asks = append(s.asks, &mpod{uid: fmt.Sprintf("x%d", i), app: app, queue: g.leaf(-1), request: g.request(3)})
	}
	for _, p := range append(s.asks, m.pods...) {
		if g.chance(80) {
			p.priority = 0
		}
	}
	if g.chance(30) {
		g.policies()
	}
}

// rivals has a few queues that compete for several types, with pods of very different shapes.
func (g *generator) rivals(s *closedSystem) {
	m := g.m
	m.types = []string{"vcore", "memory", "gpu"}[:g.between(2, 3)]
	m.addQueue(-1, "root")
	for i := range g.between(2, 3) {
		if q := m.addQueue(0, fmt.Sprintf("q%d", i)); g.chance(20) {
			m.addQueue(q, "x")
			m.addQueue(q, "y")
		}
	}
	for i := range g.between(1, 3) {
		m.nodes = append(m.nodes, &mnode{name: fmt.Sprintf("n%d", i), allocatable: make([]int64, len(m.types))})
	}
	pod := func(i int, name string) *mpod {
		p := &mpod{uid: fmt.Sprint(name, i), app: fmt.Sprint(name, i), queue: g.leaf(-1), node: g.IntN(len(m.nodes)), created: g.IntN(50)}
		for range m.types {
			p.request = append(p.request, []int64{0, 1, 1, 2, 3, 5}[g.IntN(6)])
		}
		return p
	}
	for i := range g.between(3, 9) {
		m.pods = append(m.pods, pod(i, "p"))
	}
	for i := range g.between(3, 10) {
		s.asks = append(s.asks, pod(i, "x"))
	}
	for n, node := range m.nodes {
		for t := range m.types {
			node.allocatable[t] = []int64{0, 0, 1, 3}[g.IntN(4)] - m.free(n, t)
		}
	}
}

// round lets every asker try once, and reports whether anything changed.
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
		s.m.pods = slices.DeleteFunc(s.m.pods, func(q *mpod) bool { return slices.Contains(gone, q) })
		s.asks = append(s.asks, gone...)
		p.node, p.created = node, s.now
		s.m.pods = append(s.m.pods, p)
	}
	return changed
}

// try finds a node for an asker, with or without preemption; -1 for none.
func (s *closedSystem) try(p *mpod) (node int, gone []*mpod) {
	s.m.ask = mask{p.app, p.queue, p.request, p.priority, false, nil}
	o := newOracle(s.m)
	for node := range s.m.nodes {
		if o.room(node, nil, o.taken(nil)) {
			return node, nil
		}
	}
	_, d, _ := s.planner(s.m, nil)
	if d.Outcome != planner.Preempt {
		return -1, nil
	}
	s.preempts++
	s.log = append(s.log, fmt.Sprintf("%s of %s: %s", p.uid, s.m.queues[p.queue].path, d))
	node, set := o.chosen(d)
	return node, each(set, func(i int) *mpod { return s.m.pods[i] })
}

// converge runs rounds until nothing changes, and then some more in other orders.
func (s *closedSystem) converge(chance *rand.Rand) error {
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

// TestClosedSystemsConverge shows that preemption ends if nothing else happens.
func TestClosedSystemsConverge(t *testing.T) { closedSystems(t, 1000, 1) }

func closedSystems(t *testing.T, systems, first uint64) {
	t.Helper()
	seen := tally{}
	for seed := first; seed < first+systems; seed++ {
		s := newClosedSystem(seed, real)
		before := s.m.String()
		if err := s.converge(rand.New(rand.NewPCG(seed, 12))); err != nil {
			t.Fatalf("closed system %d: %v\n%s\nlast: %v", seed, err, before, s.log[max(len(s.log)-8, 0):])
		}
		seen.note("preemption", s.preempts > 0)
		seen.note("three preemptions", s.preempts > 2)
	}
	seen.require(t, systems, map[string]uint64{"preemption": 200, "three preemptions": 10})
}

// TestClosedSystemsNoticeLoops plants planners without law 2, without law 4, and without
// the part of law 2 that keeps shortages from growing.
func TestClosedSystemsNoticeLoops(t *testing.T) {
	for _, bug := range [][]string{{"law 2", "law 2 shortage"}, {"law 4"}} {
		looped := false
		for seed := uint64(1); seed <= 1000 && !looped; seed++ {
			looped = newClosedSystem(seed, buggy(bug...)).converge(rand.New(rand.NewPCG(seed, 12))) != nil
		}
		expect.That(t, looped, "all systems converge without %v", bug)
	}
	err := circle(buggy("law 2 shortage")).converge(rand.New(rand.NewPCG(1, 1)))
	expect.That(t, err != nil, "the circle converges without the part of law 2 that is made for it")
	expect.Holds(t, circle(real).converge(rand.New(rand.NewPCG(1, 1))))
}

// circle is three queues, each of which could take from the next if a queue could become
// shorter of an uncontested type that it already lacks. Cores are contested for the
// first, memory for the second, gpu for the third.
func circle(p planFunc) *closedSystem {
	m := &model{types: []string{"vcore", "memory", "gpu"}, nodes: []*mnode{{"n", []int64{3, 7, 3}}}}
	m.addQueue(-1, "root")
	s := &closedSystem{m: m, planner: p}
	for i, request := range [][]int64{{3, 3, 0}, {0, 5, 3}, {3, 2, 3}} {
		q := m.addQueue(0, m.types[i])
		m.queues[q].guaranteed[i] = 20
		s.asks = append(s.asks, &mpod{uid: m.types[i], app: m.types[i], queue: q, request: request})
	}
	return s
}
