package planner_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/judge"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// If a node has more candidates than are considered exactly, a plan is still lawful, needs each victim,
// and is the same in any order. There is a plan if taking the candidates in order of harm yields one.

func TestLargeCases(t *testing.T) { largeCases(t, 400, 1) }

func largeCases(t *testing.T, cases, first uint64) {
	t.Helper()
	seen := tally{}
	for seed := first; seed < first+cases; seed++ {
		m := largeCase(seed)
		d, err := sound(m, real, seed)
		if err != nil {
			t.Fatalf("largeCase(%d): %v\n%s", seed, err, m)
		}
		seen.note("too many to weigh all", !d.Exhaustive)
		seen.note("several victims", len(d.Victims) > 2)
	}
	seen.require(t, cases, map[string]uint64{"too many to weigh all": 10, "several victims": 25})
}

// largeCase has up to 60 pods that are all different, so that the search cannot group them.
func largeCase(seed uint64) *model {
	m := generate(seed, 60)
	for i, p := range m.pods {
		p.request = slices.Clone(p.request)
		p.request[0] = p.request[0]*100 + int64(i)
	}
	m.ask.request[0] *= 300
	for _, q := range m.queues {
		for _, quota := range [][]int64{q.guaranteed, q.max} {
			quota[0] = max(quota[0]*100, quota[0])
		}
	}
	for n, node := range m.nodes {
		node.allocatable[0] = 0
		node.allocatable[0] = -m.free(n, 0)
	}
	return m
}

// sound checks a decision that need not be the best.
func sound(m *model, plan planFunc, seed uint64) (d planner.Decision, err error) {
	o := newOracle(m)
	err = o.judge(plan, seed, func(decided planner.Decision) error {
		if d = decided; d.Outcome != planner.Refuse || d.Exhaustive || m.ask.never {
			return nil
		}
		for node := range m.nodes {
			if set := o.greedy(node); set != nil {
				return fmt.Errorf("refused (%s), but %v may go on node %d", d.Stopped, set, node)
			}
		}
		return nil
	})
	return d, err
}

// greedy takes lawful candidates, the largest first, until enough is freed.
func (o *oracle) greedy(node int) []int {
	s := o.contested(node)
	order := upTo(len(o.pods))
	slices.SortStableFunc(order, func(a, b int) int { return int(o.pods[b].request[0] - o.pods[a].request[0]) })
	var set []int
	for _, i := range order {
		if o.room(node, set, o.taken(set)) {
			return set
		}
		if more := append(slices.Clone(set), i); o.forbids(i, node, s) == "" && o.law2(o.taken(more), s) {
			set = more
		}
	}
	return nil
}

// TestUnsoundPlansAreNoticed plants planners that violate the guarantees for large
// cases. Each changes the decision of the real one, with all its fields.
func TestUnsoundPlansAreNoticed(t *testing.T) {
	for _, c := range []struct {
		bug, want string
		// plant returns other victims, nil for a refusal, and false if it cannot.
		plant func(o *oracle, node int, set []int) ([]int, bool)
	}{
		{"a victim too many", "is not needed", func(o *oracle, node int, set []int) ([]int, bool) { return o.oneMore(node, set, true) }},
		{"a victim that a law keeps", "Lawful refuses it", func(o *oracle, node int, set []int) ([]int, bool) { return o.oneMore(node, set, false) }},
		{"a victim too few", "Lawful refuses it", func(_ *oracle, _ int, set []int) ([]int, bool) { return set[1:], len(set) > 1 }},
		{"a refusal", "may go on node", func(o *oracle, node int, _ []int) ([]int, bool) { return nil, o.greedy(node) != nil }},
	} {
		notices(t, c.bug, c.want, 20, func(seed uint64) (planted bool, err error) {
			m := largeCase(seed)
			_, err = sound(m, func(m *model, chance *rand.Rand) (*planner.Snapshot, planner.Decision, planner.Params) {
				snapshot, d, p := real(m, chance)
				if d.Outcome == planner.Preempt {
					o := newOracle(m)
					node, set := o.chosen(d)
					if set, planted = c.plant(o, node, set); planted {
						d = o.decision(d.Ask, choice{node: node, victims: set}, set != nil)
						d.Exhaustive = false
					}
				}
				return snapshot, d, p
			}, seed)
			return planted, err
		})
	}
}

