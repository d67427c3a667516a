package events

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

func demandOf(name string, said objects.DemandSaid, why reasons.Reason) output.Report {
	r := reportOf(name, why)
	r.Demand = said
	return r
}

// beyond is the report that no node is asked for, because the queue is full.
func beyond(name string) output.Report { return demandOf(name, objects.DemandBeyond, overMax("full")) }

// TestTellDemandWritesTheReasonOfPodScheduled: what the cycle found is not replaced by the quota alone.
// The message of the API server is from before the scheduling gates were removed, and names no quota.
func TestTellDemandWritesTheReasonOfPodScheduled(t *testing.T) {
	since := metav1.NewTime(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC).Local())
	full, noNode := overMax("queue root.a is full"), reasons.New(reasons.NoNodeFits, "0 of 3 nodes fit")
	for _, c := range []struct {
		name                string
		hadReason, had      string
		said                objects.DemandSaid
		why                 reasons.Reason
		wantReason, message string // no message: nothing is written
	}{
		{"beyond", "Unschedulable", "0/3 nodes", objects.DemandBeyond, full, "SchedulingGated", "no node is asked for: queue root.a is full. " + remedy},
		{"wanted again", "SchedulingGated", "0/3 nodes", objects.DemandWanted, noNode, "Unschedulable", "0 of 3 nodes fit"},
		{"the cycle's message", "SchedulingGated", "0/3 nodes; no node is asked for: OverMax", objects.DemandBeyond, full, "", ""},
		{"the API server's message", "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates",
			objects.DemandBeyond, full, "SchedulingGated", "no node is asked for: queue root.a is full. " + remedy},
	} {
		synctest.Test(t, func(t *testing.T) {
			after := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: c.hadReason, Message: c.had, LastTransitionTime: since}
			p := newPod("p", after)
			p.ResourceVersion = "7"
			d := newFixture(t, p)
			expect.OK(t, d.Tell(t.Context(), demandOf("p", c.said, c.why)))
			var want, got []string
			if c.message != "" {
				after.Reason, after.Message = c.wantReason, c.message
				want = []string{`{"metadata":{"resourceVersion":"7","uid":"uid-p"},"status":{"conditions":[{"message":"` + c.message +
					`","reason":"` + c.wantReason + `","status":"False","type":"PodScheduled"}]}}`}
			}
			for _, patch := range d.patches() {
				got = append(got, string(patch.GetPatch()))
			}
			expect.Same(t, c.name+": patches", want, got)
			expect.Same(t, c.name+": conditions", conditions{corev1.PodScheduled: after}, d.conditions(t, "p"))
			expect.Same(t, c.name+": events", 0, len(d.recorder.events))
		})
	}
}

// TestTellDemandLeavesBoundPodsAlone: what a binding has written stays, also where this
// process sees the binding only after its first write was refused.
func TestTellDemandLeavesBoundPodsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bound := newPod("bound")
		bound.Spec.NodeName = "node"
		d := newFixture(t, bound, newPod("seen-late"))
		d.onPatch(func(string) error {
			seen := newPod("seen-late")
			seen.Spec.NodeName = "node"
			expect.OK(t, d.pods.Update(seen))
			return apierrors.NewConflict(podResource, "seen-late", nil)
		})
		d.queue.waiting = []output.Report{beyond("bound"), beyond("seen-late")}
		go d.Run(t.Context())
		pass(10 * time.Second)
		expect.Same(t, "writes, of the pod that was bound unseen", 1, len(d.patches()))
	})
}

// TestTellDemandTriesAgainAfterAConflict: the pod was changed in something else.
func TestTellDemandTriesAgainAfterAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, newPod("p"))
		tries := 0
		d.onPatch(func(string) error {
			if tries++; tries == 1 {
				return apierrors.NewConflict(podResource, "p", nil)
			}
			return nil
		})
		d.queue.waiting = []output.Report{beyond("p")}
		go d.Run(t.Context())
		pass(10 * time.Second)
		expect.Same(t, "writes, the one that was refused and another one", 2, len(d.patches()))
	})
}

type slowly struct {
	corelisters.PodLister
	corelisters.PodNamespaceLister
}

func (s slowly) Pods(namespace string) corelisters.PodNamespaceLister {
	return slowly{PodNamespaceLister: s.PodLister.Pods(namespace)}
}

func (s slowly) Get(name string) (*corev1.Pod, error) {
	time.Sleep(5 * time.Millisecond)
	return s.PodNamespaceLister.Get(name)
}

func (s slowly) List(l labels.Selector) ([]*corev1.Pod, error) { return s.PodNamespaceLister.List(l) }

// TestDemandDoesNotWaitForOtherWrites: autoscalers buy nodes meanwhile. So the reasons of 1,500
// pods are written within 5 s where each takes 5 ms.
func TestDemandDoesNotWaitForOtherWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.Pods = slowly{PodLister: d.Pods}
		d.many(t, 1500, beyond)
		go d.Run(t.Context())
		pass(5 * time.Second)
		expect.Same(t, "writes after 5 s", 1500, len(d.patches()))
	})
}

// TestDemandIsNotWrittenAfterTheLead: the writes that follow each other end with the lead.
func TestDemandIsNotWrittenAfterTheLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.many(t, batch, beyond)
		d.onPatch(func(string) error { d.leading.Store(false); return nil })
		go d.Run(t.Context())
		pass(5 * time.Second)
		n := len(d.patches()) // at most those that were under way when the lead was lost
		expect.That(t, n > 0 && n <= atOnce, "%d writes, want at most %d", n, atOnce)
	})
}
