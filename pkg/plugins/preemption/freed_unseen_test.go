package preemption_test

import (
	"testing"
	"time"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// wantTried checks why a pod waits half a second after it found no node; its back-off is one
// second. No victims are chosen for it.
func (c *cluster) wantTried(t *testing.T, want reasons.Code) {
	t.Helper()
	asker := never(plugintest.Pod("asker", 150))
	c.answer(t, asker)
	c.store.Tick(c.now.Add(500 * time.Millisecond))
	why := c.store.Explain(asker.UID)
	expect.That(t, why.Code == want, "the pod waits for %v, want %s", why, want)
}

// TestLostPod: while a pod that is gone is still on a node of the scheduler's snapshot, a
// pod that found no node is requeued. Once the snapshot no longer has it, none is.
func TestLostPod(t *testing.T) {
	for _, c := range []struct {
		name string
		lost []string // twice: the store no longer knows of a node
		want reasons.Code
		left int
	}{
		{"no pod", nil, reasons.NoNodeFits, 0},
		{"the cache has it", []string{"v1"}, reasons.BackingOff, 1},
		{"the cache has it, without a node", []string{"v1", "v1"}, reasons.BackingOff, 2},
		{"the cache knows", []string{"stranger"}, reasons.NoNodeFits, 0},
		{"one of two", []string{"stranger", "v2"}, reasons.BackingOff, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := twoNodes(t, podList{running("v1", "n1", 200), running("v2", "n2", 200)})
			for _, name := range c.lost {
				cl.store.DeleteLastSeenPending(plugintest.Pod(name, 0).UID, cl.now)
			}
			cl.store.Tick(cl.now) // requeues the pods that wait now; the asker comes later
			cl.wantTried(t, c.want)
			expect.Same(t, "left to look for", c.left, len(cl.store.FreedPods(cl.now)))
		})
	}
}

// TestLostNomination: while a pod is still nominated to the node after the end of its
// hold, a pod that found no node is requeued.
func TestLostNomination(t *testing.T) {
	for nominated, want := range map[bool]reasons.Code{false: reasons.NoNodeFits, true: reasons.BackingOff} {
		cl, holder := fullNode(t), plugintest.Pod("holder", 150)
		cl.answers(t, holder, "n1", "", "v1")
		if nominated {
			cl.nominate(t, holder)
		}
		cl.store.FailPlan(holder.UID, reasons.New(reasons.HoldGivenUp, "the API server refused"), nil, cl.now)
		cl.store.Tick(cl.now)
		cl.wantTried(t, want)
	}
}

// TestShrunkPod: the cache is up to date once the pod on its node has the new requests, and not
// while the snapshot still has 200.
func TestShrunkPod(t *testing.T) {
	for before, want := range map[int64]reasons.Code{200: reasons.BackingOff, 300: reasons.NoNodeFits} {
		cl := newCluster(t, twoQueues, nodeList{node("n1", 300)}, podList{running("v1", "n1", 200)})
		now := running("v1", "", before)
		cl.store.Delete(now.UID, cl.now)
		cl.store.Upsert(cl.translate(now), cl.now)
		if v := cl.store.Assume(now.UID, "n1", store.NoSnapshot, cl.now); !v.OK() {
			t.Fatal(v)
		}
		cl.store.Upsert(cl.translate(running("v1", "n1", 100)), cl.now)
		if got := cl.store.FreedPods(cl.now); len(got) != 1 {
			t.Fatalf("requested %d and then 100: %v", before, got)
		}
		cl.store.Tick(cl.now)
		cl.wantTried(t, want)
	}
}

// TestLostPodOfADaemonSetsNode: a node-bound pod without a queue that waits for its node
// is requeued, too.
func TestLostPodOfADaemonSetsNode(t *testing.T) {
	for lost, want := range map[string]bool{"v1": true, "stranger": false} {
		cl := fullNode(t)
		cl.store.DeleteLastSeenPending(plugintest.Pod(lost, 0).UID, cl.now)
		cl.store.Tick(cl.now)
		cl.answer(t, never(plugintest.Foreign(daemon("agent", "n1", 150))))
		cl.cameBack()
		cl.store.Tick(cl.now.Add(2 * time.Second))
		if want { // the pump may have the pod and be about to hand it on
			plugintest.Until(t, "the pod comes back", cl.cameBack)
		} else if cl.cameBack() {
			t.Errorf("%s is lost: the pod comes back", lost)
		}
	}
}

// TestPodsRejectedByCoschedulingAreDeferred: a pod that Coscheduling rejected before it was tried is requeued by the
// store, and no victims are chosen for it. A pod that another plugin rejected waits for
// the events that the plugin registered.
func TestPodsRejectedByCoschedulingAreDeferred(t *testing.T) {
	for plugin, want := range map[string]reasons.Code{"Coscheduling": reasons.BackingOff, "VolumeBinding": reasons.NoNodeFits} {
		t.Run(plugin, func(t *testing.T) {
			c, asker := fullNode(t), plugintest.Pod("asker", 150)
			c.seen(t, asker)
			c.store.TakeActivations()
			statuses := framework.NewDefaultNodeToStatus()
			statuses.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "not now").WithPlugin(plugin))
			_, status := c.postFilter(t, preemption.Name).PostFilter(t.Context(), framework.NewCycleState(), asker, statuses)
			expect.That(t, status.Code() == fwk.Unschedulable, "%v: other plugins have to hear of it", status)
			expect.Same(t, "chosen", []string(nil), c.chosen())
			why := c.store.Explain(asker.UID)
			expect.That(t, why.Code == want, "the pod waits for %v, want %s", why, want)
			c.store.Tick(c.now.Add(2 * time.Second)) // its back-off is a second
			// Which queue gets the pod is open: the pump also runs here and may be first.
			later := c.store.Explain(asker.UID)
			expect.That(t, (later.Code != want) == (want == reasons.BackingOff),
				"after its back-off: %v, before it: %s", later, want)
			expect.Holds(t, c.store.Check())
		})
	}
}
