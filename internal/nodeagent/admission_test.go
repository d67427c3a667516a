package nodeagent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// infoOf returns a node with admitted pods.
func infoOf(node *corev1.Node, pods ...*corev1.Pod) *framework.NodeInfo {
	info := framework.NewNodeInfo(pods...)
	info.SetNode(node)
	return info
}

func TestAdmit(t *testing.T) {
	port := func(pod *corev1.Pod, ip string, number int32) *corev1.Pod {
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: number, HostIP: ip, Protocol: corev1.ProtocolTCP}}
		return pod
	}
	edit := func(pod *corev1.Pod, f func(*corev1.Pod)) *corev1.Pod {
		f(pod)
		return pod
	}
	always := corev1.ContainerRestartPolicyAlways
	short := func(resource string, requested, used, capacity int) string {
		return fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", resource, requested, used, capacity)
	}
	tests := []struct {
		name    string
		others  []*corev1.Pod
		pod     *corev1.Pod
		taint   bool
		reason  string // "" means admitted
		message string
	}{
		{name: "exactly full", others: []*corev1.Pod{testPod("a", "n", "cpu", "3")}, pod: testPod("b", "n", "cpu", "1", "memory", "1Gi")},
		{name: "cpu by a thousandth", others: []*corev1.Pod{testPod("a", "n", "cpu", "3")}, pod: testPod("b", "n", "cpu", "1001m"),
			reason: "OutOfcpu", message: short("cpu", 1001, 3000, 4000)},
		{name: "memory by a byte", pod: testPod("b", "n", "memory", "1073741825"), reason: "OutOfmemory", message: short("memory", 1073741825, 0, 1073741824)},
		{name: "ephemeral storage is not offered", pod: testPod("b", "n", "ephemeral-storage", "1"),
			reason: "OutOfephemeral-storage", message: short("ephemeral-storage", 1, 0, 0)},
		{name: "a request for nothing fits anywhere", pod: testPod("b", "n", "ephemeral-storage", "0")},
		{name: "number of pods", others: []*corev1.Pod{testPod("a", "n"), testPod("b", "n"), testPod("c", "n")}, pod: testPod("d", "n", "cpu", "9"),
			reason: "OutOfpods", message: short("pods", 1, 3, 3)},
		{name: "extended resource", others: []*corev1.Pod{testPod("a", "n", "example.com/gpu", "1")}, pod: testPod("b", "n", "example.com/gpu", "2"),
			reason: "OutOfexample.com/gpu", message: short("example.com/gpu", 2, 1, 2)},
		{name: "unknown extended resource", pod: testPod("b", "n", "example.com/unknown", "1"),
			reason: "OutOfexample.com/unknown", message: short("example.com/unknown", 1, 0, 0)},
		{name: "extended resource from a claim", pod: edit(testPod("b", "n", "example.com/unknown", "1"), func(p *corev1.Pod) {
			p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
				RequestMappings: []corev1.ContainerExtendedResourceRequest{{ResourceName: "example.com/unknown"}}}
		})},
		{name: "cpu is named before an extended resource", pod: testPod("b", "n", "cpu", "5", "example.com/a", "1"),
			reason: "OutOfcpu", message: short("cpu", 5000, 0, 4000)},
		{name: "init container counts", pod: edit(testPod("b", "n", "cpu", "1"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i", Resources: corev1.ResourceRequirements{Requests: list("cpu", "5")}}}
		}), reason: "OutOfcpu", message: short("cpu", 5000, 0, 4000)},
		{name: "overhead counts", pod: edit(testPod("b", "n", "cpu", "4"), func(p *corev1.Pod) { p.Spec.Overhead = list("cpu", "1") }),
			reason: "OutOfcpu", message: short("cpu", 5000, 0, 4000)},
		{name: "node selector", pod: edit(testPod("b", "n"), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "other"} }),
			reason: "NodeAffinity", message: "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
		{name: "node affinity", pod: edit(testPod("b", "n"), func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
					{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"m"}}}}},
			}}}
		}), reason: "NodeAffinity", message: "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
		{name: "same host port", others: []*corev1.Pod{port(testPod("a", "n"), "", 80)}, pod: port(testPod("b", "n"), "10.0.0.1", 80),
			reason: "NodePorts", message: "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"},
		{name: "same host port on another address", others: []*corev1.Pod{port(testPod("a", "n"), "10.0.0.2", 80)}, pod: port(testPod("b", "n"), "10.0.0.1", 80)},
		{name: "host port of a sidecar", others: []*corev1.Pod{port(testPod("a", "n"), "", 80)}, pod: edit(testPod("b", "n"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i", RestartPolicy: &always, Ports: []corev1.ContainerPort{{HostPort: 80}}}}
		}), reason: "NodePorts", message: "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"},
		{name: "taint", taint: true, pod: testPod("b", "n"), reason: "TaintToleration", message: "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"},
		{name: "tolerated taint", taint: true, pod: edit(testPod("b", "n"), func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		})},
		{name: "mirror pod ignores taints", taint: true, pod: edit(testPod("b", "n"), func(p *corev1.Pod) {
			p.Annotations[corev1.MirrorPodAnnotationKey] = "x"
		})},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			node := testNode(t, "n", "pods", "3", "cpu", "4", "memory", "1Gi", "example.com/gpu", "2")
			if test.taint {
				node.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute}, {Key: "k", Effect: corev1.TaintEffectNoSchedule}}
			}
			info := infoOf(node, test.others...)
			var got rejection
			if r := admit(info, test.pod); r != nil {
				got = *r
			}
			expect.Same(t, "decision", rejection{test.reason, test.message}, got, cmp.AllowUnexported(rejection{}))
		})
	}
}

