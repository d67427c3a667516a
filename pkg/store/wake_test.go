package store

import (
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

func askingPod(name string) objects.Pod {
	return newPod(name, "root.a", name, queuestest.Vector("vcore=1 pods=1"))
}

// TestWakeOnlyWithWork: a reader of Wake is not told without work, and once for all there is
// to do. That it is told of all work is asserted by the scripts.
func TestWakeOnlyWithWork(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  a"), model.Options{})
	wakes := func(what string, times int) {
		t.Helper()
		expect.Same(t, what+": times told", times, len(s.Wake()))
		for range len(s.Wake()) {
			<-s.Wake()
		}
	}
	s.Start(epoch)
	wakes("nothing is there", 0)
	p := askingPod("p")
	s.Upsert(p, epoch)
	wakes("a pod is let through", 1)
	s.TakeActivations()
	s.NextDeadline()
	s.NoNode(p.UID, "", reasons.New(reasons.NoNodeFits, "none"), epoch)
	wakes("no deadline is earlier than before", 0)
	s.Gate(p.UID, epoch)
	s.Tick(epoch.Add(time.Second))
	s.Tick(epoch.Add(time.Second))
	wakes("it backed off, and is let through", 1)
}

// Assume does not admit the next pod, because the scheduler waits for it; the reader of
// Wake does.
func TestTheSlotOfAnAssumedPodIsGivenAwayLater(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  a"), model.Options{Window: 1, MaxWindow: 1})
	s.Start(epoch)
	s.Upsert(askingPod("p1"), epoch)
	s.Upsert(askingPod("p2"), epoch)
	s.TakeActivations()
	if v := s.Assume("p1", "n1", NoSnapshot, epoch); !v.OK() {
		t.Fatal(v.Reason)
	}
	_, keyed := s.Key("p2")
	expect.That(t, !keyed, "the next pod was let through while the scheduler waited")
	refs := s.TakeActivations()
	expect.That(t, len(refs) == 1 && refs[0].UID == "p2", "let through: %v, want the next pod", refs)
	expect.Holds(t, s.Check())
}

// TestWaitsForDeletedQueue: a snapshot may be older than the store.
func TestWaitsForDeletedQueue(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  a\n  b"), model.Options{})
	s.Start(epoch)
	s.Upsert(askingPod("p"), epoch)
	s.NoNode("p", "", reasons.Brief(reasons.NoNodeFits), epoch)
	old, _ := s.Snapshot().Find("root.a")
	s.Delete("p", epoch)
	s.Configure(queuestest.MustTree(t, "root\n  b"), epoch)
	s.Tick(epoch.Add(time.Hour))
	if _, there := s.Snapshot().Find("root.a"); there {
		t.Fatal("it is still there")
	}
	codes := s.WaitsFor([]*queues.Queue{old}, epoch)
	expect.That(t, len(codes) == 1 && codes[0] == "", "it waits for %v", codes)
}

// TestAttemptsOfARunningPod: its WaitState is dropped, and how often it was tried
// stays.
func TestAttemptsOfARunningPod(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  a"), model.Options{})
	s.Start(epoch)
	p := askingPod("p")
	s.Upsert(p, epoch)
	s.NoNode(p.UID, "", reasons.Brief(reasons.NoNodeFits), epoch)
	p.Node = "n1"
	s.Upsert(p, epoch)
	expect.Same(t, "attempts that readers see", 1, s.model.RecordOf(s.model.Pods["p"]).Attempts())
	expect.Holds(t, s.Check())
}

// TestBlockedPodOfACompleteGroup: a pod that waits for its PodGroup returns to the order when the
// group is complete, although a plan for it is due before pods are admitted.
func TestBlockedPodOfACompleteGroup(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  a guaranteed.vcore=4 props=preemption.delay:1s\n  b"), model.Options{})
	s.FollowPodGroups()
	s.Start(epoch)
	for _, name := range []string{"x1", "x2", "other"} {
		p := askingPod(name)
		if name != "other" {
			p.Labels[objects.PodGroupLabel] = "x"
		}
		if name == "x1" {
			p.Node = "n1"
		}
		s.Upsert(p, epoch)
	}
	s.SetPodGroup("ns", "x", 3, epoch)
	s.NoNode("other", "", reasons.Brief(reasons.NoNodeFits), epoch)
	s.TakeActivations()
	later := epoch.Add(time.Minute)
	s.Gate("other", later) // the order is about to change, so no pod is admitted
	s.SetPodGroup("ns", "x", 1, later)
	s.Tick(later)
	s.TakeActivations()
	expect.Holds(t, s.Check())
}
