package integration

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

// daemonQueues are a queue of DaemonSets and one of pods that fill nodes, neither
// of which is owed anything.
const daemonQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: daemons
    - name: fills
`

// createDaemonSet makes a DaemonSet whose pods are in the group and, if they are
// of the managed profile, in queue root.daemons.
func (e *env) createDaemonSet(name string, options ...podOption) *appsv1.DaemonSet {
	e.Helper()
	p := e.pod("", name, append([]podOption{inQueue("root.daemons")}, options...)...)
	set, err := suite.client.AppsV1().DaemonSets(e.ns).Create(e.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{Selector: e.selector(name), Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: p.Labels, Annotations: p.Annotations}, Spec: p.Spec,
		}},
	}, metav1.CreateOptions{})
	e.ok(err)
	e.Cleanup(func() { // or it would create again what the test removes in the end
		// The error is that the test has deleted it itself.
		_ = suite.client.AppsV1().DaemonSets(e.ns).Delete(context.Background(), name, inBackground())
	})
	return set
}

// awaitWaiting waits until a group has pods that wait for a node, and returns them.
func (e *env) awaitWaiting(of string, n int) []*corev1.Pod {
	e.Helper()
	var out []*corev1.Pod
	eventually(e, patience, "pods of group "+of+" wait", func() (bool, string) {
		_, out = e.podsOf(of)
		return len(out) == n, ""
	})
	return out
}

// TestDaemonSetOnAFullCluster checks that a DaemonSet gets its pods onto nodes
// that are full to the brim, for one pod each and not more, though it is owed
// nothing, and that everybody is told.
func TestDaemonSetOnAFullCluster(t *testing.T) {
	e := setup(t, daemonQueues)
	e.useNodes(3, localcluster.NodeSpec{CPU: "4"})
	c := e.keepChronicle()
	e.fill("filler", 12, inQueue("root.fills"), stopsAfter(300*time.Millisecond))
	began := time.Now()
	e.createDaemonSet("agent")
	e.expect("agent", 3, 0, "")
	t.Logf("the DaemonSet runs on three full nodes after %v", time.Since(began).Round(time.Millisecond))
	victims := c.expectEvicted("filler", 3)
	nodes := map[string]bool{}
	for _, v := range victims {
		nodes[v.pod.Spec.NodeName] = true
		if last := c.lastOf(v.pod.UID); !conditionIs(last, corev1.DisruptionTarget, corev1.ConditionTrue) {
			t.Errorf("pod %s was evicted without condition %s", v.pod.Name, corev1.DisruptionTarget)
		}
		e.awaitNote(v.pod, "can run on node "+v.pod.Spec.NodeName+" only", "D4")
	}
	if len(nodes) != 3 {
		t.Errorf("the victims ran on %d nodes, want one on each of 3", len(nodes))
	}
	running, _ := e.podsOf("agent")
	for _, p := range running {
		c.awaitPlaced(p)
		e.awaitNote(p, "the only one it can run on", p.Spec.NodeName)
	}
	throughout(e, calm, "three pods are evicted", func() (bool, string) {
		seen := c.evicted("filler")
		return len(seen) == 3, names(seen)
	})
	e.expectBooks()
}