// chosen returns the node and the victims of a decision.
func (o *oracle) chosen(d planner.Decision) (node int, set []int) {
	set = each(d.Victims, func(v planner.Victim) int {
		return slices.IndexFunc(o.pods, func(p *mpod) bool { return p.uid == v.UID })
	})
	return slices.IndexFunc(o.nodes, func(n *mnode) bool { return n.name == d.Node }), set
}

// oneMore adds a pod of the node to a sufficient set: one with which the set stays
// lawful, or one that a law protects.
func (o *oracle) oneMore(node int, set []int, lawful bool) ([]int, bool) {
	s := o.contested(node)
	for i, p := range o.pods {
		if p.node != node || p.queue < 0 || slices.Contains(set, i) || lawful != (o.forbids(i, node, s) == "") {
			continue
		}
		if more := append(slices.Clone(set), i); !lawful || o.lawful(node, more) {
			return more, true
		}
	}
	return nil, false
}

// TestAlikePodsAreWeighedTogether: many pods of few shapes are searched exactly.
func TestAlikePodsAreWeighedTogether(t *testing.T) {
	m, _ := crowd(60)
	m.nodes[0].allocatable[0] = 120
	m.ask.request = []int64{40}
	m.queues[1].guaranteed[0] = 100
	_, d, _ := real(m, nil)
	if len(d.Victims) != 20 || !d.Exhaustive {
		t.Fatalf("%d victims, exhaustive %v", len(d.Victims), d.Exhaustive)
	}
	for _, v := range d.Victims {
		expect.That(t, !v.Originator && !v.Created.Before(epoch.Add(21*time.Second)),
			"%s is not among the youngest that are no originators", v.UID)
	}
}

// TestDegenerateCases has cases for which no plan is possible; Plan must not panic.
func TestDegenerateCases(t *testing.T) {
	eachPod := func(change func(*planner.Pod)) func(*model, *planner.Snapshot, *planner.Ask) {
		return func(_ *model, snapshot *planner.Snapshot, _ *planner.Ask) {
			for _, p := range snapshot.Nodes[0].Pods {
				change(p)
			}
		}
	}
	for _, c := range []struct {
		name    string
		change  func(*model, *planner.Snapshot, *planner.Ask)
		outcome planner.Outcome
		stopped planner.Rule
	}{
		{"no nodes", func(_ *model, snapshot *planner.Snapshot, _ *planner.Ask) { snapshot.Nodes = nil }, planner.Refuse, ""},
		{"no pods", func(_ *model, snapshot *planner.Snapshot, _ *planner.Ask) { snapshot.Nodes[0].Pods = nil }, planner.Refuse, ""},
		{"no queue", func(_ *model, _ *planner.Snapshot, a *planner.Ask) { a.Leaf = 77 }, planner.Refuse, planner.RuleNoQueue},
		{"no request", func(_ *model, _ *planner.Snapshot, a *planner.Ask) { a.Request = nil }, planner.Wait, ""},
		{"huge request", func(_ *model, _ *planner.Snapshot, a *planner.Ask) { a.Request[0] = math.MaxInt64 }, planner.Refuse, planner.RuleTooLittle},
		{"node overcommitted without end", func(_ *model, snapshot *planner.Snapshot, _ *planner.Ask) { snapshot.Nodes[0].Free[0] = math.MinInt64 }, planner.Refuse, planner.RuleTooLittle},
		{"huge pods", eachPod(func(p *planner.Pod) { p.Request[0] = math.MaxInt64 }), planner.Refuse, planner.Law2},
		{"pods of a queue that is gone", eachPod(func(p *planner.Pod) { p.Leaf = 55 }), planner.Refuse, planner.RuleForeign},
		{"queue that became a parent", eachPod(func(p *planner.Pod) { p.Leaf = queues.RootID }), planner.Refuse, planner.Law3},
		{"max without end", func(m *model, snapshot *planner.Snapshot, a *planner.Ask) {
			m.queues[1].max[0] = 1
			snapshot.Queues = m.view(upTo(3))
			a.Request[0] = math.MaxInt64
		}, planner.Refuse, planner.RuleTooLittle},
	} {
		m := pair()
		m.queues[2].guaranteed[0] = 0
		snapshot, ask, p := m.snapshot(nil)
		c.change(m, snapshot, ask)
		for i, n := range snapshot.Nodes {
			snapshot.Nodes[i] = planner.NewNode(n.Name, n.Allocatable, n.Free, n.Pods)
		}
		d := search.Plan(snapshot, ask, p)
		expect.That(t, d.Outcome == c.outcome && d.Stopped == c.stopped,
			"%s: %s %q, want %s %q", c.name, d.Outcome, d.Stopped, c.outcome, c.stopped)
		err := judge.Lawful(snapshot, d, p)
		expect.That(t, err == nil, "%s: %v", c.name, err)
	}
}

