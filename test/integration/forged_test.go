package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
)

// forgedQueues are a queue below its guarantee, and one that has no guarantee and may
// preempt nothing.
const forgedQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: team, resources: {guaranteed: {vcore: 100}}, properties: {preemption.delay: 500ms}}
    - {name: evil, properties: {preemption.delay: 500ms}}
`

// saysItIsOf names an owner. The garbage collector looks up the owners of all pods and
// deletes pods with a missing owner. If it does not know the owner's kind, it leaves the
// pod.
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
// takes no room of a queue that is below its guarantee, and is not safe from preemption
// by it.
func TestForgedOwners(t *testing.T) {
	const invented = "11111111-1111-1111-1111-111111111111"
	e := setup(t, forgedQueues, preemption("retryInterval", "1s"))
	c := e.keepHistory()
	e.run("take no room", func(e *env) {
		part := e.apart("room", 0, localcluster.NodeSpec{})
		node := part.addNodes(1, localcluster.NodeSpec{CPU: "4"})[0]
		e.ok(part.createAtOnce("team", 0, 4, inQueue("root.team"), requests("cpu", "1")))
		e.expect("team", 4, 0, "")
		forged := part.createPod(part.pod("forged", "forged", inQueue("root.evil"), requiresNode(node), saysItIsOf("fake.example/v1", "DaemonSet", "x", invented)))
		part.awaitTold(forged, "law 4")
		c.expectNoMore(2*calm, 0, "team")
	})
	e.run("are no shield", func(e *env) {
		part := e.apart("shield", 0, localcluster.NodeSpec{})
		node := part.addNodes(1, localcluster.NodeSpec{CPU: "4"})[0]
		n, err := suite.client.CoreV1().Nodes().Get(e.Context(), node, metav1.GetOptions{})
		e.ok(err)
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
			if last := c.lastOf(v.pod.UID); !conditionIs(last, corev1.DisruptionTarget, corev1.ConditionTrue) {
				e.Errorf("pod %s went, and not by preemption", v.pod.Name)
			}
		}
	})
	e.expectBooks()
}

// TestDaemonSetsWithoutLeave: the DaemonSet of a namespace that daemonSetNamespaces does
// not name takes no room of a queue that is below its guarantee, although it exists. It
// takes room that a queue has borrowed.
func TestDaemonSetsWithoutLeave(t *testing.T) {
	e := setup(t, forgedQueues, reservation("daemonSetNamespaces", []string{"kube-system"}))
	nodes := e.useNodes(2, localcluster.NodeSpec{CPU: "4"})
	c := e.keepHistory()
	e.fill("team", 1, inQueue("root.team"), requests("cpu", "4"), onNode(nodes[0]))
	e.fill("lent", 1, inQueue("root.evil"), requests("cpu", "4"), onNode(nodes[1]))
	e.createDaemonSet("agent", inQueue("root.evil"), requests("cpu", "1"))
	c.expectEvicted("lent", 1)
	e.expect("agent", 1, 1, "")
	_, waiting := e.podsOf("agent")
	e.awaitTold(waiting[0], "law 5")
	c.expectNoMore(2*calm, 0, "team")
	e.expectBooks()
}
