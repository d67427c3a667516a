package store_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/admission"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// busy is a store with a pod in each state but GroupBlocked and Scheduling.
func busy(t *testing.T) *store.Store {
	t.Helper()
	s := store.New(specification(t, "root limit=*;max.vcore=9\n  a max.vcore=3\n  b"), store.Options{Window: 1, MaxWindow: 1})
	s.Start(epoch)
	for _, p := range []struct{ name, queue string }{
		{"bound", "root.b"}, {"assumed", "root.b"}, {"unschedulable", "root.b"}, {"backing-off", "root.b"},
		{"admitted", "root.b"}, {"queued", "root.b"}, {"no-queue", "root.nowhere"},
	} {
		pod := newPod(p.name, p.queue, p.name, queuestest.Vector("vcore=1 pods=1"))
		s.Upsert(pod, epoch)
		switch p.name {
		case "bound", "assumed":
			s.Assume(pod.UID, "n1", store.NoSnapshot, epoch)
		case "unschedulable", "backing-off":
			s.NoNode(pod.UID, "class", reasons.Brief(reasons.NoNodeFits), epoch)
		}
		if p.name == "bound" {
			pod.Node = "n1"
			s.Upsert(pod, epoch)
		}
	}
	s.Gate("backing-off", epoch)
	return s
}

// hold plants a hold in the ledger: node-bound, or committed with the chosen pods.
func hold(m *model.Model, asker types.UID, node string, chosen ...types.UID) {
	h := reservations.Hold{Asker: asker, Node: node, Since: epoch, NodeBound: len(chosen) == 0, Chosen: chosen}
	if len(chosen) > 0 {
		h.LastDisruption = epoch
	}
	if err := m.Preemption.Ledger.Place(h); err != nil {
		panic(err)
	}
}

// disturbed is a store with what the tests of its checks change.
type disturbed struct {
	*store.Store
	m      *model.Model
	states *admission.States
}

