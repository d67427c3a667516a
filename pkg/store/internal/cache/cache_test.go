package cache_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
)

var epoch = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// TestCapacity checks that orders get large changes at once and small ones later (the script
// capacity.txt shows how much later).
func TestCapacity(t *testing.T) {
	cores := func(n int64) resources.Vector {
		return resources.VectorOf(resources.Entry{Name: resources.CPU, Amount: resources.Amount(n)})
	}
	var c cache.Capacity
	at := func(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }
	expect.That(t, c.Set(cores(160), true, at(0)) && c.Set(cores(320), true, at(100)), "a large change waits")
	expect.That(t, !c.Set(cores(330), true, at(200)), "a small change does not wait")
	expect.That(t, c.Sum().Equal(cores(330)) && c.Told().Equal(cores(320)) && c.Due().Equal(at(1100)),
		"after a small change: %v, orders %v, due %v", c.Sum(), c.Told(), c.Due())
	expect.Holds(t, c.Check(cores(330)))
	expect.That(t, c.Check(cores(331)) != nil, "Check does not see another sum of nodes")
	expect.That(t, c.Set(cores(332), false, at(300)), "a change that must not wait, waits")
}

// TestEmptyQueues checks that a queue goes when it was empty for the grace, with parents
// that exist only for it, and stays if it is used or configured.
func TestEmptyQueues(t *testing.T) {
	tree := queues.NewDraftFrom(queuestest.MustTree(t, "root\n  a\n  users parent"))
	e := cache.NewEmptyQueues(10 * time.Second)
	add := func(path string) *queues.Queue { return tree.Queue(tree.AddDynamic(path, "ns")) }
	x, y := add("root.users.x.deep"), add("root.users.y")
	a, _ := tree.Find("root.a")
	e.Note(a, epoch)
	expect.That(t, e.Due().IsZero(), "a configured queue is to be removed")
	e.Note(x, epoch)
	e.Note(y, epoch.Add(time.Second))
	e.Note(x, epoch.Add(5*time.Second)) // no effect
	expect.Same(t, "due", epoch.Add(10*time.Second), e.Due())
	gone, due := e.Remove(tree, epoch.Add(9*time.Second))
	expect.That(t, !due && gone == nil, "a queue is removed within its grace")
	gone, due = e.Remove(tree, epoch.Add(10*time.Second))
	expect.That(t, due && slices.Equal(gone, []queues.ID{x.ID, x.Parent}), "%v; want x.deep and x", gone)
	tree.Update(y.ID, func(u *queues.Usage) { u.Applications++ })
	gone, due = e.Remove(tree, epoch.Add(11*time.Second))
	expect.That(t, due && len(gone) == 0 && tree.Queue(y.ID) != nil, "gone: %v; y is in use", gone)
	expect.That(t, e.Due().IsZero(), "something is due after all")
}

// TestResourceTypesCheck: a pod that is charged a type that does not count, or is not charged
// one that does, is noticed.
func TestResourceTypesCheck(t *testing.T) {
	rt := cache.NewResourceTypes()
	p := &objects.Pod{Identity: objects.Identity{UID: "p"}, Request: queuestest.Vector("vcore=1 gpu=2")}
	expect.That(t, rt.Check(p) != nil, "Check misses a pod that is charged a type that does not count")
	rt.Split(p)
	expect.Holds(t, rt.Check(p))
	rt.Add(cache.TypesIn(queuestest.Vector("gpu=8")))
	expect.That(t, rt.Check(p) != nil, "Check does not see a pod that is not charged")
}

type record struct{ cache.App }

