package preemption_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/testing/defaults"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
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
	ns := nodeList{node("full", 4000), node("roomy", 4000)}
	ps := podList{
		running("b1", "full", 2000), running("b2", "full", 2000), running("b3", "roomy", 1000),
		labelled(running("rich", "roomy", 1000), "queue", "root.tight.rich"),
	}
	c := newCluster(tb, previewQueues, ns, ps, more...)
	for i, p := range ps {
		p.CreationTimestamp.Time = c.now.Add(-time.Duration(100-i) * time.Second).Truncate(time.Second)
		c.store.Upsert(c.translate(p), c.now)
	}
	for _, n := range ns {
		expect.OK(tb, c.SharedInformerFactory().Core().V1().Nodes().Informer().GetIndexer().Add(n))
	}
	cfg := &schedulerconfig.KubeSchedulerConfiguration{Profiles: []schedulerconfig.KubeSchedulerProfile{
		{SchedulerName: plugintest.Profile, PluginConfig: defaults.PluginConfigsV1},
	}}
	frameworks := map[string]framework.Framework{plugintest.Profile: c}
	pv, shared, err := preemption.NewPreviewer(tb.Context(), cfg, frameworks, registry(tb), c.assumed)
	expect.OK(tb, err)
	plugintest.Until(tb, "the PriorityClasses are read", func() bool {
		_, readable := shared.PriorityClass("")
		return readable
	})
	return c, pv
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
	for _, step := range []struct {
		assumed, outcome string
		fit              int
	}{
		{"", documents.PreviewFits, 1},
		{"roomy", documents.PreviewWaits, 0},
		{"full", documents.PreviewFits, 1},
	} {
		if step.assumed != "" {
			c.assumed["elsewhere"] = step.assumed
		}
		out := previewOf(t, pv, labelled(plugintest.Pod("small", 2000), "queue", "root.b"))
		expect.That(t, out.Outcome == step.outcome && out.Nodes.Fit == step.fit,
			"the other pod goes to node %q: %d nodes fit, %s", step.assumed, out.Nodes.Fit, out.Summary)
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
			return string(expect.Get(json.MarshalIndent(out, "", " "))(t)) + "\n"
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
		{"never", "root.a", 3000, func(p *corev1.Pod) { never(p) }},
		{"too large for any", "root.a", 5000, nil},
		{"one node", "root.a", 3000, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "full"} }},
		{"no such node", "root.a", 3000, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }},
		{"max of a parent", "root.tight.poor", 3000, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, pv := previewCluster(t)
			pod := c.old("asker", tt.queue, tt.milliCPU)
			if tt.change != nil {
				tt.change(pod)
			}
			previewed := previewOf(t, pv, pod)
			node, _ := c.answer(t, pod)
			said := "of the cycle, and of a preview that said " + previewed.Summary
			expect.Same(t, "node "+said, node, previewed.Node)
			expect.Same(t, "victims "+said, c.chosen(), victimsOf(previewed))
		})
	}
}

// TestPreviewBesideAHold: a node that a member of a PodGroup holds is open for a preview of another
// member, and what a holder does not need is for pods of other namespaces, as the filter says.
func TestPreviewBesideAHold(t *testing.T) {
	for _, next := range []struct {
		name             string
		holder           string // its PodGroup
		namespace, group string
		milliCPU         int64
		fit              int
	}{
		{name: "a member of the PodGroup", holder: "g", namespace: "ns", group: "g", milliCPU: 10, fit: 1},
		{name: "one of another PodGroup", holder: "g", namespace: "ns", group: "other", milliCPU: 10},
		{name: "as much as the holder leaves", namespace: "other", milliCPU: 500, fit: 1},
		{name: "more than the holder leaves", namespace: "other", milliCPU: 501},
	} {
		c, pv := previewCluster(t)
		c.store.FollowPodGroups()
		holder := labelled(c.old("holder", "root.a", 2500), objects.PodGroupLabel, next.holder)
		c.store.SetPodGroup(holder.Namespace, "g", 1, c.now)
		if node, status := c.answer(t, holder); node != "roomy" {
			t.Fatalf("the holder has node %q: %v", node, status)
		}
		pod := labelled(plugintest.Pod("next", next.milliCPU), objects.PodGroupLabel, next.group)
		pod.Namespace = next.namespace
		out := previewOf(t, pv, pod)
		expect.Same(t, next.name+": nodes that fit: "+out.Summary, next.fit, out.Nodes.Fit)
		expect.Same(t, next.name+": nodes that are held: "+out.Summary, 1-next.fit, out.Nodes.Held)
	}
}

// old is a pod of a queue that was created an hour ago.
func (c *cluster) old(name, queue string, milliCPU int64) *corev1.Pod {
	pod := labelled(plugintest.Pod(name, milliCPU), "queue", queue)
	pod.CreationTimestamp.Time = c.now.Add(-time.Hour)
	return pod
}

// previewOf previews a pod that will be created.
func previewOf(t *testing.T, pv *preemption.Previewer, pod *corev1.Pod) *documents.Preview {
	t.Helper()
	made := pod.DeepCopy()
	made.APIVersion, made.Kind, made.UID = "v1", "Pod", ""
	made.Spec.Containers[0].Image = "image"
	return expect.Get(preview(t, pv, string(expect.Get(yaml.Marshal(made))(t))))(t)
}

func victimsOf(p *documents.Preview) (out []string) {
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
	_, pv := previewCluster(t)
	for _, at := range []string{"roomy", "full"} {
		out := previewOf(t, pv, labelled(daemon("asker", at, 1500), "refused", ""))
		expect.That(t, out.Outcome == documents.PreviewWaits && out.Node == "" && len(victimsOf(out)) == 0,
			"node %s: %s on node %q: %s", at, out.Outcome, out.Node, out.Summary)
		expect.Says(t, out.Summary, "the pod is refused everywhere")
	}
}