// neverOvercommitted adds random pods to a node and removes them, and returns an error if
// the node ever holds more than it has.
func neverOvercommitted(rt *rapid.T, node *corev1.Node, judge func(info *framework.NodeInfo, pod *corev1.Pod) bool) string {
	info := infoOf(node)
	var held []*corev1.Pod
	for i := range rapid.IntRange(1, 40).Draw(rt, "events") {
		if len(held) > 0 && rapid.Bool().Draw(rt, "remove") {
			at := rapid.IntRange(0, len(held)-1).Draw(rt, "which")
			if err := info.RemovePod(klog.Background(), held[at]); err != nil {
				return err.Error()
			}
			held = append(held[:at], held[at+1:]...)
			continue
		}
		pod := testPod(fmt.Sprintf("p%d", i), "n", "cpu", fmt.Sprintf("%dm", rapid.IntRange(0, 3000).Draw(rt, "cpu")),
			"example.com/gpu", fmt.Sprint(rapid.IntRange(0, 2).Draw(rt, "gpu")))
		if judge(info, pod) {
			info.AddPod(pod)
			held = append(held, pod)
		}
		var cpu, gpu int64
		for _, p := range held {
			cpu += p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
			q := p.Spec.Containers[0].Resources.Requests["example.com/gpu"]
			gpu += q.Value()
		}
		if cpu > 4000 || gpu > 2 || len(held) > 5 {
			return fmt.Sprintf("%d pods hold %dm cpu and %d gpus of 5 pods, 4000m and 2", len(held), cpu, gpu)
		}
		if overcommitted(info) {
			return "overcommitted() raises a false alarm"
		}
	}
	return ""
}

func TestNodeIsNeverOvercommitted(t *testing.T) {
	node := testNode(t, "n", "pods", "5", "cpu", "4", "example.com/gpu", "2")
	rapid.Check(t, func(rt *rapid.T) {
		complaint := neverOvercommitted(rt, node, func(info *framework.NodeInfo, pod *corev1.Pod) bool { return admit(info, pod) == nil })
		if complaint != "" {
			rt.Fatal(complaint)
		}
	})
}

func TestOvercommitmentIsNoticed(t *testing.T) {
	node := testNode(t, "n", "pods", "5", "cpu", "4", "example.com/gpu", "2")
	forgetful := func(_ *framework.NodeInfo, pod *corev1.Pod) bool { return admit(infoOf(node), pod) == nil }
	var noticed string
	for seed := range 100 {
		rapid.Custom(func(rt *rapid.T) bool {
			if c := neverOvercommitted(rt, node, forgetful); c != "" {
				noticed = c
			}
			return true
		}).Example(seed)
	}
	if !strings.Contains(noticed, "pods hold") {
		t.Fatalf("a judge that forgets what runs was not caught: %q", noticed)
	}
}

// TestResizedPodCounts: a pod counts with the requests it has now.
func TestResizedPodCounts(t *testing.T) {
	l, now := newLedger(), time.Now()
	l.setNode(testNode(t, "n", "cpu", "4"))
	l.observe(testPod("a", "n", "cpu", "1"), "ns/a", false, now)
	l.admitWaiting("n", true)
	for _, c := range []struct {
		cpu, pod string
		refused  bool
	}{{"3", "b", true}, {"2", "c", false}} {
		l.observe(testPod("a", "n", "cpu", c.cpu), "ns/a", false, now)
		l.observe(testPod(c.pod, "n", "cpu", "2"), "ns/"+c.pod, false, now)
		if _, refusals := l.admitWaiting("n", true); len(refusals) > 0 != c.refused {
			t.Errorf("beside a pod resized to %s CPUs: refused are %v", c.cpu, refusals)
		}
	}
}
