package store

import (
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// A node-bound pod goes first on its node until it was tried there, for a bounded time,
// and again when the node changes. Each time this ends, pods that were refused may try
// again.
func TestNodeBoundPodsGoFirst(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  a"), model.Options{})
	s.Start(epoch)
	s.UpsertNode("n1", queuestest.Vector("vcore=4 pods=10"), epoch)
	daemon := objects.Pod{Identity: objects.Identity{UID: "d", Namespace: "ns", Name: "d", Created: epoch}, Spec: objects.Spec{Foreign: true, Peer: true, RequiredNode: "n1"}, Request: queuestest.Vector("vcore=1 pods=1")}
	check := func(what string, first bool, vacated int) {
		t.Helper()
		if got := len(s.NodeBound("n1")) == 1; got != first || s.AnyNodeBound() != first {
			t.Errorf("%s: it goes first: %v, want %v", what, got, first)
		}
		if n := len(s.TakeVacated()); n != vacated {
			t.Errorf("%s: %d nodes are told of, want %d", what, n, vacated)
		}
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.TakeVacated()
	s.Upsert(daemon, epoch)
	check("it exists", true, 0)
	s.AttemptNodeBound("d", nil, epoch)
	check("it was tried", false, 1)
	now := epoch.Add(time.Second)
	s.NodeChanged("n1", now)
	check("its node changed", true, 0)
	if due, ok := s.NextDeadline(); !ok || due.After(now.Add(preemption.NodeBoundFor)) {
		t.Errorf("the next deadline is %v, %v", due, ok)
	}
	s.Tick(now.Add(preemption.NodeBoundFor))
	check("its time is over", false, 1)
	s.UpsertNode("n1", queuestest.Vector("vcore=5 pods=10"), now)
	check("its node is larger", true, 0)
	gated := daemon
	gated.Gated = true
	s.Upsert(gated, now)
	check("a gate keeps it", false, 1)
	s.Upsert(daemon, now)
	check("the gate is gone", true, 0)
	on := daemon
	on.Node = "n1"
	s.Upsert(on, now)
	check("it has its node", false, 1)
	s.Delete("d", now)
	check("it is gone", false, 0)
	s.Upsert(daemon, now)
	s.Lost("d", now)
	check("it ended while the watch was interrupted", false, 1)
}
