package simulation_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/internal/lockorder"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
)

// queueLock is the lock of upstream's scheduling queue. It is held when QueueSort is
// called, and taken by Activate.
const queueLock = "upstream's queue lock"

// lockedQueueSort tells of upstream's lock around each call.
type lockedQueueSort struct{ *queuesort.Plugin }

func (l lockedQueueSort) PreEnqueue(ctx context.Context, pod *corev1.Pod) *fwk.Status {
	defer lockorder.Enter(queueLock)()
	return l.Plugin.PreEnqueue(ctx, pod)
}

func (l lockedQueueSort) Less(a, b fwk.QueuedPodInfo) bool {
	defer lockorder.Enter(queueLock)()
	return l.Plugin.Less(a, b)
}

// lockedHandle tells of upstream's lock where ours call upstream.
type lockedHandle struct{ fwk.Handle }

func (h lockedHandle) Activate(logger klog.Logger, pods map[string]*corev1.Pod) {
	defer lockorder.Enter(queueLock)()
	h.Handle.Activate(logger, pods)
}

// TestLocksAreTakenInOneOrder lives histories in which all our locks watch in which
// order they are taken; make lockorder runs it.
func TestLocksAreTakenInOneOrder(t *testing.T) {
	if !watchesLocks {
		t.Log("the locks of this build do not watch; make lockorder builds one whose do")
		return
	}
	lockorder.Reset()
	p, steps := newProgress(), 10_000
	if *stepsFlag > 0 {
		steps = *stepsFlag
	}
	for seed := *firstFlag; p.steps < steps; seed++ {
		r := live(t, seed, historySteps, "")
		if p.add(r); r.err != nil {
			t.Fatal(r.report())
		}
		if err := lockorder.Wrong(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	seen := lockorder.Seen()
	for _, order := range []string{queueLock + " before store.Store.mu"} {
		if !slices.Contains(seen, order) {
			t.Errorf("%s was not seen: does anybody watch?", order)
		}
	}
	for _, order := range seen {
		t.Log(order)
	}
}
