package framework_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/testing/defaults"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/manifests/install"
)

// deployment is the Deployment of a file of manifests/install.
func deployment(t *testing.T, file string) *appsv1.Deployment {
	t.Helper()
	text := expect.Get(install.Files.ReadFile(file))(t)
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		d := &appsv1.Deployment{}
		expect.OK(t, yaml.Unmarshal([]byte(document), d))
		if d.Kind == "Deployment" {
			return d
		}
	}
	t.Fatalf("%s has no Deployment", file)
	return nil
}

// replica is a pod of one revision of the Deployment; a pod without node is pending.
func replica(d *appsv1.Deployment, node, revision string) *corev1.Pod {
	template := d.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name, pod.Namespace = "paddock-"+revision+"-"+node, d.Namespace
	pod.UID, pod.Spec.NodeName = types.UID(pod.Name), node
	pod.Labels = maps.Clone(pod.Labels)
	pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = revision
	return pod
}

// where returns the nodes that pass upstream's filters for a pod; a node with a tilde is
// one of the control plane, with its taint.
func where(t *testing.T, pod *corev1.Pod, names []string, there []*corev1.Pod) []string {
	t.Helper()
	var nodes []*corev1.Node
	for _, name := range names {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: "z"}}}
		if strings.HasPrefix(name, "~") {
			node.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
		}
		nodes = append(nodes, node)
	}
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	defer stop()
	set := func(names ...string) schedconfig.PluginSet {
		var out schedconfig.PluginSet
		for _, name := range names {
			out.Enabled = append(out.Enabled, schedconfig.Plugin{Name: name})
		}
		return out
	}
	client := fake.NewClientset()
	f := expect.Get(frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), &schedconfig.KubeSchedulerProfile{
		SchedulerName: other,
		Plugins: &schedconfig.Plugins{
			QueueSort: set("PrioritySort"), Bind: set("DefaultBinder"),
			PreFilter: set("NodeAffinity", "PodTopologySpread", "InterPodAffinity"),
			Filter:    set("TaintToleration", "NodeAffinity", "PodTopologySpread", "InterPodAffinity"),
		},
		PluginConfig: slices.Clone(defaults.PluginConfigsV1),
	}, frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(informers.NewSharedInformerFactory(client, 0)),
		frameworkruntime.WithSnapshotSharedLister(cache.NewSnapshot(there, nodes))))(t)
	state := framework.NewCycleState()
	if _, status, _ := f.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		t.Fatal(status)
	}
	infos := expect.Get(f.SnapshotSharedLister().NodeInfos().List())(t)
	var out []string
	for _, info := range infos {
		if f.RunFilterPlugins(ctx, state, pod, info).IsSuccess() {
			out = append(out, info.Node().Name)
		}
	}
	slices.Sort(out)
	return out
}

// apart compares the possible nodes of replicas with the documentation: each node that
// takes them has room for one, also while one of another revision is there.
func apart(t *testing.T, d *appsv1.Deployment) (wrong []string) {
	t.Helper()
	for _, c := range []struct{ nodes, there, want string }{
		{"a b c", "", "a b c"},
		{"a b c", "a", "b c"},
		{"a b c", "a b", "c"},
		{"a b c", "a b c", ""},
		{"a b", "a", "b"},
		{"a b", "a b", ""},
		{"a", "a", ""},
		{"a b ~c", "a b", ""},
		{"a b c d", "a b c", "d"},
	} {
		for _, revision := range []string{"new", "old"} {
			var there []*corev1.Pod
			for _, node := range strings.Fields(c.there) {
				there = append(there, replica(d, node, revision))
			}
			got := where(t, replica(d, "", "new"), strings.Fields(c.nodes), there)
			if diff := cmp.Diff(strings.Fields(c.want), slices.Clip(append([]string{}, got...))); diff != "" {
				wrong = append(wrong, fmt.Sprintf("nodes %s, %s ones on %q (-want +got):\n%s", c.nodes, revision, c.there, diff))
			}
		}
	}
	return wrong
}

// TestReplicasApart checks overlay ha with upstream's filters: two replicas never share a
// node. It also checks what an update needs for that.
func TestReplicasApart(t *testing.T) {
	d := deployment(t, "ha.yaml")
	for _, text := range apart(t, d) {
		t.Error(text)
	}
	// An update can go on only by removing a replica first.
	if r := d.Spec.Strategy.RollingUpdate; r == nil || r.MaxSurge.IntValue() != 0 || r.MaxUnavailable.IntValue() != 1 {
		t.Errorf("the strategy is %+v, want no surge and one unavailable", d.Spec.Strategy)
	}

	// A topology spread with a skew of one, which counts the existing nodes, does not
	// ensure that.
	planted := d.DeepCopy()
	spec := &planted.Spec.Template.Spec
	spec.Affinity = nil
	spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: planted.Spec.Selector,
	}}
	if len(apart(t, planted)) == 0 {
		t.Error("two on one node are not noticed")
	}
}
