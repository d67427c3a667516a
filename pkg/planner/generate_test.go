package planner_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// generator makes random models with amounts near the limits of the laws: free amounts
// near zero, guarantees near the usage, max near the usage with the asker.
type generator struct {
	*rand.Rand
	m *model
	// pods is the largest number of pods.
	pods int
	// crowded makes cases in which most pods may be preempted, and most are on one node.
	crowded bool
	// bounded is a queue above the ask's with a max that the asker should exceed; 0 for none.
	bounded int
}

// generate returns the model of a seed.
func generate(seed uint64, pods int) *model {
	return (&generator{Rand: rand.New(rand.NewPCG(seed, 7)), m: &model{}, pods: pods}).generate()
}

func (g *generator) generate() *model {
	g.m.types = append([]string{"vcore"}, [][]string{nil, {"memory"}, {"memory", "gpu"}}[g.IntN(3)]...)
	if g.chance(60) {
		g.m.types = append(g.m.types, "pods")
	}
	g.tree()
	g.whoRuns()
	g.whoAsks()
	g.whoWaits()
	g.room()
	g.quotas()
	g.policies()
	g.m.strict = g.chance(15)
	if g.bounded == 0 && g.chance(12) {
		g.whoStartsToo()
	}
	return g.m
}

// whoStartsToo makes pods that start together with the asker, mostly equal to it.
func (g *generator) whoStartsToo() {
	for range g.between(1, 4) {
		member := mmember{queue: g.m.ask.queue, request: g.m.ask.request}
		if g.chance(20) {
			member.queue = g.leaf(-1)
		}
		if g.chance(30) {
			member.request = g.request(3)
		}
		g.m.ask.members = append(g.m.ask.members, member)
	}
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) between(least, most int) int { return least + g.IntN(most-least+1) }

// tree makes up to nine queues below root, four levels deep. Names of siblings are
// prefixes of each other.
func (g *generator) tree() {
	m := g.m
	m.addQueue(-1, "root")
	depth := []int{0}
	add := func(parent int) {
		for _, name := range []string{"a", "aa", "ab", "b"} {
			if m.find(m.queues[parent].path+"."+name) < 0 {
				m.addQueue(parent, name)
				depth = append(depth, depth[parent]+1)
				return
			}
		}
	}
	add(0)
	add(0)
	for range g.IntN(8) {
		if parent := g.IntN(len(m.queues)); depth[parent] < 4 {
			add(parent)
		}
	}
	m.ask.queue = g.leaf(-1)
	if path := m.chain(m.ask.queue); len(path) > 2 && g.chance(40) {
		g.bounded = path[1+g.IntN(len(path)-2)]
		if !slices.ContainsFunc(m.queues, func(q *mqueue) bool { return q.parent == g.bounded && !slices.Contains(path, m.find(q.path)) }) {
			add(g.bounded)
		}
	}
}

// leaf chooses a leaf, and chooses again if it is one to avoid.
func (g *generator) leaf(avoid int) int {
	var leaves []int
	for q := range g.m.queues {
		if g.m.isLeaf(q) {
			leaves = append(leaves, q)
		}
	}
	q := leaves[g.IntN(len(leaves))]
	for range 2 {
		if q != avoid && (g.bounded == 0 || slices.Contains(g.m.chain(q), g.bounded)) {
			break
		}
		q = leaves[g.IntN(len(leaves))]
	}
	return q
}

func (g *generator) request(most int) []int64 {
	out := make([]int64, len(g.m.types))
	for t, name := range g.m.types {
		switch {
		case name == "pods":
			out[t] = 1
		case g.chance(75):
			out[t] = int64(g.between(0, most))
		}
	}
	return out
}

func (g *generator) whoRuns() {
	m := g.m
	nodes := 1 + min(g.IntN(3), g.IntN(3))
	if g.crowded && g.chance(60) {
		nodes = 1
	}
	for i := range nodes {
		m.nodes = append(m.nodes, &mnode{name: fmt.Sprintf("n%d", i)})
	}
	for range g.IntN(3) {
		m.budgets = append(m.budgets, int64(g.IntN(3)))
	}
	for i := range g.many() {
		p := &mpod{
			app: fmt.Sprintf("app%d", g.IntN(6)), queue: g.leaf(m.ask.queue), node: g.IntN(len(m.nodes)),
			request: g.request(3), priority: int32(g.between(-1, 2)), created: g.IntN(4),
			optedOut: g.chance(25), originator: g.chance(20),
		}
		if g.chance(5) && !g.crowded {
			p.protection = planner.Protection(g.between(1, 5))
			p.preempted = p.created%2 == 0 // applies to leaving pods
			if p.protection == planner.Binding && p.created == 3 {
				p.protection = planner.Refused
			}
		}
		p.slow = (i+p.created+len(m.nodes))%4 == 0
		for b := range m.budgets {
			if g.chance(40) {
				p.budgets = append(p.budgets, b)
			}
		}
		if i > 0 && g.chance(40) { // a copy of an earlier pod
			other := *p
			*p = *m.pods[g.IntN(i)]
			if g.chance(50) {
				p.created = other.created
			}
			if g.chance(50) {
				p.node = other.node
			}
			if g.chance(30) {
				p.queue = other.queue
			}
		}
		p.uid = fmt.Sprintf("p%02d", g.IntN(80)+i*100)
		if g.chance(4) && !g.crowded {
			p.queue, p.protection = -1, planner.Foreign
		}
		if g.crowded {
			g.crowd(p)
		}
		m.pods = append(m.pods, p)
	}
	if last := len(m.pods) - 1; last%9 == 5 && !g.crowded { // the asker's queue deletes one of its own pods
		m.pods[last].queue, m.pods[last].protection, m.pods[last].preempted = m.ask.queue, planner.Leaving, false
	}
}

