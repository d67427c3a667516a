package preemption_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// TestPodsRejectedByCoschedulingAreDeferred: a pod that Coscheduling rejected before it was tried is requeued by the
// store, and no victims are chosen for it. A pod that another plugin rejected waits for
// the events that the plugin registered.
func TestPodsRejectedByCoschedulingAreDeferred(t *testing.T) {
	for plugin, want := range map[string]reasons.Code{"Coscheduling": reasons.BackingOff, "VolumeBinding": reasons.NoNodeFits} {
		t.Run(plugin, func(t *testing.T) {
			c := newCluster(t, twoQueues, []*corev1.Node{node("n1", 200)}, []*corev1.Pod{running("v1", "n1", 200)})
			asker := plugintest.Pod("asker", 150)
			c.known(t, asker)
			c.store.Upsert(c.translate(asker), c.now)
			c.store.TakeActivations()
			statuses := framework.NewDefaultNodeToStatus()
			statuses.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "not now").WithPlugin(plugin))
			_, status := c.postFilter(t, preemption.Name).PostFilter(t.Context(), framework.NewCycleState(), asker, statuses)
			if status.Code() != fwk.Unschedulable {
				t.Errorf("status %v: the other plugins have to hear of it", status)
			}
			if got := c.store.Explain(asker.UID); got.Code != want {
				t.Errorf("the pod waits for %v, want %s", got, want)
			}
			c.wantChosen(t)
			c.store.Tick(c.now.Add(2 * time.Second)) // its back-off is a second
			// The test does not check which queue gets the pod: the pump also runs here
			// and may be first.
			if later := c.store.Explain(asker.UID); (later.Code != want) != (want == reasons.BackingOff) {
				t.Errorf("after its back-off: %v, before it: %s", later, want)
			}
			expect.Holds(t, c.store.Check())
		})
	}
}
