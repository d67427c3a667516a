package nodeagent

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

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

// event is a pod that comes, or the end of one that runs.
type event struct {
	ends            bool
	which, cpu, gpu int
}

var events = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event {
	return event{
		rapid.Bool().Draw(t, "ends"), rapid.IntRange(0, 99).Draw(t, "which"),
		rapid.IntRange(0, 3000).Draw(t, "cpu"), rapid.IntRange(0, 2).Draw(t, "gpu"),
	}
}), 1, 40)

func TestNodeIsNeverOvercommitted(t *testing.T) {
	node := testNode(t, "n", "pods", "5", "cpu", "4", "example.com/gpu", "2")
	law := func(judge func(*framework.NodeInfo, *corev1.Pod) *rejection) func([]event) error {
		return func(all []event) error {
			info := infoOf(node)
			var held []*corev1.Pod
			for i, e := range all {
				if e.ends && len(held) > 0 {
					at := e.which % len(held)
					expect.Holds(t, info.RemovePod(klog.Background(), held[at]))
					held = slices.Delete(held, at, at+1)
					continue
				}
				pod := testPod(fmt.Sprint("p", i), "n", "cpu", fmt.Sprintf("%dm", e.cpu), "example.com/gpu", fmt.Sprint(e.gpu))
				if judge(info, pod) == nil {
					info.AddPod(pod)
					held = append(held, pod)
				}
				var cpu, gpu int64
				for _, p := range held {
					requests := p.Spec.Containers[0].Resources.Requests
					cpu += requests.Cpu().MilliValue()
					gpu += requests.Name("example.com/gpu", resource.DecimalSI).Value()
				}
				if cpu > 4000 || gpu > 2 || len(held) > 5 || overcommitted(info) {
					return fmt.Errorf("%d pods hold %dm cpu and %d gpus of 5 pods, 4000m and 2", len(held), cpu, gpu)
				}
			}
			return nil
		}
	}
	forgetful := func(_ *framework.NodeInfo, pod *corev1.Pod) *rejection { return admit(infoOf(node), pod) }
	expect.Law(t, events, law(admit), law(forgetful))
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
