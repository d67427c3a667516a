package framework_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/pkg/store"
)

// owedQueues are a queue that preempts after a second, and one without guarantee.
const owedQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: owed
      properties: {preemption.delay: 1s}
      resources: {guaranteed: {vcore: 12}}
    - name: loose
`

// TestPodGroupIsPlannedAtOnce checks that the plans for the members of a PodGroup follow
// each other at once, as those for other pods do, and not one per back-off.
func TestPodGroupIsPlannedAtOnce(t *testing.T) {
	const members = 11
	inBubble(t, func(t *testing.T) {
		c := start(t, options{queues: owedQueues, backoff: 1, before: func(c *cluster) {
			c.addNodes(1, 12)
			c.store.FollowPodGroups()
			c.store.UpsertPodGroup("default", "train", members, time.Now())
		}})
		defer func() {
			c.stop()
			time.Sleep(2 * time.Second) // upstream's metrics check once a second whether they may end
		}()
		c.api.stays = func(*corev1.Pod) bool { return true }
		for i := range 12 {
			c.api.create(t, onNode(inQueue(pod(managed, fmt.Sprintf("loose-%02d", i), i), "root.loose", "loose"), "node-000"))
		}
		time.Sleep(time.Second)
		created := metav1.Now()
		for i := range members {
			p := inQueue(pod(managed, fmt.Sprintf("train-%02d", i), 1000), "root.owed", "train")
			p.CreationTimestamp = created
			p.Labels[store.PodGroupLabel] = "train"
			c.api.create(t, p)
		}
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if n := len(c.store.Holds().On("node-000")); n != members {
			t.Errorf("%d members hold the node half a second after the delay, want %d", n, members)
		}
		if err := c.store.Check(); err != nil {
			t.Error(err)
		}
	})
}
