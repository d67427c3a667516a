package framework_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// fewQueues are one for a single pod, one without limits, and one with a guarantee of one
// core, which another one borrows.
const fewQueues = `
partitions:
- name: default
  placementrules: [{name: provided}]
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: small, resources: {max: {pods: 1}}}
    - {name: large}
    - {name: owed, resources: {guaranteed: {vcore: 1}}, properties: {preemption.delay: 5s}}
    - {name: borrows}
`

// TestPodsThatOtherPluginsHoldBackTakeNoSlots: pods name claims of devices that do not exist, so plugin
// DynamicResources does not let them into the scheduling queue. There are more of them than slots, and a
// pod of another queue is placed all the same. So is the first of them when its claim is there.
func TestPodsThatOtherPluginsHoldBackTakeNoSlots(t *testing.T) {
	c := start(t, options{queues: fewQueues, window: 4})
	c.addNodes(1, 10)
	var held []*corev1.Pod
	for i := range 12 {
		p := inQueue(pod(managed, fmt.Sprintf("held-%02d", i), i), "large", fmt.Sprint("app-", i))
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: &p.Name}}
		held = append(held, p)
	}
	c.api.create(t, held...)
	c.eventually("the pods are known", func() bool { return c.pending() == len(held) })
	c.eventually("no pod has a slot", func() bool {
		x, known := c.store.Explanation(held[0].UID, time.Now())
		return known && x.Taken == 0
	})
	other := inQueue(pod(managed, "other", 20), "small", "app")
	c.api.create(t, other)
	c.eventually("the other pod has a node", func() bool { return c.bound(other) })

	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: held[0].Namespace, Name: held[0].Name, UID: "claim"}}
	expect.Get(c.client.ResourceV1().ResourceClaims(claim.Namespace).Create(t.Context(), claim, metav1.CreateOptions{}))(t)
	c.eventually("the pod whose claim exists has a node", func() bool { return c.bound(held[0]) })
	expect.Same(t, "why a pod without its claim waits", reasons.SchedulingGated, c.store.Explain(held[1].UID).Code)
}

// TestMessageOfAPodWithoutANode: the message of QueuePreemption is the whole message of
// PostFilter for a pod without claims. DynamicResources comes after it, has nothing to
// add for such a pod, and returns an error if its PreFilter did not run.
func TestMessageOfAPodWithoutANode(t *testing.T) {
	lost := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "missing"},
		}}}
	}
	for why, change := range map[string]func(*corev1.Pod){
		"1 Insufficient cpu": func(*corev1.Pod) {}, `persistentvolumeclaim "missing" not found`: lost,
	} {
		t.Run(why, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := start(t, options{queues: fewQueues, backoff: 1, before: func(c *cluster) { c.addNodes(1, 1) }})
				defer c.end()
				c.api.create(t, onNode(inQueue(pod(managed, "first", 0), "root.borrows", "first"), "node-000"))
				time.Sleep(time.Second)
				late := inQueue(pod(managed, "late", 1), "root.borrows", "late")
				change(late)
				c.api.create(t, late)
				time.Sleep(time.Second)
				synctest.Wait()
				told := informer.Condition(c.api.pod("late"), corev1.PodScheduled)
				if told == nil {
					t.Fatal("the pod is told nothing")
				}
				want := "0/1 nodes are available: " + why + ". PreemptionRefused: neither queue root.borrows nor one above it " +
					"is below its guarantee in what the pod requests (law 4)"
				expect.Same(t, "told", want, strings.TrimSuffix(told.Message, "."))
			})
		})
	}
}

// used is the allocated usage of a queue, in pods.
func (c *cluster) used(queue string) int {
	q, ok := c.store.Snapshot().Find(queue)
	if !ok {
		c.t.Fatalf("there is no queue %s", queue)
	}
	return int(q.Allocated.Get("pods"))
}

// bound tells whether the API server has the pod on a node.
func (c *cluster) bound(p *corev1.Pod) bool {
	now := c.api.pod(p.Name)
	return now != nil && now.Spec.NodeName != ""
}

func TestPodOverQuotaIsHeldWithoutCyclesAndReleasedByOneEvent(t *testing.T) {
	c := start(t, options{queues: fewQueues})
	c.addNodes(2, 10)
	first := inQueue(pod(managed, "first", 0), "small", "app")
	c.api.create(t, first)
	c.eventually("the first pod is bound", func() bool { return c.bound(first) && c.used("root.small") == 1 })
	var held []*corev1.Pod
	for i := range 50 {
		held = append(held, inQueue(pod(managed, fmt.Sprintf("held-%02d", i), 1+i), "small", "app"))
	}
	c.api.create(t, held...)
	c.eventually("the others are known", func() bool { return c.pending() == len(held) })

	// Whatever happens to the cluster, they are not tried.
	c.addNodes(5, 10)
	foreign := pod(other, "foreign", 100)
	c.api.create(t, foreign)
	c.eventually("the foreign pod is bound", func() bool { return c.bound(foreign) })
	c.api.delete(t, foreign)
	c.eventually("the reason of the wait is told", func() bool {
		told := informer.Condition(c.api.pod(held[49].Name), "paddock.io/Admitted")
		return told != nil && told.Status == corev1.ConditionFalse && told.Reason == "OverMax"
	})
	for _, p := range held {
		expect.Same(t, p.Name+": cycles while its queue was full", 0, c.probe.cyclesOf(p))
		told := informer.Condition(c.api.pod(p.Name), corev1.PodScheduled)
		expect.That(t, told == nil, "%s has the condition that wakes autoscalers: %v", p.Name, told)
	}

	c.api.delete(t, first)
	c.eventually("the first of the others is bound", func() bool { return c.bound(held[0]) })
	expect.Same(t, "its cycles", 1, c.probe.cyclesOf(held[0]))
	c.eventually("the books say so", func() bool { return c.used("root.small") == 1 && c.pending() == 49 })
	expect.Same(t, "cycles of the next one", 0, c.probe.cyclesOf(held[1]))
	expect.Holds(t, c.store.Check())
}

