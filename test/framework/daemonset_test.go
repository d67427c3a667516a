package framework_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fullQueues are a queue of DaemonSets and one of pods that fill nodes.
const fullQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: daemons
    - name: fills
`

// requiring makes a pod one of a DaemonSet for a node.
func requiring(p *corev1.Pod, node string) *corev1.Pod {
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "uid-of-daemonset", Controller: &yes}}
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}},
	}}
	return p
}

// rollOut makes a DaemonSet get a pod onto each of so many full nodes at once, where the
// victims end on one node after the other, and returns the average number of cycles per
// pod.
func rollOut(t *testing.T, profile string, nodes int) float64 {
	t.Helper()
	var cycles int
	inBubble(t, func(t *testing.T) {
		c := start(t, options{queues: fullQueues, backoff: 1, daemonsInDefault: true, before: func(c *cluster) { c.addNodes(nodes, 1) }})
		defer func() {
			c.stop()
			time.Sleep(2 * time.Second) // upstream's metrics check once a second whether they may end
		}()
		c.api.stays = func(*corev1.Pod) bool { return true }
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		victims, daemons := make([]*corev1.Pod, nodes), make([]*corev1.Pod, nodes)
		for i := range nodes {
			node := fmt.Sprintf("node-%03d", i)
			victims[i] = onNode(inQueue(pod(managed, fmt.Sprintf("fill-%03d", i), i), "root.fills", "fill"), node)
			daemons[i] = requiring(inQueue(pod(profile, fmt.Sprintf("agent-%03d", i), 1000), "root.daemons", "agent"), node)
		}
		c.api.create(t, victims...)
		pass(time.Second)
		c.api.create(t, daemons...)
		pass(20 * time.Second)
		for i, v := range victims {
			if now := c.api.pod(v.Namespace, v.Name); now == nil || now.DeletionTimestamp == nil {
				t.Fatalf("pod %s is not on its way out: %v, %v, %v", v.Name, c.store.Explain(daemons[i].UID), c.api.pod("default", daemons[i].Name).Status, c.probe.cyclesOf(daemons[i]))
			}
		}
		for i, v := range victims {
			c.api.delete(t, v)
			pass(3 * time.Second)
			if now := c.api.pod("default", daemons[i].Name); now.Spec.NodeName == "" {
				t.Fatalf("pod %s does not run though there is room: %v", now.Name, c.store.Explain(now.UID))
			}
		}
		for _, p := range daemons {
			cycles += c.probe.cyclesOf(p)
		}
		if err := c.store.Check(); err != nil {
			t.Error(err)
		}
	})
	return float64(cycles) / float64(nodes)
}

// TestRollOutOverManyNodes checks that the cost of a DaemonSet pod does not grow with the
// number of other nodes that wait: events on other nodes do not make the scheduler try
// it.
func TestRollOutOverManyNodes(t *testing.T) {
	for _, profile := range []string{managed, other} {
		few, many := rollOut(t, profile, 5), rollOut(t, profile, 40)
		t.Logf("%s: %.1f cycles for each pod with 5 nodes, %.1f with 40", profile, few, many)
		if many > few+0.5 {
			t.Errorf("%s: %.1f cycles for each pod with 5 nodes, %.1f with 40", profile, few, many)
		}
	}
}
