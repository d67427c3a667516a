package daemonset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
)

// cell is a node with pods of queues, and a DaemonSet pod of namespace ns.
type cell struct {
	node  daemonset.Node
	ask   daemonset.Ask
	draft *queues.Draft
}

// newCell has a node with 10 vcore and memory. The queues are those of the text.
func newCell(t testing.TB, tree string) *cell {
	c := &cell{draft: queues.NewDraftFrom(queuestest.MustTree(t, tree))}
	c.node = daemonset.Node{Name: "n", Types: []string{"vcore", "memory"}, Allocatable: planner.Amounts{10, 10}, Queues: c.draft}
	c.ask.Ask = &planner.Ask{Namespace: "ns", Name: "ds", Leaf: queues.NoQueue}
	return c
}

func (c *cell) leaf(path string) queues.ID {
	if q, ok := c.draft.Find(path); ok {
		return q.ID
	}
	return queues.NoQueue
}

// used is what a queue uses by a pod on the node; without a name, elsewhere. A pod named optout
// opted out, and one named originator is an originator.
type used struct {
	pod, path     string
	vcore, memory int64
}

// use adds pods.
func (c *cell) use(all ...used) {
	for _, u := range all {
		id := c.leaf(u.path)
		request := queuestest.Vector(fmt.Sprintf("vcore=%dm memory=%d", u.vcore, u.memory))
		c.draft.Update(id, func(q *queues.Usage) { q.Allocated = q.Allocated.Add(request) })
		if u.pod != "" {
			c.node.Pods = append(c.node.Pods, &planner.Pod{
				UID: u.pod, Name: u.pod, Namespace: "theirs", Leaf: id, Request: planner.Amounts{u.vcore, u.memory},
				OptedOut: u.pod == "optout", Originator: u.pod == "originator",
			})
		}
	}
}

// bound are the settings under which guarantees bind namespace ns.
var bound = daemonset.Params{Namespaces: []string{"kube-system"}}

func names(d *daemonset.Decision) string {
	out := each(d.Victims, func(v daemonset.Victim) string { return v.Name })
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestGuaranteesBind: the DaemonSets of a namespace without leave take borrowed room only,
// and what the judge says agrees with that.
func TestGuaranteesBind(t *testing.T) {
	for _, tt := range []struct {
		name, tree string
		leaf       string // of the asker
		pods       []used
		want, free string // victims of a bound and of another asker
		rule       planner.Rule
	}{
		{name: "law 2: the queue would be below its guarantee", tree: "root\n  a guaranteed.vcore=10m\n",
			pods: []used{{"p1", "root.a", 6, 1}, {"p2", "root.a", 4, 1}, {"", "root.a", 3, 0}},
			free: "p1", rule: planner.Law2},
		{name: "law 2: one of two may go", tree: "root\n  a guaranteed.vcore=6m\n",
			pods: []used{{"p1", "root.a", 5, 1}, {"p2", "root.a", 5, 1}, {"", "root.a", 1, 0}},
			want: "p1", free: "p1", rule: planner.Law2},
		{name: "law 2: a type that is not contested", tree: "root\n  a guaranteed.memory=2\n",
			pods: []used{{"p1", "root.a", 10, 2}}, free: "p1", rule: planner.Law2},
		{name: "law 2: a parent", tree: "root\n  p guaranteed.vcore=10m\n    a\n",
			pods: []used{{"p1", "root.p.a", 10, 1}}, free: "p1", rule: planner.Law5},
		{name: "law 5: below its guarantee", tree: "root\n  a guaranteed.vcore=20m\n",
			pods: []used{{"p1", "root.a", 10, 1}}, free: "p1", rule: planner.Law5},
		{name: "borrowed", tree: "root\n  a\n", pods: []used{{"p1", "root.a", 10, 1}}, want: "p1", free: "p1"},
		{name: "law 7: outside of the fence", tree: "root\n  mine props=preemption.policy:fence\n    d\n  a\n",
			leaf: "root.mine.d", pods: []used{{"p1", "root.a", 10, 1}}, free: "p1", rule: planner.Law7},
		{name: "law 7: inside of the fence", tree: "root\n  mine props=preemption.policy:fence\n    d\n    a\n",
			leaf: "root.mine.d", pods: []used{{"p1", "root.mine.a", 10, 1}}, want: "p1", free: "p1"},
		{name: "disabled", tree: "root\n  a props=preemption.policy:disabled\n",
			pods: []used{{"p1", "root.a", 10, 1}}, free: "p1", rule: planner.RuleDisabled},
		{name: "the guarantee of its own leaf", tree: "root\n  a guaranteed.vcore=10m\n", leaf: "root.a",
			pods: []used{{"p1", "root.a", 10, 1}}, free: "p1", rule: planner.Law2},
		{name: "its own leaf keeps its guarantee by the pod itself", tree: "root\n  a guaranteed.vcore=5m\n", leaf: "root.a",
			pods: []used{{"p1", "root.a", 5, 1}, {"p2", "root.a", 5, 1}}, want: "p1", free: "p1", rule: planner.Law2},
		{name: "law 1: opted out last", tree: "root\n  a\n",
			pods: []used{{"optout", "root.a", 5, 1}, {"originator", "root.a", 5, 1}}, want: "originator", free: "optout"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCell(t, tt.tree)
			c.ask.Request, c.ask.Leaf = planner.Amounts{3, 1}, c.leaf(tt.leaf)
			c.use(tt.pods...)
			own := bound
			own.ClassOrder = daemonset.YuniKorn // opted-out pods before originators
			d := daemonset.Plan(&c.node, &c.ask, own)
			expect.Same(t, "victims: "+d.String(), tt.want, names(&d))
			expect.That(t, d.Outcome != planner.Hold, "the node is held although no pods may go")
			named := slices.ContainsFunc(d.Rejected, func(r planner.Rejection) bool { return r.Rule == tt.rule })
			expect.That(t, named || tt.rule == "", "rejected %v, want some by %s", d.Rejected, tt.rule)
			if d.Outcome == planner.Preempt {
				expect.Holds(t, daemonset.Judge(&c.node, &c.ask, own, d))
			}
			// A planner that forgets the rules, or one for a namespace with leave.
			all := own
			all.Namespaces = []string{"kube-system", "ns"}
			free := daemonset.Plan(&c.node, &c.ask, all)
			expect.Same(t, "with leave: victims", tt.free, names(&free))
			expect.Holds(t, daemonset.Judge(&c.node, &c.ask, all, free))
			err := daemonset.Judge(&c.node, &c.ask, own, free)
			expect.That(t, (err != nil || tt.want != "") && (err == nil || tt.want != tt.free),
				"the judge says of a planner that forgets the rules: %v", err)
		})
	}
}