func TestCheckFindsDisorder(t *testing.T) {
	expect.OK(t, busy(t).Check())
	for _, c := range []struct {
		name    string
		disturb func(s disturbed)
		want    string
	}{
		{"usage too high", func(s disturbed) {
			s.m.Cache.Tree().Update(s.m.Pods["bound"].App.Leaf, func(u *queues.Usage) { u.Allocated = u.Allocated.Add(queuestest.Vector("vcore=1")) })
		}, "queue root.b: books say"},
		{"a pod charged elsewhere", func(s disturbed) { p := s.m.Pods["assumed"]; s.m.Charge(p, p.Amount(), cache.Pending) }, "is charged in columns"},
		{"an ask charged too little", func(s disturbed) { s.m.Charge(s.m.Pods["queued"], queuestest.Vector("pods=1"), cache.Pending) }, "pod ns/queued (Queued): is charged"},
		{"a slot too many", func(s disturbed) { s.m.Pending.Window.Enter(s.m.Pods["bound"], s.m.Pods["bound"].App.Leaf) }, "slots taken"},
		{"a pod not in the order", func(s disturbed) { s.states.Withdraw(s.m.Pods["queued"], state.NoQueue) }, "is in the order: false"},
		{"a transition that is not in the table", func(s disturbed) { s.states.SetState(s.m.Pods["bound"], state.Queued) }, "the first one is Bound to Queued"},
		{"a slot without a lease", func(s disturbed) { s.m.Pending.Timers.Clear(&s.m.Pods["admitted"].Timer) }, "has a deadline: false"},
		{"a slot without a key", func(s disturbed) { s.m.Pending.Keys.Remove("admitted") }, "has no sort key"},
		{"a key of nobody", func(s disturbed) { s.m.Pending.Keys.Add("nobody", 0, 0) }, "which is gone"},
		{"a key of a running pod", func(s disturbed) { s.m.Pending.Keys.Add("bound", 0, 0) }, "still has a sort key"},
		{"a running pod without a node", func(s disturbed) { s.m.Pods["bound"].Node = "" }, "has no node"},
		{"an unplaced pod not listed", func(s disturbed) { delete(s.m.Unplaced, "no-queue") }, "listed as unplaced: false"},
		{"a pod without an application", func(s disturbed) { s.m.Pods["unschedulable"].App = nil }, "has an application: false"},
		{"a pod that waits is no asker", func(s disturbed) { s.m.Pods["unschedulable"].Asker = nil }, "has no record of an asker"},
		{"a pod that waits shares its wait state", func(s disturbed) { s.m.Pods["no-queue"].WaitState = s.m.NoWaitState }, "shares its wait state with pods that do"},
		{"a running pod has a wait state of its own", func(s disturbed) { p := s.m.Pods["bound"]; p.WaitState = model.NewWaitState(p, p.UID) }, "has its own wait state, without a timer"},
		{"a running pod is an asker", func(s disturbed) { s.m.Pods["bound"].Asker = preemption.NewAsker("bound") }, "keeps a record of an asker"},
		{"what many share is written", func(s disturbed) { s.m.NoWaitState.GaveWay = 7 }, "share a wait state that is not empty"},
		{"a pod that is known as another one", func(s disturbed) { p := *s.m.Pods["bound"]; s.m.Pods["bound"] = &p }, "is not there"},
		{"a hold of a pod that is gone", func(s disturbed) { hold(s.m, "nobody", "n1") }, "is held for nobody, which is gone"},
		{"a hold of a pod without a queue", func(s disturbed) { hold(s.m, "no-queue", "n1") }, "is held for no-queue, which has no queue"},
		{"a hold of a node that is gone", func(s disturbed) { hold(s.m, "unschedulable", "n9") }, "node n9: is held for unschedulable: node n9 is not there"},
		{"a holder that has room and is not tried", func(s disturbed) {
			p := s.m.Pods["unschedulable"]
			s.TakeActivations()
			hold(s.m, p.UID, "n1", "bound")
			s.states.SetHoldsNode(p, true)
			s.states.Disarm(p)
			s.m.Recharge(p)
		}, "may be placed on node n1, which it holds, and is not tried"},
		{"a holder that waits and is said to have its node", func(s disturbed) {
			hold(s.m, "unschedulable", "n1")
			s.states.SetHoldsNode(s.m.Pods["unschedulable"], true)
			s.m.Recharge(s.m.Pods["unschedulable"])
			s.m.Preemption.Ledger.SetPlaced("unschedulable", true)
		}, "is Unschedulable, by the ledger placed: true"},
		{"a pod that waits for a quota and holds nothing", func(s disturbed) {
			s.m.Pending.BlockedHolders.Set(s.m.Pods["unschedulable"], queues.Verdict{At: queues.RootID, Reason: s.m.NotStarted()})
		}, "refused holders: pod unschedulable holds no node"},
		{"a node-bound pod that is gone", func(s disturbed) {
			s.m.Preemption.NodeBound.Update(&objects.Pod{Identity: objects.Identity{UID: "nobody"}, Spec: objects.Spec{RequiredNode: "n1"}}, epoch)
		}, "node-bound pods: nobody is gone"},
		{"a node-bound pod that goes first without a queue", func(s disturbed) {
			s.m.Preemption.NodeBound.Update(&objects.Pod{Identity: objects.Identity{UID: "no-queue"}, Spec: objects.Spec{RequiredNode: "n1"}}, epoch)
			s.m.Preemption.NodeBound.SetMayBeTried("no-queue", true, queues.NoQueue, epoch)
		}, "node-bound pods: no-queue keeps room on its node"},
		{"a pod that waits counted twice", func(s disturbed) { s.m.History.Waits.Update(&history.Tally{}, s.m.Pods["unschedulable"].Tallied) }, "are counted, there are [1 1 0 1 0 1 "},
		{"a pod that waits not counted", func(s disturbed) { s.m.History.Waits.Update(&s.m.Pods["unschedulable"].Tallied, history.Tally{}) }, "is counted as {In:false"},
		{"a pod counted in another state", func(s disturbed) { s.m.Pods["unschedulable"].Tallied.State = state.BackingOff }, "is counted as {In:true State:BackingOff"},
		{"counts of a queue without pods", func(s disturbed) { s.m.History.Waits.Refuse(77, "", epoch) }, "waiting pods: queue 77"},
		{"a member of a class too many", func(s disturbed) {
			p, c := s.m.Pods["unschedulable"], (*pending.Class)(nil)
			s.m.Pending.Classes.Join(&c, p.App.Ordered, p.Request, p.EquivalenceClass.Hash(), state.Unschedulable)
		}, "2 counted"},
		{"a failed class that no event can bring back", func(s disturbed) {
			s.Gate("unschedulable", epoch)
			s.m.Pending.Classes.Fail(s.m.Pods["unschedulable"].EquivalenceClass, 0)
		}, "the scheduler has none of it"},
		{"an admitted member of a class too many", func(s disturbed) { s.m.Pending.Classes.Move(&pending.Class{}, state.Queued, state.Admitted) }, "class limit: 1 pods counted"},
		{"a snapshot that is said to be current", func(s disturbed) {
			s.Snapshot()
			s.m.Charge(s.m.Pods["unschedulable"], queuestest.Vector("pods=9"), cache.Pending)
		}, "snapshot: root has"},
	} {
		s := busy(t)
		m := s.Model()
		c.disturb(disturbed{s, m, admission.NewStates(m, admission.NewDemand(m))})
		err := s.Check()
		expect.That(t, err != nil && strings.Contains(err.Error(), c.want), "%s: %v, want %q", c.name, err, c.want)
	}
}

