package withours

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
)

// Planted is the environment variable that plants a bug into one of our plugins, to show
// that the suites notice it: Order reverses the queue order, Hold keeps all pods off all
// nodes as if they were held, Nominated keeps nominated pods off their nodes, and Victims
// keeps off pods that would have room only without some of the existing pods.
const (
	Planted   = "CONFORMANCE_PLANT"
	Order     = "order"
	Hold      = "hold"
	Nominated = "nominated"
	Victims   = "victims"
)

// registry is our plugins, with the bug that the environment names, and the mark.
func registry() frameworkruntime.Registry {
	r := frameworkruntime.Registry{queuesort.Name: queuesort.New, reservation.Name: reservation.New}
	switch bug := os.Getenv(Planted); bug {
	case Order:
		r[queuesort.Name] = func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			plugin, err := queuesort.New(ctx, args, h)
			if err != nil {
				return nil, err
			}
			return backwards{plugin.(*queuesort.Plugin)}, nil
		}
	case Hold, Nominated, Victims:
		r[reservation.Name] = func(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			return keeper{bug, h}, nil
		}
	}
	r[queuesort.Name] = marked(r[queuesort.Name])
	return r
}

// backwards is our queue order reversed.
type backwards struct{ *queuesort.Plugin }

func (b backwards) Less(x, y fwk.QueuedPodInfo) bool { return b.Plugin.Less(y, x) }

// keeper keeps pods off nodes that are not held.
type keeper struct {
	bug string
	h   fwk.Handle
}

func (keeper) Name() string { return reservation.Name }

func (k keeper) Filter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	if !k.keeps(pod, node) {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "held, because a bug was planted")
}

func (k keeper) keeps(pod *corev1.Pod, node fwk.NodeInfo) bool {
	switch k.bug {
	case Nominated:
		return pod.Status.NominatedNodeName == node.Node().Name
	case Victims:
		as, err := k.h.SnapshotSharedLister().NodeInfos().Get(node.Node().Name)
		return err == nil && len(node.GetPods()) < len(as.GetPods())
	}
	return true
}