// spared checks in plain numbers that no queue loses what is guaranteed to it, and that
// each queue that loses pods is over its guarantee in vcore.
func spared(c *cell, d *daemonset.Decision) error {
	for q := range c.draft.All() {
		var loss [2]int64
		for _, v := range d.Victims {
			if path := c.draft.Queue(v.Leaf).Path; path == q.Path || strings.HasPrefix(path, q.Path+".") {
				loss[0] += v.Request[0]
				loss[1] += v.Request[1]
			}
		}
		for i, name := range c.node.Types {
			g, named := q.Guaranteed.Get(name)
			if has := q.Allocated.Get(name); named && loss[i] > 0 && int64(has)-loss[i] < int64(g) {
				return fmt.Errorf("queue %s loses %d of %d %s, guaranteed %d", q.Path, loss[i], has, name, g)
			}
		}
	}
	return nil
}

// TestGuaranteesBindAtRandom: plans on random nodes leave guarantees alone, the judge
// accepts them, and it notices planners that forget guarantees.
func TestGuaranteesBindAtRandom(t *testing.T) {
	seen := tally{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // not for secrets
		c := newCell(t, fmt.Sprintf("root\n  p guaranteed.vcore=%dm\n    a guaranteed.vcore=%dm\n    b\n  q guaranteed.memory=%d\n    c guaranteed.vcore=%dm\n    d\n", r.IntN(8), r.IntN(5), r.IntN(6), r.IntN(5)))
		leaves := []string{"root.p.a", "root.p.b", "root.q.c", "root.q.d"}
		left := [2]int64{10, 10}
		for i := range 6 {
			vcore, memory := min(r.Int64N(4), left[0]), min(r.Int64N(4), left[1])
			left[0], left[1] = left[0]-vcore, left[1]-memory
			c.use(used{fmt.Sprint("p", i), leaves[r.IntN(4)], vcore, memory})
		}
		for _, leaf := range leaves {
			c.use(used{"", leaf, r.Int64N(3), r.Int64N(3)})
		}
		c.ask.Request = planner.Amounts{left[0] + 1 + r.Int64N(4), 0}
		d := daemonset.Plan(&c.node, &c.ask, bound)
		if err := spared(c, &d); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if d.Outcome == planner.Preempt {
			seen["victims"]++
			if err := daemonset.Judge(&c.node, &c.ask, bound, d); err != nil {
				t.Fatalf("seed %d: the judge refuses %s: %v", seed, d.String(), err)
			}
		}
		may := left[0] // free if all pods go that may go alone
		for _, p := range c.node.Pods {
			one := daemonset.Decision{Victims: []daemonset.Victim{{Pod: p}}}
			if spared(c, &one) == nil {
				may += p.Request[0]
			}
		}
		if d.Outcome == planner.Hold && may < c.ask.Request[0] {
			t.Fatalf("seed %d: held in vain: %s", seed, d.String())
		}
		free := daemonset.Plan(&c.node, &c.ask, daemonset.Params{})
		if spared(c, &free) != nil {
			if seen["forgotten"]++; daemonset.Judge(&c.node, &c.ask, bound, free) == nil {
				t.Fatalf("seed %d: the judge accepts %s", seed, free.String())
			}
		}
	}
	seen.require(t, 3000, map[string]uint64{"victims": 100, "forgotten": 100})
}
