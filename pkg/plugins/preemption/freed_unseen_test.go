package preemption_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// tried is why a pod waits half a second after it found no node; its back-off is one
// second. No victims are chosen for it.
func (c *cluster) tried(t *testing.T) reasons.Reason {
	t.Helper()
	asker := plugintest.Pod("asker", 150)
	never := corev1.PreemptNever
	asker.Spec.PreemptionPolicy = &never
	c.answer(t, asker)
	c.store.Tick(c.now.Add(500 * time.Millisecond))
	return c.store.Explain(asker.UID)
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
			cl := newCluster(t, twoQueues, []*corev1.Node{node("n1", 200), node("n2", 200)}, []*corev1.Pod{
				running("v1", "n1", 200), running("v2", "n2", 200),
			})
			for _, name := range c.lost {
				cl.store.DeleteLastSeenPending(plugintest.Pod(name, 0).UID, cl.now)
			}
			cl.store.Tick(cl.now) // requeues the pods that wait now; the asker comes later
			if got := cl.tried(t); got.Code != c.want {
				t.Errorf("the pod waits for %v, want %s", got, c.want)
			}
			if got := cl.store.FreedPods(cl.now); len(got) != c.left {
				t.Errorf("left to look for: %v, want %d", got, c.left)
			}
		})
	}
}

// TestLostNomination: while a pod is still nominated to the node after the end of its
// hold, a pod that found no node is requeued.
func TestLostNomination(t *testing.T) {
	for nominated, want := range map[bool]reasons.Code{false: reasons.NoNodeFits, true: reasons.BackingOff} {
		cl := newCluster(t, twoQueues, []*corev1.Node{node("n1", 200)}, []*corev1.Pod{running("v1", "n1", 200)})
		holder := plugintest.Pod("holder", 150)
		if on, _ := cl.answer(t, holder); on != "n1" {
			t.Fatal("no node is held")
		}
		if nominated {
			info := expect.Get(framework.NewPodInfo(holder))(t)
			cl.AddNominatedPod(klog.Background(), info, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: "n1"})
		}
		cl.store.FailPlan(holder.UID, reasons.New(reasons.HoldGivenUp, "the API server refused"), nil, cl.now)
		cl.store.Tick(cl.now)
		if got := cl.tried(t); got.Code != want {
			t.Errorf("the holder is nominated still: %v; the pod waits for %v, want %s", nominated, got, want)
		}
	}
}

// TestShrunkPod: the cache is up to date once the pod on its node has the new requests.
func TestShrunkPod(t *testing.T) {
	for before, want := range map[int64]reasons.Code{200: reasons.BackingOff, 300: reasons.NoNodeFits} {
		cl := newCluster(t, twoQueues, []*corev1.Node{node("n1", 300)}, []*corev1.Pod{running("v1", "n1", 200)})
		now := running("v1", "", before)
		cl.store.Delete(plugintest.Pod("v1", 0).UID, cl.now)
		cl.store.Upsert(cl.translate(now), cl.now)
		if v := cl.store.Assume(now.UID, "n1", store.NoSnapshot, cl.now); !v.OK() {
			t.Fatal(v)
		}
		cl.store.Upsert(cl.translate(running("v1", "n1", 100)), cl.now)
		if got := cl.store.FreedPods(cl.now); len(got) != 1 {
			t.Fatalf("requested %d and then 100: %v", before, got)
		}
		cl.store.Tick(cl.now)
		if got := cl.tried(t); got.Code != want {
			t.Errorf("the snapshot has 200, assumed were %d: the pod waits for %v, want %s", before, got, want)
		}
	}
}

// TestLostPodOfADaemonSetsNode: a node-bound pod without a queue that waits for its node
// is requeued, too.
func TestLostPodOfADaemonSetsNode(t *testing.T) {
	for lost, want := range map[string]bool{"v1": true, "stranger": false} {
		cl := newCluster(t, twoQueues, []*corev1.Node{node("n1", 200)}, []*corev1.Pod{running("v1", "n1", 200)})
		asker := daemon("agent", "n1", 150)
		asker.Spec.SchedulerName = corev1.DefaultSchedulerName
		never := corev1.PreemptNever
		asker.Spec.PreemptionPolicy = &never
		cl.store.DeleteLastSeenPending(plugintest.Pod(lost, 0).UID, cl.now)
		cl.store.Tick(cl.now)
		cl.answer(t, asker)
		cl.cameBack()
		cl.store.Tick(cl.now.Add(2 * time.Second))
		got := cl.cameBack()
		if want && !got { // the pump has the pod and is about to hand it on
			plugintest.Within(t, 10*time.Second, func() error {
				if got = cl.cameBack(); !got {
					return errors.New("the pod does not come back")
				}
				return nil
			})
		}
		expect.Same(t, lost+" is lost: the pod comes back", want, got)
	}
}
