package cache_test

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
)

func newPod(name string) *cache.Pod {
	p := &cache.Pod{}
	p.SetEvent(&objects.Pod{Identity: objects.Identity{UID: types.UID(name), Namespace: "ns", Name: name}})
	return p
}

// TestNodeUsage checks usage, arrivals and changes of a node whose pods come and go.
func TestNodeUsage(t *testing.T) {
	nodes, a, b := cache.NewNodes(), newPod("a"), newPod("b")
	n, more, came, changed := nodes.Upsert("n1", queuestest.Vector("vcore=8"))
	expect.That(t, came && changed && more.Equal(queuestest.Vector("vcore=8")),
		"a new node: came %v, changed %v, %v more", came, changed, more)
	if _, _, _, changed := nodes.Upsert("n1", queuestest.Vector("vcore=8")); changed {
		t.Error("the same allocatable is a change")
	}
	nodes.Place(b, "n1", queuestest.Vector("vcore=1"))
	began := nodes.Arrivals()
	nodes.Place(a, "n1", queuestest.Vector("vcore=2"))
	expect.That(t, a.On() == n && b.IsOn("n1") && n.Room().Equal(queuestest.Vector("vcore=5")),
		"%v is free", n.Room())
	expect.That(t, a.CameAfter(began) == 1 && b.CameAfter(began) == 0,
		"a came %d after, b %d", a.CameAfter(began), b.CameAfter(began))
	expect.That(t, slices.Equal(n.SortedPods(), []*cache.Pod{a, b}), "pods: %v", n.SortedPods())
	expect.Same(t, "changed", []string{"n1"}, slices.Compact(nodes.Take()))
	generation := n.Generation()
	nodes.Place(a, "n1", queuestest.Vector("vcore=1"))
	if a.CameAfter(began) != 1 || n.Generation() == generation || !slices.Equal(slices.Compact(nodes.Take()), []string{"n1"}) {
		t.Error("a pod that shrinks is no change of its node, or came anew")
	}
	nodes.Place(b, "n1", queuestest.Vector("vcore=2"))
	expect.That(t, b.CameAfter(began) == 2 && slices.Equal(slices.Compact(nodes.Take()), []string{"n1"}),
		"a pod that grows is no change of its node, or did not come anew")
	nodes.Place(a, "n2", queuestest.Vector("vcore=3"))
	if got := slices.Compact(nodes.Take()); !slices.Equal(got, []string{"n1", "n2"}) || nodes.Get("n2").Known() {
		t.Errorf("changed: %v", got)
	}
	if n, known, less := nodes.Delete("n1"); n == nil || !known || !less.Equal(queuestest.Vector("vcore=8")) || nodes.Get("n1") != n {
		t.Error("a node that is gone keeps its pods")
	}
	nodes.Place(b, "", resources.Vector{})
	expect.That(t, nodes.Get("n1") == nil, "a node that is gone and empty is kept")
	again, _, _, _ := nodes.Upsert("n1", resources.Vector{})
	expect.That(t, again.Generation() > generation, "a generation of the node came again")
}

// TestNodes makes random changes. Nodes and pods must agree, and the capacity is what the
// changes sum up to.
func TestNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, pods, capacity := cache.NewNodes(), map[string]*cache.Pod{}, resources.Vector{}
		for _, name := range []string{"a", "b", "c"} {
			pods[name] = newPod(name)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node")
			amount := queuestest.Vector(rapid.SampledFrom([]string{"vcore=1", "vcore=2 memory=1Gi", "pods=1"}).Draw(t, "amount"))
			before := uint64(0)
			if n := nodes.Get(name); n != nil {
				before = n.Generation()
			}
			moved := true
			switch rapid.SampledFrom([]string{"place", "place", "take off", "upsert", "delete", "cordon", "open"}).Draw(t, "step") {
			case "place":
				nodes.Place(pods[rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "pod")], name, amount)
			case "take off":
				p := pods[rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "pod")]
				moved = p.IsOn(name)
				nodes.Place(p, "", resources.Vector{})
			case "upsert":
				_, more, _, changed := nodes.Upsert(name, amount)
				capacity, moved = capacity.Add(more), changed
			case "delete":
				n, _, less := nodes.Delete(name)
				capacity, moved = capacity.Sub(less), n != nil
			case "cordon":
				_, moved = nodes.SetSchedulable(name, false)
			case "open":
				_, moved = nodes.SetSchedulable(name, true)
			}
			if n := nodes.Get(name); moved && n != nil && n.Generation() == before {
				t.Fatalf("node %s changed and has the same generation", name)
			}
			if told := nodes.Take(); moved && !slices.Contains(told, name) {
				t.Fatalf("node %s changed, told are %v", name, told)
			}
			if err := nodes.Check(maps.Values(pods)); err != nil {
				t.Fatal(err)
			}
			if !nodes.Capacity().Equal(capacity) {
				t.Fatalf("capacity %v, changes sum up to %v", nodes.Capacity(), capacity)
			}
		}
	})
}

// TestNodesCheck plants bugs that Check has to see.
func TestNodesCheck(t *testing.T) {
	nodes, a, b := cache.NewNodes(), newPod("a"), newPod("b")
	nodes.Place(a, "n1", queuestest.Vector("vcore=1"))
	nodes.Place(b, "n1", queuestest.Vector("vcore=1"))
	copied := *a
	for name, pods := range map[string][]*cache.Pod{
		"a pod is missing":       {b},
		"a pod is another":       {&copied, b},
		"a pod is counted twice": {a, b, b},
	} {
		expect.That(t, nodes.Check(slices.Values(pods)) != nil, "%s: not seen", name)
	}
	expect.Holds(t, nodes.Check(slices.Values([]*cache.Pod{a, b})))
}
