package nodeagent

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func infoOf(node *corev1.Node, pods ...*corev1.Pod) *framework.NodeInfo {
	info := framework.NewNodeInfo(pods...)
	info.SetNode(node)
	return info
}

func TestAdmit(t *testing.T) {
	edit := func(pod *corev1.Pod, f func(*corev1.Pod)) *corev1.Pod {
		f(pod)
		return pod
	}
	short := func(resource string, requested, used, capacity int) string {
		return fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", resource, requested, used, capacity)
	}
	tests := []struct {
		name   string
		others []*corev1.Pod
		pod    *corev1.Pod
		taint  bool
		want   *rejection // nil means admitted
	}{
		{name: "exactly full", others: []*corev1.Pod{testPod("a", "n", "cpu", "3")}, pod: testPod("b", "n", "cpu", "1", "memory", "1Gi")},
		{name: "cpu by a thousandth", others: []*corev1.Pod{testPod("a", "n", "cpu", "3")}, pod: testPod("b", "n", "cpu", "1001m"),
			want: &rejection{"OutOfcpu", short("cpu", 1001, 3000, 4000)}},
		{name: "number of pods", others: []*corev1.Pod{testPod("a", "n"), testPod("b", "n"), testPod("c", "n")}, pod: testPod("d", "n", "cpu", "9"),
			want: &rejection{"OutOfpods", short("pods", 1, 3, 3)}},
		{name: "extended resource", others: []*corev1.Pod{testPod("a", "n", "example.com/gpu", "1")}, pod: testPod("b", "n", "example.com/gpu", "2"),
			want: &rejection{"OutOfexample.com/gpu", short("example.com/gpu", 2, 1, 2)}},
		{name: "node selector", pod: edit(testPod("b", "n"), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "other"} }),
			want: &rejection{"NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"}},
		{name: "taint", taint: true, pod: testPod("b", "n"), want: &rejection{"TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"}},
		{name: "tolerated taint", taint: true, pod: edit(testPod("b", "n"), func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		})},
		{name: "mirror pod ignores taints", taint: true, pod: edit(testPod("b", "n"), func(p *corev1.Pod) {
			p.Annotations[corev1.MirrorPodAnnotationKey] = "x"
		})},
	}
	for _, test := range tests {
		node := testNode(t, "n", "pods", "3", "cpu", "4", "memory", "1Gi", "example.com/gpu", "2")
		if test.taint {
			node.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute}, {Key: "k", Effect: corev1.TaintEffectNoSchedule}}
		}
		got := admit(infoOf(node, test.others...), test.pod)
		expect.Same(t, test.name, test.want, got, cmp.AllowUnexported(rejection{}))
	}
}

// TestResizedPodCounts: a pod counts with the requests it has now.
func TestResizedPodCounts(t *testing.T) {
	l, now := newLedger(), time.Now()
	l.setNode(testNode(t, "n", "cpu", "4"))
	l.observe(testPod("a", "n", "cpu", "1"), now)
	l.admitWaiting("n", true)
	for _, c := range []struct {
		cpu, pod string
		refused  bool
	}{{"3", "b", true}, {"2", "c", false}} {
		l.observe(testPod("a", "n", "cpu", c.cpu), now)
		l.observe(testPod(c.pod, "n", "cpu", "2"), now)
		_, refusals := l.admitWaiting("n", true)
		expect.Same(t, "refused beside a pod resized to CPUs "+c.cpu, c.refused, len(refusals) > 0)
	}
}
