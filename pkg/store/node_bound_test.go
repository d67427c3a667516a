package store

import (
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// TestANodeBoundPodThatAMaxRefusesLateKeepsNoRoom: while pods come back to the order, the
// groups that a quota blocks are not checked again, although the quota may have got room. A
// node-bound pod may keep room for its node then (D0), enter such a group, and be refused by
// the check that follows.
func TestANodeBoundPodThatAMaxRefusesLateKeepsNoRoom(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  all\n  small max.vcore=3"), model.Options{})
	allocatable := queuestest.Vector("vcore=8 pods=10")
	s.UpsertNode("n1", allocatable, epoch)
	upsert := func(name, queue, app, vcore, on, requires string) {
		p := newPod(name, queue, app, queuestest.Vector("pods=1 vcore="+vcore))
		p.Node, p.RequiredNode = on, requires
		s.Upsert(p, epoch)
	}
	upsert("large", "root.small", "a", "2", "n1", "")
	upsert("rest", "root.small", "a", "1", "n1", "")
	upsert("blocked", "root.small", "a", "2", "", "")
	upsert("back", "root.all", "back", "1", "", "")
	s.Start(epoch)
	s.TakeActivations()
	s.NoNode("back", "", reasons.New(reasons.NoNodeFits, "none"), epoch)
	s.TakeActivations()
	s.Gate("back", epoch.Add(time.Minute))
	if !s.Returning() {
		t.Fatal("no pod is coming back")
	}
	s.Delete("large", epoch)
	upsert("bound", "root.small", "b", "2", "", "n1")
	first := func() []*NodeBoundPod { return s.NodeBound("n1").GoFirst(allocatable) }
	if first := first(); len(first) != 1 {
		t.Fatalf("%d pods keep room on the node, want the one that the max has room for", len(first))
	}
	upsert("used", "root.small", "b", "1", "n1", "")
	expect.Holds(t, s.Check())
	s.TakeActivations()
	expect.Holds(t, s.Check())
	if first := first(); len(first) != 0 {
		t.Errorf("%v keep room on the node, and a max refuses them", first)
	}
}
