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

// Planted is the environment variable that plants a bug into one of our plugins, to
// show that the suites notice: Order turns the order of the queue round, Hold
// keeps all pods off all nodes as if they were held.
const (
	Planted = "CONFORMANCE_PLANT"
	Order   = "order"
	Hold    = "hold"
)

// registry is our plugins, with the bug that the environment asks for, and the mark.
func registry() frameworkruntime.Registry {
	r := frameworkruntime.Registry{queuesort.Name: queuesort.New, reservation.Name: reservation.New}
	switch os.Getenv(Planted) {
	case Order:
		r[queuesort.Name] = func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			plugin, err := queuesort.New(ctx, args, h)
			if err != nil {
				return nil, err
			}
			return backwards{plugin.(*queuesort.Plugin)}, nil
		}
	case Hold:
		r[reservation.Name] = func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return keeper{}, nil }
	}
	r[queuesort.Name] = marked(r[queuesort.Name])
	return r
}

// backwards is our order of the queue turned round.
type backwards struct{ *queuesort.Plugin }

func (b backwards) Less(x, y fwk.QueuedPodInfo) bool { return b.Plugin.Less(y, x) }

// keeper keeps everybody off all nodes.
type keeper struct{}

func (keeper) Name() string { return reservation.Name }

func (keeper) Filter(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "held, because a bug was planted")
}
