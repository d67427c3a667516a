package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// forgedQueues are two queues below their guarantees, one of them a fence, and three
// without a guarantee, which may preempt nothing.
var forgedQueues = belowRoot(`
 {name: team, resources: {guaranteed: {vcore: 100}}, properties: {preemption.delay: 500ms}},
 {name: fenced, resources: {guaranteed: {vcore: 100}}, properties: {preemption.policy: fence, preemption.delay: 500ms}},
 {name: evil, properties: {preemption.delay: 500ms}}, {name: lends}, {name: closed, properties: {preemption.policy: disabled}}`)

// saysItIsOf names an owner. The garbage collector looks up the owners of all pods and deletes pods
// with a missing owner. If it does not know the owner's kind, it leaves the pod.
func saysItIsOf(version, kind, name string, uid types.UID) podOption {
	yes := true
	return func(p *corev1.Pod) {
		p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: uid, Controller: &yes})
	}
}

func withoutController(p *corev1.Pod) {
	for i := range p.OwnerReferences {
		p.OwnerReferences[i].Controller = nil
	}
}

// requiresNode is the node affinity that the DaemonSet controller writes.
func requiresNode(node string) podOption {
	return func(p *corev1.Pod) { plugintest.Requiring(p, node) }
}

// TestForgedOwners: every user that may make pods can name any owner in them. Such a pod
// takes no more room of others than an ordinary one, and is not safe from preemption.
func TestForgedOwners(t *testing.T) {
	const invented = "11111111-1111-1111-1111-111111111111"
	e := setup(t, forgedQueues, preemption("retryInterval", "1s"))
	c := e.keepHistory()
	optsOut := func(p *corev1.Pod) { p.Annotations[allowPreemption] = "false" }
	for i, row := range []struct {
		what, victims, asker string
		options              []podOption
		guarded, off         bool
		told                 string
	}{
		{"a guarantee", "team", "evil", nil, false, false, "law 4"},
		{"an opt-out", "team", "evil", []podOption{optsOut}, false, false, "law 4"},
		{"a budget", "team", "evil", nil, true, false, "law 4"},
		{"a fence", "lends", "fenced", nil, false, false, "law 7"},
		{"policy disabled", "closed", "team", nil, false, false, "preemption.policy disabled"},
		{"preemption disabled", "lends", "team", nil, false, true, "queues do not preempt"},
	} {
		e.run("take no room against "+row.what, func(e *env) {
			if row.off {
				e.configure(strings.Replace(forgedQueues, "name: default", "name: default, preemption: {enabled: false}", 1))
			}
			part, of := e.apart(fmt.Sprint("room-", i), 0, localcluster.NodeSpec{}), fmt.Sprint("spared-", i)
			node := part.addNodes(1, localcluster.NodeSpec{CPU: "4"})[0]
			e.ok(part.createAtOnce(of, 0, 4, append(row.options, inQueue("root."+row.victims), requests("cpu", "1"))...))
			e.expect(of, 4, 0, "")
			if row.guarded {
				e.guard(of, 4, 0)
			}
			asker := func(name string, options ...podOption) {
				options = append(options, inQueue("root."+row.asker), requiresNode(node))
				part.awaitTold(part.createPod(part.pod(fmt.Sprint(name, i), fmt.Sprint("asker-", i), options...)), row.told)
			}
			asker("ordinary-")
			asker("forged-", saysItIsOf("fake.example/v1", "DaemonSet", "x", invented))
			c.expectNoMore(2*calm, 0, of)
		})
	}
	e.configure(forgedQueues)
	e.run("are no shield", func(e *env) {
		part := e.apart("shield", 0, localcluster.NodeSpec{})
		node := part.addNodes(1, localcluster.NodeSpec{CPU: "4"})[0]
		n := expect.Get(suite.client.CoreV1().Nodes().Get(e.Context(), node, metav1.GetOptions{}))(e)
		shields := [][]podOption{
			{saysItIsOf("fake.example/v1", "Node", node, invented)},
			{saysItIsOf("v1", "Node", node, n.UID)},
			{saysItIsOf("fake.example/v1", "Node", "x", invented), withoutController},
			{saysItIsOf("fake.example/v1", "DaemonSet", "x", invented), requiresNode(node)},
		}
		for i, shield := range shields {
			name := fmt.Sprintf("shielded-%d", i)
			part.awaitRunning(part.createPod(part.pod(name, "shielded", append(shield, inQueue("root.evil"), requests("cpu", "950m"))...)))
		}
		for i := range shields {
			part.awaitRunning(part.createPod(part.pod(fmt.Sprintf("asker-%d", i), "asker", inQueue("root.team"), requests("cpu", "950m"))))
		}
		c.expectNoMore(calm, len(shields), "shielded")
		for _, v := range c.evicted("shielded") {
			expect.That(e, conditionIs(c.lastOf(v.pod.UID), corev1.DisruptionTarget, corev1.ConditionTrue),
				"pod %s went, and not by preemption", v.pod.Name)
		}
	})
	e.expectBooks()
}

