package preemption_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/testing/defaults"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

const previewQueues = `
partitions:
- name: default
  placementrules: [{name: provided, create: true}]
  queues:
  - name: root
    submitacl: '*'
    queues:
    - {name: a, resources: {guaranteed: {vcore: 4}}, properties: {preemption.delay: 1s}}
    - {name: b}
    - name: tight
      resources: {max: {vcore: 3}}
      queues:
      - {name: poor, resources: {guaranteed: {vcore: 2}}, properties: {preemption.delay: 1s}}
      - {name: rich}
    - name: users
      parent: true
      childtemplate: {resources: {guaranteed: {vcore: 1}, max: {vcore: 2}}, properties: {preemption.delay: 1s}}
      limits: [{limit: ann, users: [ann], maxresources: {vcore: 1}}]
`

// previewCluster has one node with 2 vcore free, and one node full of pods of queue b.
func previewCluster(tb testing.TB, more ...frameworkruntime.Option) (*cluster, *preemption.Previewer) {
	tb.Helper()
	nodes := []*corev1.Node{node("full", 4000), node("roomy", 4000)}
	pods := []*corev1.Pod{running("b1", "full", 2000), running("b2", "full", 2000), running("b3", "roomy", 1000), running("rich", "roomy", 1000)}
	pods[3].Labels["queue"] = "root.tight.rich"
	c := newCluster(tb, previewQueues, nodes, pods, more...)
	for i, p := range pods {
		p.CreationTimestamp.Time = c.now.Add(-time.Duration(100-i) * time.Second).Truncate(time.Second)
		c.store.Upsert(c.translate(p), c.now)
	}
	for _, n := range nodes {
		expect.OK(tb, c.SharedInformerFactory().Core().V1().Nodes().Informer().GetIndexer().Add(n))
	}
	return c, c.previewer(tb)
}

func (c *cluster) previewer(tb testing.TB) *preemption.Previewer {
	tb.Helper()
	cfg := &schedulerconfig.KubeSchedulerConfiguration{Profiles: []schedulerconfig.KubeSchedulerProfile{
		{SchedulerName: plugintest.Profile, PluginConfig: defaults.PluginConfigsV1},
	}}
	pv, shared, err := preemption.NewPreviewer(tb.Context(), cfg, map[string]framework.Framework{plugintest.Profile: c}, registry(tb), c.assumed)
	expect.OK(tb, err)
	plugintest.Eventually(tb, func() error {
		if _, readable := shared.PriorityClass(""); !readable {
			return errors.New("the PriorityClasses are not read")
		}
		return nil
	})
	return pv
}

// assumed is the part of the scheduler's cache that previews read: the nodes of pods, by
// name of the pod.
type assumed map[string]string

func (a assumed) GetPod(pod *corev1.Pod) (*corev1.Pod, error) {
	node, there := a[pod.Name]
	if !there {
		return nil, errors.New("not in the cache")
	}
	return plugintest.On(pod.DeepCopy(), node), nil
}

// TestPreviewSeesWhatOtherProfilesAssumed: a pod that the default profile is binding uses
// the capacity, although the API server does not know yet.
func TestPreviewSeesWhatOtherProfilesAssumed(t *testing.T) {
	c, pv := previewCluster(t)
	c.known(t, plugintest.Foreign(plugintest.Pod("elsewhere", 1000)))
	manifest := plugintest.Pod("small", 2000)
	manifest.Labels["queue"] = "root.b"
	if out := previewOf(t, pv, manifest); out.Outcome != documents.PreviewFits {
		t.Errorf("%s while the other pod waits; the test after this proves nothing", out.Summary)
	}
	c.assumed["elsewhere"] = "roomy"
	if out := previewOf(t, pv, manifest); out.Outcome != documents.PreviewWaits || out.Nodes.Fit != 0 {
		t.Errorf("%s, %d nodes fit, though the room is taken", out.Summary, out.Nodes.Fit)
	}
	c.assumed["elsewhere"] = "full"
	if out := previewOf(t, pv, manifest); out.Outcome != documents.PreviewFits {
		t.Errorf("%s, though the other pod goes to another node", out.Summary)
	}
}

