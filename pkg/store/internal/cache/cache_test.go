package cache_test

import (
	"slices"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
)

var epoch = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// TestCapacity checks that orders get large changes at once and small ones a second after
// the last.
func TestCapacity(t *testing.T) {
	cores := func(n int64) resources.Vector {
		return resources.VectorOf(resources.Entry{Name: resources.CPU, Amount: resources.Amount(n)})
	}
	var c cache.Capacity
	at := func(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }
	expect.That(t, c.Set(cores(160), true, at(0)) && c.Set(cores(320), true, at(100)),
		"a large change waits")
	expect.That(t, !c.Set(cores(330), true, at(200)), "a small change does not wait")
	expect.That(t, c.Sum().Equal(cores(330)) && c.Told().Equal(cores(320)) && c.Due().Equal(at(1100)),
		"after a small change: %v, orders %v, due %v", c.Sum(), c.Told(), c.Due())
	expect.Holds(t, c.Check(cores(330)))
	expect.That(t, c.Check(cores(331)) != nil, "Check does not see another sum of nodes")
	if c.Tick(at(1099)) || !c.Tick(at(1100)) || c.Tick(at(1100)) || !c.Told().Equal(cores(330)) || !c.Due().IsZero() {
		t.Error("the orders are not told once, when the change is due")
	}
	c.Set(cores(331), true, at(1200))
	expect.That(t, c.Due().Equal(at(2100)), "a second small change is due %v", c.Due())
	expect.That(t, c.Set(cores(332), false, at(1300)), "a change that must not wait, waits")
}

// TestEmptyQueues checks that a queue goes when it was empty for the grace, with parents
// that exist only for it, and stays if it is used or configured.
func TestEmptyQueues(t *testing.T) {
	tree := queues.NewDraftFrom(queuestest.MustTree(t, "root\n  a\n  users parent"))
	e := cache.NewEmptyQueues(10 * time.Second)
	add := func(path string) *queues.Queue {
		return tree.Queue(tree.AddDynamic(path, "ns"))
	}
	x, y := add("root.users.x.deep"), add("root.users.y")
	a, _ := tree.Find("root.a")
	e.Note(a, epoch)
	expect.That(t, e.Due().IsZero(), "a configured queue is to be removed")
	e.Note(x, epoch)
	e.Note(y, epoch.Add(time.Second))
	e.Note(x, epoch.Add(5*time.Second)) // no effect
	if want := epoch.Add(10 * time.Second); !e.Due().Equal(want) {
		t.Errorf("due %v, want %v", e.Due(), want)
	}
	if gone, due := e.Remove(tree, epoch.Add(9*time.Second)); due || gone != nil {
		t.Error("a queue is removed within its grace")
	}
	gone, due := e.Remove(tree, epoch.Add(10*time.Second))
	expect.That(t, due && slices.Equal(gone, []queues.ID{x.ID, x.Parent}),
		"gone: %v; want x.deep and x", gone)
	tree.Update(y.ID, func(u *queues.Usage) { u.Applications++ })
	if gone, due := e.Remove(tree, epoch.Add(11*time.Second)); !due || len(gone) > 0 || tree.Queue(y.ID) == nil {
		t.Errorf("gone: %v; y is in use", gone)
	}
	expect.That(t, e.Due().IsZero(), "something is due after all")
}

// TestResourceTypesCheck: a pod that is charged a type that does not count, or is not charged
// one that does, is noticed.
func TestResourceTypesCheck(t *testing.T) {
	rt := cache.NewResourceTypes()
	p := &objects.Pod{Identity: objects.Identity{UID: "p"}, Request: queuestest.Vector("vcore=1 gpu=2")}
	expect.That(t, rt.Check(p) != nil,
		"Check does not see a pod that is charged a type that does not count")
	rt.Split(p)
	expect.Holds(t, rt.Check(p))
	rt.Add(cache.TypesIn(queuestest.Vector("gpu=8")))
	expect.That(t, rt.Check(p) != nil, "Check does not see a pod that is not charged")
}

// TestNamespaces checks that changes of annotations are told, and bad ones are errors.
func TestNamespaces(t *testing.T) {
	n := cache.Namespaces{}
	if changed, errs := n.Upsert("a", nil); !changed || errs != nil || n["a"].Quota != nil {
		t.Errorf("a new namespace: changed %v, %v", changed, errs)
	}
	if changed, _ := n.Upsert("a", map[string]string{}); changed {
		t.Error("the same annotations are a change")
	}
	bad := map[string]string{"yunikorn.apache.org/namespace.quota": "nonsense"}
	if changed, errs := n.Upsert("a", bad); !changed || len(errs) != 1 {
		t.Errorf("a bad quota: changed %v, %v", changed, errs)
	}
	good := map[string]string{"yunikorn.apache.org/namespace.quota": `{"cpu": "2"}`}
	if _, errs := n.Upsert("a", good); errs != nil || n["a"].Quota == nil {
		t.Errorf("a quota: %v, %v", n["a"].Quota, errs)
	}
}