// city is a large full cluster: 20 parents with 10 leaves each. The asker's leaf,
// root.q00.l0, is empty and has a guarantee.
type city struct {
	nodes, podsPerNode int
	// shapes is the number of different requests; 0 makes every pod different.
	shapes int
	// slack is the usage of each leaf above its guarantee.
	slack int64
	// want is the asker's request, the same in cpu and memory.
	want int64
	// reached gives the asker's leaf a usage equal to its guarantee.
	reached bool
	// max puts the asker's parent over its max.
	max bool
	// budgets is the number of PodDisruptionBudgets, each of which allows a disruption, if all pods
	// have one; 0 for 50 of which none does, for a tenth of the pods.
	budgets int
}

func (c city) snapshot(tb testing.TB) (*planner.Snapshot, *planner.Ask) {
	tb.Helper()
	chance := rand.New(rand.NewPCG(1, 2))
	m := &model{}
	m.addQueue(-1, "root")
	var leaves []queues.ID
	for i := range 20 {
		p := m.addQueue(0, fmt.Sprintf("q%02d", i))
		for j := range 10 {
			leaves = append(leaves, queues.ID(m.addQueue(p, fmt.Sprintf("l%d", j))))
		}
	}
	v := m.view(upTo(len(m.queues)))
	snapshot := &planner.Snapshot{Types: []string{resources.CPU, resources.Memory, resources.Pods}, Queues: v, Budgets: make([]int64, cmp.Or(c.budgets, 50))}
	for b := range c.budgets {
		snapshot.Budgets[b] = 1
	}
	used := map[queues.ID]planner.Amounts{}
	for i := range c.nodes {
		node := planner.Node{Name: fmt.Sprintf("node-%04d", i), Allocatable: planner.Amounts{0, 0, 110}, Free: planner.Amounts{1, 1, 110}}
		for range c.podsPerNode {
			shape := chance.IntN(1 << 30)
			if c.shapes > 0 {
				shape %= c.shapes
			}
			p := &planner.Pod{
				UID: fmt.Sprintf("pod-%08d", len(snapshot.Nodes)*1000+len(node.Pods)), Name: "p", Leaf: leaves[1+chance.IntN(len(leaves)-1)],
				Request: planner.Amounts{1000 + int64(shape%1000)*7, 1000 + int64(shape/1000%1000)*7, 1},
				Created: epoch.Add(time.Duration(chance.IntN(100_000)) * time.Second), Priority: int32(chance.IntN(3)),
				OptedOut: chance.IntN(10) == 0, Originator: chance.IntN(10) == 0,
			}
			p.App = fmt.Sprintf("app-%d", p.Leaf)
			if c.budgets > 0 || chance.IntN(10) == 0 {
				p.Budgets = []int{chance.IntN(len(snapshot.Budgets))}
			}
			for t, amount := range p.Request {
				node.Allocatable[t] += amount
			}
			node.Free[2]--
			for q := p.Leaf; q != queues.NoQueue; q = v[q].Parent {
				if used[q] == nil {
					used[q] = make(planner.Amounts, 3)
				}
				for t, amount := range p.Request {
					used[q][t] += amount
				}
			}
			node.Pods = append(node.Pods, p)
		}
		snapshot.Nodes = append(snapshot.Nodes, planner.NewNode(node.Name, node.Allocatable, node.Free, node.Pods))
	}
	for id, u := range used {
		v[id].Allocated = vector(u)
		if id > 0 {
			v[id].Guaranteed = resources.GuaranteeFrom(vector(planner.Amounts{u[0] - c.slack, u[1] - c.slack}).Map())
		}
	}
	v[leaves[0]].Guaranteed = resources.GuaranteeFrom(map[string]resources.Amount{resources.CPU: 100_000, resources.Memory: 100_000})
	v[1].Guaranteed = resources.Guarantee{}
	if c.reached {
		v[leaves[0]].Arriving = vector(planner.Amounts{100_000, 100_000})
	}
	if c.max {
		v[1].Max = resources.LimitFrom(v[1].Allocated.Map())
	}
	return snapshot, &planner.Ask{
		UID: "asker", Name: "asker", Leaf: leaves[0], App: "asker", Priority: 5, Request: planner.Amounts{c.want, c.want, 1},
	}
}

