package planner_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/planner/search"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

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
}

func (c city) snapshot(tb testing.TB) (*planner.Snapshot, *planner.Ask) {
	tb.Helper()
	chance := rand.New(rand.NewPCG(1, 2))
	v := view{}
	add := func(parent queues.ID, name string) queues.ID {
		s := &queues.Settings{Name: name, Path: name, Parent: parent, Managed: true, Policies: config.DefaultPolicies()}
		if parent != queues.NoQueue {
			s.Path = v[parent].Path + "." + name
		}
		id := queues.ID(len(v))
		v[id] = &queues.Queue{ID: id, Settings: s}
		return id
	}
	add(queues.NoQueue, "root")
	var leaves []queues.ID
	for i := range 20 {
		p := add(0, fmt.Sprintf("q%02d", i))
		for j := range 10 {
			leaves = append(leaves, add(p, fmt.Sprintf("l%d", j)))
		}
	}
	snapshot := &planner.Snapshot{Types: []string{resources.CPU, resources.Memory, resources.Pods}, Queues: v, Budgets: make([]int64, 50)}
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
			if chance.IntN(10) == 0 {
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
	{"several victims", func(c *city) { c.want = 20_000 }, planner.Preempt},
	{"many victims", func(c *city) { c.want = 60_000 }, planner.Preempt},
	{"law 4 stops", func(c *city) { c.reached = true }, planner.Refuse},
	{"law 2 stops", func(c *city) { c.slack, c.want = 900, 20_000 }, planner.Refuse},
	{"law 2 stops late", func(c *city) { c.slack, c.want = 5000, 60_000 }, planner.Refuse},
	{"over max", func(c *city) { c.max = true }, planner.Preempt},
	{"over max refused", func(c *city) { c.slack, c.want, c.max = 5000, 60_000, true }, planner.Refuse},
}

func BenchmarkPlan(b *testing.B) {
	for _, size := range []city{{nodes: 1000, podsPerNode: 20}, {nodes: 5000, podsPerNode: 30}} {
		for _, c := range cases {
			big := size
			big.slack, big.want = 100_000, 4000
			c.change(&big)
			snapshot, ask := big.snapshot(b)
			b.Run(fmt.Sprintf("%s/nodes=%d/pods=%d", c.name, big.nodes, big.nodes*big.podsPerNode), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if d := search.Plan(snapshot, ask, planner.Params{}); d.Outcome != c.want {
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
		if large > small*1.5+500 {
			t.Errorf("%+v: %.0f allocations for 4,000 pods, %.0f for 32,000", c, small, large)
		}
	}
}