func TestCompareWithFindsDifferences(t *testing.T) {
	s := busy(t)
	known := s.TakeChanges(100).Pods
	for _, c := range []struct {
		name   string
		uid    types.UID
		change func(*objects.Pod) // nil if the pod is not listed
		want   string
	}{
		{"equal, as completed pods do not count", "x", func(*objects.Pod) {}, "<nil>"},
		{"pending pods that are deleted do not count", "x", func(p *objects.Pod) { p.Terminal, p.Deleting = false, true }, "<nil>"},
		{"one more", "x", func(p *objects.Pod) { p.Terminal = false }, "pod ns/x: the store does not know it"},
		{"one less", "bound", nil, "pod ns/bound: it has ended, and the store has it still"},
		{"it runs", "assumed", func(p *objects.Pod) { p.Node = "n1" }, "pod ns/assumed: it runs on node \"n1\", the store has it as Assumed"},
		{"it does not run", "bound", func(p *objects.Pod) { p.Node = "" }, "pod ns/bound: it runs on node \"\", the store has it as Bound"},
		{"it runs elsewhere", "bound", func(p *objects.Pod) { p.Node = "n2" }, "pod ns/bound: it runs on node n2, the store says n1"},
		{"it uses more", "bound", func(p *objects.Pod) { p.Request = queuestest.Vector("vcore=2 pods=1") },
			"pod ns/bound: it requests pods=1 vcore=2000, the store charges pods=1 vcore=1000"},
	} {
		listed := map[types.UID]objects.Pod{"x": {
			Identity: objects.Identity{UID: "x", Namespace: "ns", Name: "x"}, Status: objects.Status{Terminal: true},
		}}
		for _, p := range known {
			listed[p.UID] = *p.Pod
		}
		p := listed[c.uid]
		if delete(listed, c.uid); c.change != nil {
			c.change(&p)
			listed[c.uid] = p
		}
		expect.Same(t, c.name, c.want, fmt.Sprint(s.CompareWith(slices.Collect(maps.Values(listed)))))
	}
}
