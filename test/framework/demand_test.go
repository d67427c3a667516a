package framework_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// demandQueues have one quota each; more is the max of queue capped.
const demandQueues = `
partitions:
- name: default
  placementrules: [{name: provided}]
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: capped, resources: {max: {vcore: %d}}}
    - name: user
      limits: [{limit: each user, users: ["*"], maxresources: {vcore: 4}}]
    - {name: apps, maxapplications: 1}
    - {name: free}
`

// wanted records, at every write, which pods the API server shows as unschedulable.
type wanted struct {
	mu   sync.Mutex
	now  map[types.UID]bool
	most int
}

func (w *wanted) observe(p *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := informer.Condition(p, corev1.PodScheduled)
	if c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable && p.Spec.NodeName == "" {
		w.now[p.UID] = true
	} else {
		delete(w.now, p.UID)
	}
	w.most = max(w.most, len(w.now))
}

func (w *wanted) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.now)
}

// asksFor makes pods of so many cores each, all in one application or each in its own.
func asksFor(n int, cores string, queue string, oneApp bool) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range n {
		app := "app"
		if !oneApp {
			app = fmt.Sprintf("app-%d", i)
		}
		p := inQueue(pod(managed, fmt.Sprintf("%s-%03d", queue, i), i), queue, app)
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cores)
		out = append(out, p)
	}
	return out
}

func startDemand(t *testing.T, most int) (*cluster, *wanted) {
	t.Helper()
	w := &wanted{now: map[types.UID]bool{}}
	c := start(t, options{queues: fmt.Sprintf(demandQueues, most), backoff: 1})
	c.api.patched = w.observe
	c.addNodes(1, 1)
	full := onNode(inQueue(pod(managed, "full", 0), "free", "full"), "node-000")
	c.api.create(t, full)
	c.eventually("the node is full", func() bool { return c.used("root.free") == 1 })
	return c, w
}

// decided tells whether each pod has a condition PodScheduled.
func (c *cluster) decided(pods []*corev1.Pod) bool {
	for _, p := range pods {
		if informer.Condition(c.api.pod(p.Name), corev1.PodScheduled) == nil {
			return false
		}
	}
	return true
}

// TestOnlyPodsWithinQuotasAreUnschedulable: an autoscaler sees those pods as unschedulable
// that the quotas allow, all of them in one batch, and at no time others.
func TestOnlyPodsWithinQuotasAreUnschedulable(t *testing.T) {
	for _, test := range []struct {
		name    string
		pods    []*corev1.Pod
		want    int
		changed int // if set, the max of queue capped and what is wanted, after a reload
	}{
		{"max 10 and 40 pods of 1", asksFor(40, "1", "capped", true), 10, 0},
		{"max 10 lowered to 3 and 40 pods of 1", asksFor(40, "1", "capped", true), 10, 3},
		{"max 10 raised to 20 and 40 pods of 1", asksFor(40, "1", "capped", true), 10, 20},
		{"user limit 4 and ten pods of 3", asksFor(10, "3", "user", true), 1, 0},
		{"maxapplications 1 and five applications", asksFor(5, "1", "apps", false), 1, 0},
		{"200 pods without a quota", asksFor(200, "1", "free", true), 200, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c, w := startDemand(t, 10)
				began := time.Now()
				c.api.create(t, test.pods...)
				c.eventually("all pods are decided about", func() bool { return c.decided(test.pods) })
				c.eventually("nodes are wanted for as many pods as may run", func() bool { return w.count() == test.want })
				took := time.Since(began)
				expect.That(t, took < time.Second,
					"that took %v; autoscalers are to see all pods at once, before the first back-off ends", took)
				expect.That(t, w.most <= test.want,
					"for a moment nodes were wanted for %d pods, for %d at most may they be", w.most, test.want)
				if test.changed > 0 {
					c.store.Configure(expect.Get(config.Parse(fmt.Appendf(nil, demandQueues, test.changed)))(t), time.Now())
					time.Sleep(5 * time.Second)
					expect.Same(t, "pods for which nodes are wanted 5 s after the reload", test.changed, w.count())
					expect.Same(t, "the most at any time", max(test.want, test.changed), w.most)
				}
				c.compareWithAutoscalers(t, test.name, test.pods)
				c.end()
			})
		})
	}
}

// updateAutoscalers writes the file that compareWithAutoscalers reads.
var updateAutoscalers = flag.Bool("update-autoscalers", false, "write testdata/autoscalers.json")

// alike is how many pods look the same to an autoscaler.
type alike struct {
	Pods int        `json:"pods"`
	Each corev1.Pod `json:"each"`
}

// compareWithAutoscalers compares pods, as an autoscaler sees them, with a file. The
// module test/karpenter runs Karpenter's own predicate on the pods of that file.
func (c *cluster) compareWithAutoscalers(t *testing.T, name string, pods []*corev1.Pod) {
	t.Helper()
	var seen []alike
	for _, p := range pods {
		now := c.api.pod(p.Name)
		var each corev1.Pod
		each.Spec.NodeName, each.Status.NominatedNodeName = now.Spec.NodeName, now.Status.NominatedNodeName
		if s := informer.Condition(now, corev1.PodScheduled); s != nil {
			each.Status.Conditions = []corev1.PodCondition{{Type: s.Type, Status: s.Status, Reason: s.Reason}}
		}
		i := slices.IndexFunc(seen, func(a alike) bool { return reflect.DeepEqual(a.Each, each) })
		if i < 0 {
			i, seen = len(seen), append(seen, alike{Each: each})
		}
		seen[i].Pods++
	}
	slices.SortFunc(seen, func(a, b alike) int { return cmp.Compare(a.Pods, b.Pods) })
	const file = "testdata/autoscalers.json"
	all := map[string][]alike{}
	expect.OK(t, json.Unmarshal(expect.Get(os.ReadFile(file))(t), &all))
	if *updateAutoscalers {
		all[name] = seen
		text := expect.Get(json.MarshalIndent(all, "", " "))(t)
		expect.OK(t, os.WriteFile(file, append(text, '\n'), 0o600))
		return
	}
	expect.That(t, reflect.DeepEqual(all[name], seen),
		"an autoscaler sees %+v, and %s has %+v; -update-autoscalers writes it", seen, file, all[name])
}

// TestNoNodeIsWantedForAPodThatWasNotTried: the API server wrote SchedulingGated when it
// made the pod, and nothing takes that back when the gates are removed. The pod is not
// tried before its resource claim exists.
func TestNoNodeIsWantedForAPodThatWasNotTried(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, w := startDemand(t, 1)
		defer c.end()
		p := asksFor(1, "1", "free", true)[0]
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "gate"}}
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: &p.Name}}
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonSchedulingGated, Message: "Scheduling is blocked due to non-empty scheduling gates",
		}}
		c.api.create(t, p)
		expect.Get(c.client.CoreV1().Pods(p.Namespace).Patch(t.Context(), p.Name, types.StrategicMergePatchType, []byte(`{"spec":{"schedulingGates":null}}`), metav1.PatchOptions{}))(t)
		time.Sleep(10 * time.Second)
		expect.Same(t, "pods for which a node is wanted, before they were tried", 0, w.most)
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: "claim"}}
		expect.Get(c.client.ResourceV1().ResourceClaims(p.Namespace).Create(t.Context(), claim, metav1.CreateOptions{}))(t)
		c.eventually("a node is wanted after the pod was tried", func() bool { return w.count() == 1 })
	})
}