func vector(a planner.Amounts) resources.Vector {
	return resources.VectorOf(resources.Entry{Name: resources.CPU, Amount: resources.Amount(a[0])},
		resources.Entry{Name: resources.Memory, Amount: resources.Amount(a[1])})
}

// cases are the kinds of large cases that are measured.
var cases = []struct {
	name   string
	change func(*city)
	want   planner.Outcome
}{
	{"few shapes", func(c *city) { c.shapes = 8 }, planner.Preempt},
	{"all different", func(c *city) {}, planner.Preempt},
	{"many budgets", func(c *city) { c.shapes, c.budgets = 8, 5000 }, planner.Preempt},
	{"several victims", func(c *city) { c.want = 20_000 }, planner.Preempt},
	{"many victims", func(c *city) { c.want = 60_000 }, planner.Preempt},
	{"law 4 stops", func(c *city) { c.reached = true }, planner.Refuse},
	{"law 2 stops", func(c *city) { c.slack, c.want = 900, 20_000 }, planner.Refuse},
	{"law 2 stops late", func(c *city) { c.slack, c.want = 5000, 60_000 }, planner.Refuse},
	{"over max", func(c *city) { c.max = true }, planner.Preempt},
	{"law 2 stops below a max", func(c *city) { c.shapes, c.slack, c.want, c.max = 1, 2000, 20_000, true }, planner.Refuse},
	{"over max refused", func(c *city) { c.slack, c.want, c.max = 5000, 60_000, true }, planner.Refuse},
}

// TestLaw2BelowAMax: where the queues below a max use too little above their guarantees, no plan is searched for,
// and the refusal is final.
func TestLaw2BelowAMax(t *testing.T) {
	snapshot, ask := city{nodes: 200, podsPerNode: 30, shapes: 1, slack: 2000, want: 20_000, max: true}.snapshot(t)
	d := search.Plan(snapshot, ask, planner.Params{})
	expect.That(t, d.Stopped == planner.Law2 && d.Exhaustive, "stopped by %q, all weighed: %v", d.Stopped, d.Exhaustive)
	expect.Says(t, d.Sentence(), "leaves every queue its guarantee (law 2): queue root.q00 uses ")
}

// BenchmarkPlan has filters that accept each node, so as many plans are kept as by the scheduler.
func BenchmarkPlan(b *testing.B) {
	params := planner.Params{Fits: func(string, []*planner.Pod) planner.Fit { return planner.Passes }}
	for _, size := range []city{{nodes: 1000, podsPerNode: 20}, {nodes: 5000, podsPerNode: 30}} {
		for _, c := range cases {
			big := size
			big.slack, big.want = 100_000, 4000
			c.change(&big)
			snapshot, ask := big.snapshot(b)
			b.Run(fmt.Sprintf("%s/nodes=%d/pods=%d", c.name, big.nodes, big.nodes*big.podsPerNode), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if d := search.Plan(snapshot, ask, params); d.Outcome != c.want {
						b.Fatal(d)
					}
				}
			})
		}
	}
}

// TestAllocationsDoNotFollowPods: the allocations of a plan grow with queues and victims.
// It makes one list of nodes and none of pods.
func TestAllocationsDoNotFollowPods(t *testing.T) {
	for _, c := range []city{
		{slack: 100_000, want: 4000}, {slack: 100_000, want: 4000, shapes: 8}, {slack: 100_000, want: 20_000},
		{slack: 100_000, want: 4000, max: true}, {slack: 900, want: 20_000},
	} {
		allocs := func(nodes, pods int) float64 {
			big := c
			big.nodes, big.podsPerNode = nodes, pods
			snapshot, ask := big.snapshot(t)
			return testing.AllocsPerRun(1, func() { search.Plan(snapshot, ask, planner.Params{}) })
		}
		small, large := allocs(200, 20), allocs(800, 40)
		expect.That(t, large <= small*1.5+500,
			"%+v: %.0f allocations for 4,000 pods, %.0f for 32,000", c, small, large)
	}
}