// preview returns the answer without its time.
func preview(tb testing.TB, pv *preemption.Previewer, manifest string) (*documents.Preview, error) {
	tb.Helper()
	out, err := pv.Preview(tb.Context(), []byte(manifest))
	if err == nil && out.Decision != nil {
		out.Decision.Time, out.Decision.Last = time.Time{}, time.Time{}
	}
	return out, err
}

// TestPreviews runs testdata/preview: each file is a manifest and the expected answer. No
// preview may change anything.
func TestPreviews(t *testing.T) {
	datadriven.Walk(t, "testdata/preview", func(t *testing.T, path string) {
		c, pv := previewCluster(t)
		before := c.everything(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := preview(t, pv, d.Input)
			if diff := cmp.Diff(before, c.everything(t)); diff != "" {
				d.Fatalf(t, "the preview changed something (-before +after)\n%s", diff)
			}
			if bad := (*documents.ManifestError)(nil); errors.As(err, &bad) {
				return "refused: " + bad.Text + "\n"
			} else if err != nil {
				d.Fatalf(t, "%v", err)
			}
			out.NotLookedAt = out.NotLookedAt[min(3, len(out.NotLookedAt)):] // the same in all previews
			if d.Cmd == "outcome" {
				return fmt.Sprintf("%s: %s\n", out.Outcome, out.Summary)
			}
			text := expect.Get(json.MarshalIndent(out, "", " "))(t)
			return string(text) + "\n"
		})
	})
}

// everything is what a preview must not change: what readers of the store see, and the
// pending notifications of the store.
func (c *cluster) everything(t *testing.T) string {
	t.Helper()
	expect.OK(t, c.store.Check())
	s := c.store.Snapshot()
	text := fmt.Sprint(len(c.store.Holds().All()), len(c.store.TakeWork()), len(c.store.TakeActivations()))
	for q := range s.All() {
		text += fmt.Sprintf("\n%s %v %v %v %v %d", q.Path, q.Allocated, q.Admitted, q.Pending, q.Arriving, q.Applications)
	}
	return text
}

// TestPreviewAgreesWithTheCycle compares a preview with what a cycle then does.
func TestPreviewAgreesWithTheCycle(t *testing.T) {
	for _, tt := range []struct {
		name, queue string
		milliCPU    int64
		change      func(*corev1.Pod)
	}{
		{"room enough elsewhere", "root.a", 3000, nil},
		{"two have to go", "root.a", 4000, nil},
		{"not below its guarantee", "root.b", 3000, nil},
		{"never", "root.a", 3000, func(p *corev1.Pod) { p.Spec.PreemptionPolicy = new(corev1.PreemptNever) }},
		{"too large for any", "root.a", 5000, nil},
		{"one node", "root.a", 3000, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "full"} }},
		{"no such node", "root.a", 3000, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }},
		{"max of a parent", "root.tight.poor", 3000, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, pv := previewCluster(t)
			pod := plugintest.Pod("asker", tt.milliCPU)
			pod.Labels["queue"] = tt.queue
			pod.CreationTimestamp.Time = c.now.Add(-time.Hour)
			if tt.change != nil {
				tt.change(pod)
			}
			previewed := previewOf(t, pv, pod)
			node, _ := c.answer(t, pod)
			if chosen := c.chosen(); previewed.Node != node || !slices.Equal(victimsOf(previewed), chosen) {
				t.Errorf("node %q and victims %v were previewed, and it came to node %q and %v: %s",
					previewed.Node, victimsOf(previewed), node, chosen, previewed.Summary)
			}
		})
	}
}