// many returns the number of running pods.
func (g *generator) many() int {
	if g.crowded {
		return g.pods - min(g.IntN(g.pods), g.IntN(g.pods))
	}
	return 1 + max(g.IntN(g.pods), g.IntN(g.pods))
}

// crowd sets what permits the preemption of a pod.
func (g *generator) crowd(p *mpod) {
	if len(g.m.pods) == g.pods-1 { // the last pod is of the asker's queue
		p.queue = g.m.ask.queue
		return
	}
	for tries := 0; p.queue == g.m.ask.queue && tries < 9; tries++ {
		p.queue = g.leaf(g.m.ask.queue)
	}
	if g.chance(70) {
		p.node = 0
	}
	p.request = slices.Clone(p.request)
	for t := range p.request {
		p.request[t] = max(p.request[t], int64(g.IntN(2)))
	}
}

func (g *generator) whoAsks() {
	a := &g.m.ask
	a.app = fmt.Sprintf("app%d", g.IntN(20))
	a.request = g.request(4)
	if a.request[0] == 0 && g.chance(80) {
		a.request[0] = int64(g.between(1, 3))
	}
	a.priority = int32(g.between(0, 5))
	a.never = g.chance(2)
}

func (g *generator) whoWaits() {
	for range max(g.IntN(5)-2, 0) {
		g.m.waiting = append(g.m.waiting, mwaiting{
			queue: g.leaf(-1), node: g.between(-1, len(g.m.nodes)-1), request: g.request(2),
		})
	}
}

// room sets the allocatable of each node to what its pods need plus a little; one or two
// types are tight everywhere.
func (g *generator) room() {
	first, second := g.IntN(len(g.m.types)), g.IntN(len(g.m.types))
	for n, node := range g.m.nodes {
		node.allocatable = make([]int64, len(g.m.types))
		for t := range g.m.types {
			bit := []int64{0, 1, 2, 4, 6}[g.IntN(5)]
			if g.bounded > 0 && g.chance(60) {
				bit = 4
			} else if t == first || t == second {
				bit = []int64{0, 0, 0, 0, 0, 0, 1, 1, 2, -1}[g.IntN(10)]
			}
			node.allocatable[t] = max(bit-g.m.free(n, t), 0)
		}
	}
}

// used returns the usage of a queue, with what arrives there.
func (g *generator) used(q, t int) int64 {
	sum := int64(0)
	for _, p := range g.m.pods {
		if p.protection != planner.Leaving && slices.Contains(g.m.chain(p.queue), q) {
			sum += p.request[t]
		}
	}
	for _, a := range g.m.waiting {
		if slices.Contains(g.m.chain(a.queue), q) {
			sum += a.request[t]
		}
	}
	return sum
}

func (g *generator) quotas() {
	m := g.m
	path, tight := m.chain(m.ask.queue), -1
	if g.bounded > 0 {
		tight = slices.IndexFunc(m.ask.request, func(a int64) bool { return a > 0 })
	}
	for i, q := range m.queues {
		asks := slices.Contains(path, i)
		guarantees, bounds := g.chance(60) || asks && (g.crowded || g.chance(40)), g.chance(15) && i > 0
		for t := range m.types {
			used := g.used(i, t)
			if guarantees && (g.chance(60) || asks && g.chance(70)) && (i > 0 || g.chance(10)) {
				if asks {
					q.guaranteed[t] = max(used+int64(g.between(-1, 5)), 0)
					if g.chance(85) {
						q.guaranteed[t] = used + int64(g.between(1, 5))
					}
				} else {
					q.guaranteed[t] = max(used+int64(g.between(-7, 1)), 0)
				}
			}
			if i == g.bounded && t == tight {
				q.max[t] = max(used+m.ask.request[t]-int64(g.between(1, 4)), 0)
			} else if bounds && g.chance(50) {
				q.max[t] = max(used+m.ask.request[t]+int64(g.between(-3, 2)), 0)
			}
		}
	}
}

func (g *generator) policies() {
	for i, q := range g.m.queues {
		if g.chance(25) {
			q.policies.PriorityOffset = int32(g.between(-2, 2))
		}
		q.policies.PriorityFence = g.chance(10)
		if g.chance(4) {
			q.policies.Preemption = config.PreemptionFence
		}
		if g.chance(3) {
			q.policies.Preemption = config.PreemptionDisabled
		}
		q.dynamic = i > 0 && g.chance(15)
	}
}
