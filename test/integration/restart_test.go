package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

const restartQueues = `
partitions:
- name: default
  placementrules:
  - name: provided
    create: true
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: a
      resources: {guaranteed: {vcore: 2}, max: {vcore: 4}}
    - name: parent
      resources: {max: {vcore: 5, memory: 4Gi}}
      queues:
      - name: b
      - name: c
        resources: {max: {pods: 1}}
`

// where returns the node of each pod.
func where(pods []*corev1.Pod) map[string]string {
	out := map[string]string{}
	for _, p := range pods {
		out[string(p.UID)] = p.Spec.NodeName
	}
	return out
}

// TestKilledScheduler checks that a scheduler that was killed while pods ran and waited
// restarts with the right usage, moves no pod, and continues.
func TestKilledScheduler(t *testing.T) {
	e := setup(t, restartQueues)
	e.create("a", 6, inQueue("root.a"))
	e.create("b", 3, inQueue("root.parent.b"), requests("cpu", "500m", "memory", "1Gi"))
	e.create("c", 2, inQueue("root.parent.c"), requests("memory", "512Mi"))
	e.create("d", 2, inQueue("root.parent.dynamic"), requests("memory", "1Gi"))
	e.expect("a", 4, 2, reasons.OverMax)
	e.expect("c", 1, 1, reasons.OverMax)
	eventually(t, patience, "root.parent is as full as it can be", func() (bool, string) {
		b, _ := e.podsOf("b")
		d, _ := e.podsOf("d")
		return len(b)+len(d) == 3, ""
	})
	e.expectBooks()
	groups := []string{"a", "b", "c", "d"}
	before := map[string]map[string]string{}
	for _, g := range groups {
		running, _ := e.podsOf(g)
		before[g] = where(running)
	}

	e.kill()
	e.create("late", 1, inQueue("root.parent.b"), requests("cpu", "100m")) // while no scheduler runs
	gone, _ := e.podsOf("a")
	e.delete(gone[0])
	e.start()

	e.expect("late", 1, 0, "")
	e.expectStill("a", 4, 1, reasons.OverMax)
	for _, g := range groups {
		running, _ := e.podsOf(g)
		after := where(running)
		for uid, node := range before[g] {
			if uid != string(gone[0].UID) && after[uid] != node {
				t.Errorf("a pod of group %s ran on %s before the restart, on %q after it", g, node, after[uid])
			}
		}
	}
	e.expectBooks()
	if q := e.queue("root.parent.dynamic"); q == nil || q.IsManaged {
		t.Errorf("after the restart the dynamic queue is %+v", q)
	}
}

// TestRestartAmongInventedTypes kills the scheduler while a tenant makes pods with 60
// invented types of resources each, all different. The scheduler that is started then
// knows all of these pods, has none of the types in its books, and places pods of others.
func TestRestartAmongInventedTypes(t *testing.T) {
	const many = 100
	e := setup(t, forgedQueues)
	invented := inventedTypes(60)
	create := func(first int) {
		for i := first; i < first+many/2; i++ {
			e.createPod(e.pod(fmt.Sprintf("evil-%d", i), "evil", inQueue("root.evil"), invented(i)))
		}
	}
	create(0)
	e.kill()
	create(many / 2)
	other := e.create("other", 1, inQueue("root.team"))[0]
	e.start()
	e.awaitRunning(other)
	e.awaitQueue("root.evil", "counts all pods, and none of their types", func(q *documents.Queue) bool {
		return len(q.PendingResource) == 1 && q.PendingResource["pods"] == many
	})
	e.expect("evil", 0, many, "")
}