// TestPreviewOfAMemberOfTheHoldersGroup: a node that a member of a PodGroup holds is open
// for a preview of another member, as the filter lets it pass, and for no other pod.
func TestPreviewOfAMemberOfTheHoldersGroup(t *testing.T) {
	c, pv := previewCluster(t)
	c.store.FollowPodGroups()
	holder := plugintest.Pod("holder", 3000)
	c.store.SetPodGroup(holder.Namespace, "g", 1, c.now)
	holder.Labels["queue"], holder.Labels[objects.PodGroupLabel] = "root.a", "g"
	holder.CreationTimestamp.Time = c.now.Add(-time.Hour)
	if node, status := c.answer(t, holder); node != "roomy" {
		t.Fatalf("the member holds node %q: %v", node, status)
	}
	for group, want := range map[string]int{"g": 1, "other": 0} {
		pod := plugintest.Pod("next", 10)
		pod.Labels["queue"], pod.Labels[objects.PodGroupLabel] = "root.a", group
		if out := previewOf(t, pv, pod); out.Nodes.Fit != want || out.Nodes.Held != 1-want {
			t.Errorf("PodGroup %s: %d nodes fit and %d are held: %s", group, out.Nodes.Fit, out.Nodes.Held, out.Summary)
		}
	}
}

// TestPreviewBesideAHoldForPodsOfItsOwn: a pod of another namespace may use what the holder does not
// need, as the filter says.
func TestPreviewBesideAHoldForPodsOfItsOwn(t *testing.T) {
	c, pv := previewCluster(t)
	holder := plugintest.Pod("holder", 2500)
	holder.Labels["queue"] = "root.a"
	holder.CreationTimestamp.Time = c.now.Add(-time.Hour)
	if node, status := c.answer(t, holder); node != "roomy" {
		t.Fatalf("the holder has node %q: %v", node, status)
	}
	for milliCPU, want := range map[int64]int{500: 1, 501: 0} {
		pod := plugintest.Pod("next", milliCPU)
		pod.Namespace, pod.Labels["queue"] = "other", "root.a"
		if out := previewOf(t, pv, pod); out.Nodes.Fit != want || out.Nodes.Held != 1-want {
			t.Errorf("%dm: %d nodes fit and %d are held: %s", milliCPU, out.Nodes.Fit, out.Nodes.Held, out.Summary)
		}
	}
}

// previewOf previews a pod that will be created.
func previewOf(t *testing.T, pv *preemption.Previewer, pod *corev1.Pod) *documents.Preview {
	t.Helper()
	made := pod.DeepCopy()
	made.APIVersion, made.Kind, made.UID = "v1", "Pod", ""
	made.Spec.Containers[0].Image = "image"
	text := expect.Get(yaml.Marshal(made))(t)
	return expect.Get(preview(t, pv, string(text)))(t)
}

func victimsOf(p *documents.Preview) []string {
	var out []string
	if p.Outcome == documents.PreviewPreempts {
		for _, v := range p.Decision.Victims {
			out = append(out, v.Name)
		}
	}
	slices.Sort(out)
	return out
}

// TestPreviewOfADaemonSetPodThatAnotherPluginRefuses: the preview of a DaemonSet pod that
// a PreFilter plugin refuses names no node and no victims, whether the node has room or not.
func TestPreviewOfADaemonSetPodThatAnotherPluginRefuses(t *testing.T) {
	for name, at := range map[string]string{"room": "roomy", "no room": "full"} {
		t.Run(name, func(t *testing.T) {
			_, pv := previewCluster(t)
			pod := daemon("asker", at, 1500)
			pod.Labels["refused"] = ""
			out := previewOf(t, pv, pod)
			if out.Outcome != documents.PreviewWaits || out.Node != "" || len(victimsOf(out)) > 0 {
				t.Errorf("%s on node %q: %s", out.Outcome, out.Node, out.Summary)
			}
			if !strings.Contains(out.Summary, "the pod is refused everywhere") {
				t.Error(out.Summary)
			}
		})
	}
}
