package cache_test

import (
	"slices"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
)

// record is an application as a caller has it.
type record struct{ cache.App }

// TestApps checks which record of an application a new pod joins, and that each of two
// leaves has its own record until it is removed.
func TestApps(t *testing.T) {
	tree := queues.NewDraftFrom(queuestest.MustTree(t, "root\n  a\n  b\n  c\n    d"))
	leaf := func(path string) queues.ID {
		q, ok := tree.Find(path)
		if !ok {
			t.Fatal("no queue", path)
		}
		return q.ID
	}
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
	expect.That(t, len(x.Leaves()) == 3 && len(slices.Collect(x.Records())) == 3,
		"leaves %v", x.Leaves())
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
	if !b.BelowGuarantee(a.Leaf, two, false) || b.BelowGuarantee(a.Leaf, two, true) || b.BelowGuarantee(a.Leaf, queuestest.Vector("memory=1"), false) {
		t.Error("a queue with 2 of 3 guaranteed is below its guarantee; with 2 more it is not")
	}
}
