package events

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/output"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

func demandOf(name string, said objects.DemandSaid, why reasons.Reason) output.Report {
	r := reportOf(name, why)
	r.Demand = said
	return r
}

func TestTellDemandWritesTheReasonOfPodScheduled(t *testing.T) {
	since := metav1.NewTime(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC).Local())
	before := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes", LastTransitionTime: since}
	for _, c := range []struct {
		name            string
		said            objects.DemandSaid
		why             reasons.Reason
		reason, message string
	}{
		{"beyond", objects.DemandBeyond, overMax("queue root.a is full"), "SchedulingGated", "no node is asked for: queue root.a is full. " + remedy},
		{"wanted again", objects.DemandWanted, reasons.New(reasons.NoNodeFits, "0 of 3 nodes fit"), "Unschedulable", "0 of 3 nodes fit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := before
				if before.Reason == c.reason {
					before.Reason = "SchedulingGated"
				}
				p := newPod("p", before)
				p.ResourceVersion = "7"
				d := newDesk(t, p)
				expect.OK(t, d.Tell(t.Context(), demandOf("p", c.said, c.why)))
				want := `{"metadata":{"resourceVersion":"7","uid":"uid-p"},"status":{"conditions":[{"message":"` + c.message +
					`","reason":"` + c.reason + `","status":"False","type":"PodScheduled"}]}}`
				expect.Same(t, "patch", want, string(d.patches()[0].GetPatch()))
				pod := expect.Get(d.client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{}))(t)
				after := before
				after.Reason, after.Message = c.reason, c.message
				expect.Same(t, "conditions", []corev1.PodCondition{after}, pod.Status.Conditions)
				if len(d.recorder.events) != 0 {
					t.Errorf("events: %q, want none", d.recorder.events)
				}
			})
		})
	}
}

// TestTellDemandKeepsTheMessageOfTheCycle: where the condition has the reason already,
// nothing is written. What the cycle found is not replaced by the quota alone.
func TestTellDemandKeepsTheMessageOfTheCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, newPod("p", corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulingGated", Message: "0/3 nodes; no node is asked for: OverMax",
		}))
		expect.OK(t, d.Tell(t.Context(), demandOf("p", objects.DemandBeyond, overMax("queue root.a is full"))))
		if n := len(d.patches()); n != 0 {
			t.Errorf("%d patches, want none", n)
		}
	})
}

// TestTellDemandReplacesTheMessageOfTheAPIServer: it is from before the scheduling gates
// were removed, and names no quota.
func TestTellDemandReplacesTheMessageOfTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, newPod("p", corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulingGated", Message: "Scheduling is blocked due to non-empty scheduling gates",
		}))
		expect.OK(t, d.Tell(t.Context(), demandOf("p", objects.DemandBeyond, overMax("queue root.a is full"))))
		pod := expect.Get(d.client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{}))(t)
		expect.Same(t, "conditions", []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulingGated", Message: "no node is asked for: queue root.a is full. " + remedy,
		}}, pod.Status.Conditions)
	})
}

// TestTellDemandLeavesBoundPodsAlone: what a binding has written stays, also where this
// process sees the binding only after its first write was refused.
func TestTellDemandLeavesBoundPodsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bound := newPod("bound")
		bound.Spec.NodeName = "node"
		d := newDesk(t, bound, newPod("seen-late"))
		d.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			seen := newPod("seen-late")
			seen.Spec.NodeName = "node"
			expect.OK(t, d.pods.Update(seen))
			return true, nil, apierrors.NewConflict(podResource, "seen-late", nil)
		})
		for _, name := range []string{"bound", "seen-late"} {
			d.queue.waiting = append(d.queue.waiting, demandOf(name, objects.DemandBeyond, overMax("full")))
		}
		defer d.run(t)()
		pass(10 * time.Second)
		if n := len(d.patches()); n != 1 {
			t.Errorf("%d writes, want one, of the pod that was bound without this process having seen it", n)
		}
	})
}

// TestTellDemandTriesAgainAfterAConflict: the pod was changed in something else.
func TestTellDemandTriesAgainAfterAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, newPod("p"))
		refused := false
		d.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			if refused {
				return false, nil, nil
			}
			refused = true
			return true, nil, apierrors.NewConflict(podResource, "p", nil)
		})
		d.queue.waiting = append(d.queue.waiting, demandOf("p", objects.DemandBeyond, overMax("full")))
		defer d.run(t)()
		pass(10 * time.Second)
		if n := len(d.patches()); n != 2 {
			t.Errorf("%d writes, want two: the one that was refused and another one", n)
		}
	})
}

// TestDemandDoesNotWaitForOtherWrites: autoscalers buy nodes meanwhile.
func TestDemandDoesNotWaitForOtherWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		for i := range 300 {
			p := newPod(string(rune('a'+i%26)) + "-" + time.Duration(i).String())
			expect.OK(t, d.pods.Add(p))
			expect.OK(t, d.client.Tracker().Add(p))
			d.queue.waiting = append(d.queue.waiting, demandOf(p.Name, objects.DemandBeyond, overMax("full")))
		}
		defer d.run(t)()
		pass(5 * time.Second)
		if n := len(d.patches()); n != 300 {
			t.Errorf("%d writes after 5 s, want 300", n)
		}
	})
}
