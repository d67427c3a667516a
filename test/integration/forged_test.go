package integration

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
)

// forgedQueues are two queues below their guarantees, one of them a fence, and three
// without a guarantee, which may preempt nothing.
const forgedQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: team, resources: {guaranteed: {vcore: 100}}, properties: {preemption.delay: 500ms}}
    - {name: fenced, resources: {guaranteed: {vcore: 100}}, properties: {preemption.policy: fence, preemption.delay: 500ms}}
    - {name: evil, properties: {preemption.delay: 500ms}}
    - {name: lends}
    - {name: closed, properties: {preemption.policy: disabled}}
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
				e.configure(strings.Replace(forgedQueues, "name: default", "name: default\n  preemption: {enabled: false}", 1))
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
