package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/admission"
)

func askingPod(name string) objects.Pod {
	return newPod(name, "root.a", name, queuestest.Vector("vcore=1 pods=1"))
}

// TestWakeOnlyWithWork: a reader of Wake is not told without work, and once for all there is
// to do. That it is told of all work is asserted by the scripts.
func TestWakeOnlyWithWork(t *testing.T) {
	s := store.New(queuestest.MustTree(t, "root\n  a"), store.Options{})
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

// Assume does not admit the next pod, because the scheduler waits for it; the reader of Wake does.
func TestTheSlotOfAnAssumedPodIsGivenAwayLater(t *testing.T) {
	s := store.New(queuestest.MustTree(t, "root\n  a"), store.Options{Window: 1, MaxWindow: 1})
	s.Start(epoch)
	s.Upsert(askingPod("p1"), epoch)
	s.Upsert(askingPod("p2"), epoch)
	s.TakeActivations()
	v := s.Assume("p1", "n1", store.NoSnapshot, epoch)
	expect.That(t, v.OK(), "the first pod is refused: %s", v.Reason)
	_, keyed := s.Key("p2")
	expect.That(t, !keyed, "the next pod was let through while the scheduler waited")
	refs := s.TakeActivations()
	expect.That(t, len(refs) == 1 && refs[0].UID == "p2", "let through: %v, want the next pod", refs)
	expect.Holds(t, s.Check())
}

// TestWaitsForDeletedQueue: a snapshot may be older than the store.
func TestWaitsForDeletedQueue(t *testing.T) {
	s := store.New(queuestest.MustTree(t, "root\n  a\n  b"), store.Options{})
	s.Start(epoch)
	s.Upsert(askingPod("p"), epoch)
	s.NoNode("p", "", reasons.Brief(reasons.NoNodeFits), epoch)
	old, _ := s.Snapshot().Find("root.a")
	s.Delete("p", epoch)
	s.Configure(queuestest.MustTree(t, "root\n  b"), epoch)
	s.Tick(epoch.Add(time.Hour))
	_, there := s.Snapshot().Find("root.a")
	expect.That(t, !there, "it is still there")
	expect.Same(t, "it waits for", []reasons.Code{""}, s.WaitsFor([]*queues.Queue{old}, epoch))
}

// TestAttemptsOfARunningPod: its WaitState is dropped, and how often it was tried stays.
func TestAttemptsOfARunningPod(t *testing.T) {
	s := store.New(queuestest.MustTree(t, "root\n  a"), store.Options{})
	s.Start(epoch)
	p := askingPod("p")
	s.Upsert(p, epoch)
	s.NoNode(p.UID, "", reasons.Brief(reasons.NoNodeFits), epoch)
	p.Node = "n1"
	s.Upsert(p, epoch)
	expect.Same(t, "attempts that readers see", 1, s.TakeChanges(100).Pods[0].Attempts())
	expect.Holds(t, s.Check())
}

// TestBlockedPodOfACompleteGroup: a pod that waits for its PodGroup returns to the order when the
// group is complete, although a plan for it is due before pods are admitted.
func TestBlockedPodOfACompleteGroup(t *testing.T) {
	s := store.New(queuestest.MustTree(t, "root\n  a guaranteed.vcore=4 props=preemption.delay:1s\n  b"), store.Options{})
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

// TestManyRequestsHideNoPodBelowItsGuarantee: requests that no node can take, of other queues
// or below the same max, do not use up the bounds of the look at pods that go first (P2a).
func TestManyRequestsHideNoPodBelowItsGuarantee(t *testing.T) {
	for _, queue := range []string{"root.other", "root.p.h"} {
		s := store.New(queuestest.MustTree(t, `root
  other
  p max.vcore=1
    g guaranteed.vcore=1
    h guaranteed.vcore=1
    loose`), store.Options{})
		upsert := func(name, queue string, vcore int) {
			s.Upsert(newPod(name, queue, name, queuestest.Vector(fmt.Sprintf("pods=1 vcore=%d", vcore))), epoch)
			s.TakeActivations()
		}
		s.UpsertNode("n1", queuestest.Vector("vcore=10 pods=500"), epoch)
		s.Start(epoch)
		upsert("borrower", "root.p.loose", 1)
		upsert("owed", "root.p.g", 1)
		for i := range 300 {
			upsert(fmt.Sprintf("large-%03d", i), queue, 20+i)
		}
		s.Gate("borrower", epoch)
		v := s.Assume("borrower", "n1", store.NoSnapshot, epoch)
		expect.Same(t, "what the borrower is told beside requests of "+queue, reasons.InOrder, v.Reason.Code)
	}
}

// TestAPodGivesWayToEventsThatComeLate: the scheduler's snapshot has fewer pods on a node than
// the store, while another pod found no node. The pod that found the node goes back to the
// order until the store has these events, and no more often than the bound. Events that came
// 24 ms late took 15 tries of each of seven pods on two busy cores.
func TestAPodGivesWayToEventsThatComeLate(t *testing.T) {
	var s script
	datadriven.RunTestFromString(t, strings.Join([]string{
		"store started window=64\nroot\n  g guaranteed.vcore=4\n  loose\n----\n",
		"node n1 vcore=5 pods=10\n----\n",
		"upsert\ng1 queue=root.g node=n1 app=g\nwaits queue=root.g app=g\n----\nadmitted: waits\n",
		"gate waits\n----\nwaits: enters\n",
		"failed waits\n----\n",
		"upsert\nfound queue=root.loose app=l\n----\nadmitted: found\n",
		"gate found\n----\nfound: enters\n",
	}, "\n"), s.do)
	times := 0
	for ; times <= admission.MostGivenWay && s.assume(s.pods["found"], 0) != "granted"; times++ {
		s.takeActivations(&strings.Builder{})
	}
	expect.That(t, times >= 20 && times == admission.MostGivenWay,
		"the pod went back %d times, want the bound of %d, and 20 at least", times, admission.MostGivenWay)
}

// TestANodeBoundPodThatAMaxRefusesLateKeepsNoRoom: while pods come back to the order, the groups that a
// quota blocks are not checked again, although the quota may have got room. A node-bound pod may keep
// room for its node then (D0), enter such a group, and be refused by the check that follows.
func TestANodeBoundPodThatAMaxRefusesLateKeepsNoRoom(t *testing.T) {
	s := store.New(queuestest.MustTree(t, "root\n  all\n  small max.vcore=3"), store.Options{})
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
	expect.That(t, s.Returning(), "no pod is coming back")
	s.Delete("large", epoch)
	upsert("bound", "root.small", "b", "2", "", "n1")
	goFirst := func() int { return len(s.NodeBound("n1").GoFirst(allocatable)) }
	expect.Same(t, "pods that keep room on the node while the max has room for one", 1, goFirst())
	upsert("used", "root.small", "b", "1", "n1", "")
	expect.Holds(t, s.Check())
	s.TakeActivations()
	expect.Holds(t, s.Check())
	expect.Same(t, "pods that keep room on the node, and a max refuses them", 0, goFirst())
}