// TestApps checks which record of an application a new pod joins, and that each of two
// leaves has its own record until it is removed.
func TestApps(t *testing.T) {
	tree := queues.NewDraftFrom(queuestest.MustTree(t, "root\n  a\n  b\n  c\n    d"))
	leaf := func(path string) queues.ID { return idOf(t, tree, path) }
	x, name := cache.NewApps[*record](), cache.AppName{Namespace: "ns", ID: "x"}
	add := func(path string) *record {
		r := &record{cache.NewApp(name, leaf(path), queues.Owner{}, nil, epoch)}
		x.Add(r)
		return r
	}
	parent, a, b := add("root.c"), add("root.a"), add("root.b")
	expect.That(t, x.Joinable(tree, name, true) == a && x.In(leaf("root.b"), name) == b &&
		parent.Serial == 1 && b.Serial == 3, "a pod joins another record than the oldest one in a leaf")
	other := cache.AppName{Namespace: "ns", ID: "x", Queue: "A"}
	expect.That(t, x.Rejoin(leaf("root.a"), other) == a && x.Joinable(tree, other, false) == a &&
		x.Rejoin(leaf("root.c.d"), name) == nil, "a record is not found by another name in its leaf")
	expect.That(t, len(x.Leaves()) == 3 && len(slices.Collect(x.Records())) == 3, "%v", x.Leaves())
	p := madePod(&objects.Pod{Identity: objects.Identity{UID: "p"}})
	a.Join(p)
	pods := slices.Values([]*cache.Pod{p})
	expect.Holds(t, x.Check(pods))
	expect.That(t, x.Remove(a) && x.Joinable(tree, name, false) == b && len(x.Named(other)) == 0,
		"a record that was removed is still known")
	expect.That(t, x.Check(pods) != nil, "Check does not see that the record of a pod is unknown")
}

// TestBelowGuarantee checks when law 4 can be met.
func TestBelowGuarantee(t *testing.T) {
	b, app := books(t, "root\n  a guaranteed.vcore=3")
	a := app("root.a", "u")
	p := madePod(&objects.Pod{Identity: objects.Identity{UID: "p"}})
	a.Join(p)
	two := queuestest.Vector("vcore=2")
	b.Charge(p, two, cache.Allocated)
	memory := b.BelowGuarantee(a.Leaf, queuestest.Vector("memory=1"), false)
	expect.That(t, b.BelowGuarantee(a.Leaf, two, false) && !b.BelowGuarantee(a.Leaf, two, true) && !memory,
		"a queue with 2 of 3 guaranteed is below its guarantee; with 2 more it is not")
}

func newPod(name string) *cache.Pod {
	return madePod(&objects.Pod{Identity: objects.Identity{UID: types.UID(name), Namespace: "ns", Name: name}})
}

// TestNodesComeAndGo: a node that is gone stays as long as it has pods, and then leaves nothing
// but the number of its last generation.
func TestNodesComeAndGo(t *testing.T) {
	nodes, a, b := cache.NewNodes(), newPod("a"), newPod("b")
	n, more, came, changed := nodes.Upsert("n1", queuestest.Vector("vcore=8"))
	expect.That(t, came && changed && more.Equal(queuestest.Vector("vcore=8")),
		"a new node: came %v, changed %v, %v more", came, changed, more)
	_, _, _, changed = nodes.Upsert("n1", queuestest.Vector("vcore=8"))
	expect.That(t, !changed, "the same allocatable is a change")
	nodes.Place(b, "n1", queuestest.Vector("vcore=1"))
	nodes.Place(a, "n1", queuestest.Vector("vcore=2"))
	expect.That(t, a.On() == n && b.IsOn("n1") && !b.IsOn("n2") && n.Room().Equal(queuestest.Vector("vcore=5")),
		"%v is free", n.Room())
	began := nodes.Arrivals()
	nodes.Place(a, "n1", queuestest.Vector("vcore=1"))
	expect.That(t, a.Arrival() <= began, "a pod that shrinks came anew")
	nodes.Place(a, "n1", queuestest.Vector("vcore=2"))
	expect.That(t, a.Arrival() > began, "a pod that grows did not come anew")
	generation := n.Generation()
	nodes.Place(a, "n2", queuestest.Vector("vcore=3"))
	_, known, less := nodes.Delete("n1")
	expect.That(t, known && less.Equal(queuestest.Vector("vcore=8")) && nodes.Get("n1") == n,
		"a node that is gone keeps its pods")
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