// TestAVictimAsLargeAsEtcdStores: a tenant fills a pod up to the limit of etcd, so that it
// can be neither marked nor deleted. The plan that chooses it costs no pod, and the next one
// takes another pod.
func TestAVictimAsLargeAsEtcdStores(t *testing.T) {
	e := setup(t, owedQueues(100, 500*time.Millisecond), preemption("retryInterval", "1s"))
	part := e.apart("large", 0, localcluster.NodeSpec{})
	part.addNodes(2, localcluster.NodeSpec{CPU: "2"})
	lent := part.createPod(part.pod("lent", "lent", inQueue("root.borrows"), requests("cpu", "2")))
	part.awaitRunning(lent)
	eventually(e, patience, "the next pod is younger, so that it is chosen first", func() (bool, string) {
		return time.Since(lent.CreationTimestamp.Time) > time.Second, "" // the API server has seconds
	})
	large := part.createPod(part.pod("large", "large", inQueue("root.borrows"), requests("cpu", "2"), nearlyTooLarge))
	t.Cleanup(func() { // no delete succeeds before
		_, err := suite.client.CoreV1().Pods(large.Namespace).Patch(context.Background(), large.Name, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"pad":null}}}`), metav1.PatchOptions{})
		expect.Holds(t, err)
	})
	part.awaitPod(large, "has all of its status", func(p *corev1.Pod) bool {
		return conditionIs(p, corev1.PodReady, corev1.ConditionTrue)
	})
	padFully(t, e, large)
	asker := part.createPod(part.pod("asker", "asker", inQueue("root.owed"), requests("cpu", "2")))
	part.awaitRunning(asker)
	for _, grace := range []int64{30, 0} { // what the advice says
		err := suite.client.CoreV1().Pods(large.Namespace).Delete(e.Context(), large.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
		expect.That(t, err != nil && strings.Contains(err.Error(), "request is too large"),
			"a delete with grace period %d: %v", grace, err)
	}
	told := slices.DeleteFunc(expect.Get(eventsOf(e.Context(), asker))(t), func(v corev1.Event) bool {
		return v.Reason != "HoldGivenUp" || !strings.Contains(v.Message, "shorten its annotations")
	})
	expect.Same(t, "plans that were given up for the large pod", 1, len(told))
}

// nearlyTooLarge makes a pod so large that annotations can fill it up to the limit of etcd.
func nearlyTooLarge(p *corev1.Pod) {
	for i := range 14 {
		p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("E%d", i), Value: strings.Repeat("x", 100_000)})
	}
}

func (e *env) pad(pod *corev1.Pod, n int) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"pad":"%s"}}}`, strings.Repeat("y", n))
	_, err := suite.client.CoreV1().Pods(pod.Namespace).Patch(e.Context(), pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// padFully makes an annotation of a pod as long as the API server stores it, and returns its length.
func padFully(t *testing.T, e *env, pod *corev1.Pod) int {
	fits, refused := 0, 250_000
	for refused-fits > 1 {
		middle := (fits + refused) / 2
		switch err := e.pad(pod, middle); {
		case err == nil:
			fits = middle
		case strings.Contains(err.Error(), "request is too large"):
			refused = middle
		default:
			t.Fatal(err)
		}
	}
	if fits == 0 {
		t.Fatal("no annotation fits the pod")
	}
	return fits
}

// never is the name of a program that would make volumes, and does not run.
const never = "example.com/never"

// TestVolumesThatNeverCome: a pod with a claim that has no volume or does not exist preempts nothing
// and holds nothing, although its queue is below its guarantee. Pods that have a node and wait for
// volumes that are never made are charged to their queue, and lose the node when the time for binding
// is over: then the pods of a queue below its guarantee go first.
func TestVolumesThatNeverCome(t *testing.T) {
	e := setup(t, owedQueues(100, 500*time.Millisecond), preemption("retryInterval", "1s"), arg("VolumeBinding", "bindTimeoutSeconds", 2))
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	c := e.keepHistory()
	e.create("lent", 4, inQueue("root.borrows"))
	e.expect("lent", 4, 0, "")
	var volumeless []*corev1.Pod
	for name, option := range map[string]podOption{
		"missing": mounts("there-is-none"), "unbound": e.withClaim("unbound", e.storageClass("Immediate", never)),
	} {
		p := e.createPod(e.pod(name, name, inQueue("root.owed"), option))
		e.awaitPod(p, "was tried", func(p *corev1.Pod) bool { return conditionIs(p, corev1.PodScheduled, corev1.ConditionFalse) })
		volumeless = append(volumeless, p)
	}
	c.expectNoMore(2*calm, 0, "lent")
	for _, p := range volumeless {
		claim, _ := c.claim(p.UID)
		expect.Same(t, "node that is held for pod "+p.Name+", which cannot get its volume", "", claim.Node)
	}
	e.removePods(e.Context())

	later := e.storageClass("WaitForFirstConsumer", never)
	e.createPod(e.pod("never", "never", inQueue("root.borrows"), requests("cpu", "4"), e.withClaim("never", later)))
	e.awaitQueue("root.borrows", "is charged for the pod", func(q *documents.Queue) bool { return q.AllocatedResource["vcore"] == 4000 })
	e.awaitRunning(e.create("asker", 1, inQueue("root.owed"), requests("cpu", "4"))[0])
	running, _ := e.podsOf("never")
	expect.That(t, len(running) == 0, "%d pods run without their volumes", len(running))
}