// TestPreviewsHaveTheReasonOfTheCycle: the decision of a preview that holds no node is a refusal,
// with the reason that the pod would have.
func TestPreviewsHaveTheReasonOfTheCycle(t *testing.T) {
	c, pv := previewCluster(t)
	leaves := running("b1", "full", 2000)
	leaves.DeletionTimestamp, leaves.DeletionGracePeriodSeconds = &metav1.Time{Time: c.now}, new(int64(1))
	c.store.Upsert(c.translate(leaves), c.now)
	waits := c.old("waits", "root.a", 1500)
	waits.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "full"}
	for _, tt := range []struct {
		pod  *corev1.Pod
		want reasons.Code
	}{
		{waits, reasons.WaitingForRoom},
		{never(daemon("never", "roomy", 2500)), reasons.PreemptionNever},
		{labelled(daemon("tight", "roomy", 3000), "queue", "root.tight.poor"), reasons.OverMax},
		{daemon("large", "roomy", 5000), reasons.RoomImpossible},
	} {
		out := previewOf(t, pv, tt.pod)
		d := out.Decision
		expect.Same(t, tt.pod.Name+" waits: "+out.Summary, documents.PreviewWaits, out.Outcome)
		expect.That(t, d.Outcome == planner.Refuse && d.Reason == tt.want, "%s: %s with %s: %s", tt.pod.Name, d.Outcome, d.Reason, d.Message)
		entry, _ := reasons.Explain(tt.want)
		expect.That(t, tt.want == reasons.OverMax || slices.Contains(out.ToDo, entry.Remedy), "%s: what to do: %q", tt.pod.Name, out.ToDo)
	}
}

// TestPreviewOfADaemonSetPodThatFits: a DaemonSet pod goes before pods that are nominated to its node, so it
// fits there beside them; what leaves anyway it waits for, and holds the node unless that is of its own.
func TestPreviewOfADaemonSetPodThatFits(t *testing.T) {
	for _, c := range []struct{ leaves, outcome, node, summary string }{
		{"", documents.PreviewFits, "roomy", "would fit on node roomy, the only one it can run on"},
		{"other", documents.PreviewWaits, "roomy", "node roomy is held, no victims: the pod fits once leaving pods are gone"},
		{"ns", documents.PreviewWaits, "", "the node is not held for it meanwhile"},
	} {
		cl, pv := previewCluster(t)
		nominee := plugintest.Pod("nominee", 2000)
		nominee.Status.NominatedNodeName = "roomy"
		cl.known(t, nominee)
		if c.leaves != "" {
			leaves := running("leaves", "roomy", 10)
			leaves.Namespace, leaves.DeletionTimestamp, leaves.DeletionGracePeriodSeconds = c.leaves, &metav1.Time{Time: cl.now}, new(int64(60))
			cl.seen(t, leaves)
		}
		out := previewOf(t, pv, labelled(daemon("asker", "roomy", 1500), "queue", "root.a"))
		expect.Same(t, "outcome: "+out.Summary, c.outcome, out.Outcome)
		expect.Same(t, "node: "+out.Summary, c.node, out.Node)
		expect.Says(t, out.Summary, c.summary)
	}
}

var manifestOf = regexp.MustCompile(`(?s)\n(?:preview|outcome)\n(.*?)\n----\n`)

// FuzzPreview sends arbitrary input as a manifest. It must be rejected with a message, or
// previewed, and must change nothing.
func FuzzPreview(f *testing.F) {
	text := expect.Get(os.ReadFile("testdata/preview/pods.txt"))(f)
	seeds := manifestOf.FindAllSubmatch(text, -1)
	if len(seeds) < 20 {
		f.Fatalf("%d seeds", len(seeds))
	}
	for _, seed := range seeds {
		f.Add(seed[1])
	}
	for _, seed := range []string{"", "\x00", "---\n---\n", "[]", "&a [*a]", "{kind: Pod, apiVersion: v1, metadata: null, spec: null}"} {
		f.Add([]byte(seed))
	}
	c, pv := previewCluster(f)
	// The process beside reads the same document, at some time. Ten seconds after the start it has
	// done so, also if it was before the document of the test.
	for end := time.Now().Add(10 * time.Second); c.store.Spec() == c.spec && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	before, _ := changed(c.store)
	f.Fuzz(func(t *testing.T, manifest []byte) {
		out, err := pv.Preview(t.Context(), manifest)
		bad := (*documents.ManifestError)(nil)
		switch {
		case errors.As(err, &bad):
			expect.That(t, bad.Text != "", "refused without a word")
		case err != nil:
			t.Errorf("%v", err)
		case out.Outcome != documents.PreviewFits && out.Outcome != documents.PreviewWaits && out.Outcome != documents.PreviewPreempts || out.Summary == "":
			t.Errorf("outcome %q: %q", out.Outcome, out.Summary)
		default:
			expect.Get(json.Marshal(out))(t)
		}
		after, things := changed(c.store)
		same := things == 0 && after.Queues == before.Queues && after.Holds == before.Holds && after.Counts == before.Counts
		expect.That(t, same,
			"%d pods, applications or nodes changed; counts before and after: %+v, %+v", things, before.Counts, after.Counts)
	})
}

// changed returns what the store has, and how many pods, applications and nodes have
// changed in it since the last call.
func changed(s *store.Store) (now *output.Rest, things int) {
	for now == nil {
		c := s.TakeChanges(1000)
		things += len(c.GonePods) + len(c.GoneApps) + len(c.GoneNodes) + len(c.Pods) + len(c.Apps) + len(c.Nodes)
		now = c.Rest
	}
	return now, things
}