// changeNode changes a node as a controller does.
func (c *cluster) changeNode(t *testing.T, name string, change func(*corev1.Node)) {
	t.Helper()
	nodes := c.client.CoreV1().Nodes()
	node := expect.Get(nodes.Get(context.Background(), name, metav1.GetOptions{}))(t).DeepCopy()
	change(node)
	expect.Get(nodes.Update(context.Background(), node, metav1.UpdateOptions{}))(t)
}

// TestHoldEndsWhenItsNodeRefusesThePod: while victims still leave, the node gets a taint or loses a
// label, so that the asker cannot run there whichever pods are preempted. The hold ends, and the
// condition that autoscalers read then says that the asker needs a node. A change that still lets the
// asker run ends no hold. When the node is as before and the victim is gone, the asker runs there.
func TestHoldEndsWhenItsNodeRefusesThePod(t *testing.T) {
	taint := func(key string, effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: key, Effect: effect}} }
	}
	for name, change := range map[string]func(*corev1.Node){
		"karpenter":          taint("karpenter.sh/disrupted", corev1.TaintEffectNoSchedule),
		"cluster-autoscaler": taint("ToBeDeletedByClusterAutoscaler", corev1.TaintEffectNoSchedule),
		"label":              func(n *corev1.Node) { n.Labels = nil },
		"allocatable":        func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("500m") },
		"harmless taint":     taint("soft", corev1.TaintEffectPreferNoSchedule),
		"harmless label":     func(n *corev1.Node) { n.Labels["more"] = "labels" },
	} {
		ends := name[:4] != "harm"
		for kind, why := range map[string]reasons.Code{"ordinary": reasons.HoldNodeUnschedulable, "DaemonSet": reasons.RoomImpossible} {
			t.Run(name+" "+kind, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					c := start(t, options{queues: fewQueues, backoff: 1, before: func(c *cluster) { c.addNodes(1, 1) }})
					defer c.end()
					var before *corev1.Node
					c.changeNode(t, "node-000", func(n *corev1.Node) {
						n.Labels = map[string]string{"pool": "batch"}
						before = n.DeepCopy()
					})
					c.api.stays = func(*corev1.Pod) bool { return true }
					victim := onNode(inQueue(pod(managed, "victim", 0), "root.borrows", "victim"), "node-000")
					c.api.create(t, victim)
					time.Sleep(time.Second)
					asker := inQueue(pod(managed, "asker", 0), "root.owed", "asker")
					asker.CreationTimestamp = metav1.Now()
					asker.Spec.NodeSelector = map[string]string{"pool": "batch"}
					if kind == "DaemonSet" {
						asker = plugintest.Daemon(asker, "node-000")
					}
					c.api.create(t, asker)
					time.Sleep(10 * time.Second)
					expect.That(t, c.api.pod("victim").DeletionTimestamp != nil && c.store.Holds().Held(),
						"the node is not held: %v", c.store.Explain(asker.UID))
					c.changeNode(t, "node-000", change)
					time.Sleep(time.Second)
					synctest.Wait()
					now := c.api.pod("asker")
					held, told := informer.Condition(now, reservations.HeldCondition), informer.Condition(now, corev1.PodScheduled)
					ended := []bool{!c.store.Holds().Held(), held.Status != corev1.ConditionTrue, now.Status.NominatedNodeName == ""}
					expect.Same(t, "hold, claim and nomination have ended", []bool{ends, ends, ends}, ended)
					if ends {
						expect.Same(t, "why", string(why), held.Reason)
						expect.That(t, told != nil && told.Status == corev1.ConditionFalse && told.Reason == corev1.PodReasonUnschedulable,
							"the asker is told %+v", told)
					}
					c.changeNode(t, "node-000", func(n *corev1.Node) { *n = *before })
					c.api.delete(t, victim)
					time.Sleep(time.Minute)
					expect.That(t, c.api.pod("asker").Spec.NodeName != "",
						"the node is as before, and the asker does not run: %v", c.store.Explain(asker.UID))
					expect.Holds(t, c.store.Check())
				})
			})
		}
	}
}

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
	defer holding(&w.mu)()
	c := informer.Condition(p, corev1.PodScheduled)
	if c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable && p.Spec.NodeName == "" {
		w.now[p.UID] = true
	} else {
		delete(w.now, p.UID)
	}
	w.most = max(w.most, len(w.now))
}

func (w *wanted) count() int {
	defer holding(&w.mu)()
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
	return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
		return informer.Condition(c.api.pod(p.Name), corev1.PodScheduled) == nil
	})
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
