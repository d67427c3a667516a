package informer

import (
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

func TestTranslate(t *testing.T) {
	created := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	pod := podOf("cpu=2")
	pod.ObjectMeta = metav1.ObjectMeta{
		UID: "u1", Namespace: "ns", Name: "p", CreationTimestamp: metav1.NewTime(created),
		Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "2"},
	}
	want := objects.Pod{
		Identity: objects.Identity{
			UID: "u1", Namespace: "ns", Name: "p", Created: created,
			Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "2"},
		},
		Request: resources.VectorFrom(map[string]resources.Amount{"vcore": 2000, "pods": 1}),
	}
	steps := []struct {
		name   string
		change func(*corev1.Pod, *objects.Pod)
	}{
		{"pending", func(*corev1.Pod, *objects.Pod) {}},
		{"priority", func(p *corev1.Pod, w *objects.Pod) { p.Spec.Priority, w.Priority = ptr.To[int32](-7), -7 }},
		{"gated", func(p *corev1.Pod, w *objects.Pod) {
			p.Spec.SchedulingGates, w.Gated = []corev1.PodSchedulingGate{{Name: "g"}}, true
		}},
		{"gates open", func(p *corev1.Pod, w *objects.Pod) {
			p.Spec.SchedulingGates, w.Gated = []corev1.PodSchedulingGate{}, false
		}},
		{"told", func(p *corev1.Pod, w *objects.Pod) {
			p.Status.Conditions = []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"},
				{Type: reasons.AdmittedCondition, Status: corev1.ConditionFalse, Reason: "OverMax"},
			}
			w.Told, w.Demand = reasons.OverMax, objects.DemandWanted
		}},
		{"beyond a quota", func(p *corev1.Pod, w *objects.Pod) {
			p.Status.Conditions[0].Reason, p.Status.Conditions[0].Message = "SchedulingGated", "no node is asked for: OverMax"
			w.Demand = objects.DemandBeyond
		}},
		{"beyond a quota after a cycle", func(p *corev1.Pod, _ *objects.Pod) {
			p.Status.Conditions[0].Message = "0/3 nodes are available; no node is asked for: OverMax"
		}},
		{"a cycle ended with an error", func(p *corev1.Pod, w *objects.Pod) {
			p.Status.Conditions[0].Reason, w.Demand = "SchedulerError", objects.DemandOther
		}},
		{"has a scheduling gate", func(p *corev1.Pod, w *objects.Pod) {
			p.Status.Conditions[0].Reason, p.Spec.SchedulingGates = "SchedulingGated", []corev1.PodSchedulingGate{{Name: "g"}}
			p.Status.Conditions[0].Message = "Scheduling is blocked due to non-empty scheduling gates"
			w.Gated, w.Demand = true, objects.DemandOther
		}},
		{"gates open again, and the condition stays", func(p *corev1.Pod, w *objects.Pod) {
			p.Spec.SchedulingGates, w.Gated = nil, false
		}},
		{"taken back", func(p *corev1.Pod, w *objects.Pod) {
			p.Status.Conditions[1].Status, w.Told = corev1.ConditionTrue, ""
		}},
		{"bound", func(p *corev1.Pod, w *objects.Pod) {
			p.Spec.NodeName, w.Node, w.Demand = "n1", "n1", objects.DemandUnsaid
		}},
		{"bound at a time", func(p *corev1.Pod, w *objects.Pod) {
			w.Scheduled = created.Add(time.Minute)
			p.Status.Conditions[0] = corev1.PodCondition{
				Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.Scheduled),
			}
		}},
		{"running is not over", func(p *corev1.Pod, w *objects.Pod) {
			p.Status.Phase, w.Health = corev1.PodRunning, objects.Unready
		}},
		{"deleting", func(p *corev1.Pod, w *objects.Pod) {
			p.DeletionTimestamp, w.Deleting, w.GoneBy = &metav1.Time{Time: created}, true, created
		}},
		{"succeeded", func(p *corev1.Pod, w *objects.Pod) { p.Status.Phase, w.Terminal = corev1.PodSucceeded, true }},
		{"lost sight of", func(p *corev1.Pod, w *objects.Pod) { p.Status.Phase, w.Terminal = corev1.PodUnknown, false }},
		{"failed", func(p *corev1.Pod, w *objects.Pod) { p.Status.Phase, w.Terminal = corev1.PodFailed, true }},
	}
	for _, s := range steps {
		s.change(pod, &want)
		expect.Same(t, s.name, want, Translate(pod, RequestOptions{}))
	}
}
