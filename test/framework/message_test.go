package framework_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWhatAPodWithoutANodeIsTold: the message of QueuePreemption is the whole message of
// PostFilter for a pod without claims. DynamicResources comes after it, has nothing to
// add for such a pod, and returns an error if its PreFilter did not run.
func TestWhatAPodWithoutANodeIsTold(t *testing.T) {
	lost := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "missing"},
		}}}
	}
	unbound := func(p *corev1.Pod) {
		lost(p)
		p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "unbound"
	}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"the node is full":        {func(*corev1.Pod) {}, "0/1 nodes are available: 1 Insufficient cpu. PreemptionRefused: neither queue root.borrows nor one above it is below its guarantee in what the pod requests (law 4)"},
		"its claim is not there":  {lost, `0/1 nodes are available: persistentvolumeclaim "missing" not found. PreemptionRefused: neither queue root.borrows nor one above it is below its guarantee in what the pod requests (law 4)`},
		"its claim has no volume": {unbound, "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. PreemptionRefused: neither queue root.borrows nor one above it is below its guarantee in what the pod requests (law 4)"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c2 := start(t, options{queues: lentQueues, backoff: 1, before: func(c *cluster) {
					c.addNodes(1, 1)
					claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "unbound"}}
					if _, err := c.client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
				}})
				defer c2.end()
				c2.api.create(t, onNode(inQueue(pod(managed, "first", 0), "root.borrows", "first"), "node-000"))
				time.Sleep(time.Second)
				late := inQueue(pod(managed, "late", 1), "root.borrows", "late")
				c.change(late)
				c2.api.create(t, late)
				time.Sleep(time.Second)
				synctest.Wait()
				told := condition(c2.api.pod("default", "late"), corev1.PodScheduled)
				if told == nil || strings.TrimSuffix(told.Message, ".") != c.want {
					t.Errorf("told %+v\nwant %s", told, c.want)
				}
			})
		})
	}
}
