package simulation_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/internal/lockorder"
	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
)

// lockedQueueSort reports the lock of upstream's scheduling queue, which is held when
// QueueSort is called.
type lockedQueueSort struct{ *queuesort.Plugin }

func (l lockedQueueSort) PreEnqueue(ctx context.Context, pod *corev1.Pod) *fwk.Status {
	defer lockorder.Enter(lockorder.UpstreamQueue)()
	return l.Plugin.PreEnqueue(ctx, pod)
}

func (l lockedQueueSort) Less(a, b fwk.QueuedPodInfo) bool {
	defer lockorder.Enter(lockorder.UpstreamQueue)()
	return l.Plugin.Less(a, b)
}

// bugTwoOrders can be planted in builds that record lock orders. Package process has a
// lock under which it asks a handle for the informers.
const bugTwoOrders = "upstream's queue is called with a lock held that is taken under the queue's"

// lockedHandle reports upstream's lock where our code calls upstream.
type lockedHandle struct{ fwk.Handle }

func (h lockedHandle) Activate(logger klog.Logger, pods map[string]*corev1.Pod) {
	defer lockorder.Enter(lockorder.UpstreamQueue)()
	if *bugFlag == bugTwoOrders {
		app.For(context.Background(), h)
	}
	h.Handle.Activate(logger, pods)
}

func (h lockedHandle) SharedInformerFactory() informers.SharedInformerFactory {
	if *bugFlag == bugTwoOrders {
		defer lockorder.Enter(lockorder.UpstreamQueue)()
	}
	return h.Handle.SharedInformerFactory()
}
