package framework_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// changeNode changes a node as a controller does.
func (c *cluster) changeNode(t *testing.T, name string, change func(*corev1.Node)) {
	t.Helper()
	nodes := c.client.CoreV1().Nodes()
	node := expect.Get(nodes.Get(context.Background(), name, metav1.GetOptions{}))(t)
	node = node.DeepCopy()
	change(node)
	expect.Get(nodes.Update(context.Background(), node, metav1.UpdateOptions{}))(t)
}

// lentQueues are one queue with a guarantee of one core, and one that borrows the core.
const lentQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: owed
      resources: {guaranteed: {vcore: 1}}
      properties: {preemption.delay: 5s}
    - name: borrows
`

// TestHoldEndsWhenItsNodeRefusesThePod: while victims still leave, the node gets a
// taint or loses a label, so that the asker cannot run there whichever pods are
// preempted. The hold ends, and the condition that autoscalers read then says that the
// asker needs a node. A change that still lets the asker run ends no hold. When the node is
// as before and the victim is gone, the asker runs there.
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
					c := start(t, options{queues: lentQueues, backoff: 1, before: func(c *cluster) { c.addNodes(1, 1) }})
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
					if now := c.api.pod("default", "victim"); now.DeletionTimestamp == nil || !c.store.Holds().Held() {
						t.Fatalf("the node is not held: %v", c.store.Explain(asker.UID))
					}
					c.changeNode(t, "node-000", change)
					time.Sleep(time.Second)
					synctest.Wait()
					now := c.api.pod("default", "asker")
					held, told := condition(now, corev1.PodConditionType(reservations.HeldCondition)), condition(now, corev1.PodScheduled)
					if c.store.Holds().Held() == ends || (held.Status == corev1.ConditionTrue) == ends || (now.Status.NominatedNodeName != "") == ends {
						t.Errorf("the hold has ended: %v, nominated to %q, %+v, %+v; want that it has: %v", !c.store.Holds().Held(), now.Status.NominatedNodeName, held, told, ends)
					}
					if ends && (held.Reason != string(why) || told == nil || told.Status != corev1.ConditionFalse || told.Reason != corev1.PodReasonUnschedulable) {
						t.Errorf("the asker is told %+v, %+v", held, told)
					}
					c.changeNode(t, "node-000", func(n *corev1.Node) { *n = *before })
					c.api.delete(t, victim)
					time.Sleep(time.Minute)
					if c.api.pod("default", "asker").Spec.NodeName == "" {
						t.Errorf("the node is as before, and the asker does not run: %v", c.store.Explain(asker.UID))
					}
					expect.Holds(t, c.store.Check())
				})
			})
		}
	}
}
