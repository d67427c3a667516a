package framework_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// nominate writes that a pod is nominated to a node, as a scheduler does that dies right
// after.
func (c *cluster) nominate(t *testing.T, p *corev1.Pod, node string) {
	t.Helper()
	patch := []byte(`{"status":{"nominatedNodeName":"` + node + `"}}`)
	if _, err := c.client.CoreV1().Pods(p.Namespace).Patch(context.Background(), p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// remember makes the scheduler keep room for a pod, as at the end of a cycle of the pod.
func (c *cluster) remember(t *testing.T, p *corev1.Pod, node string) {
	t.Helper()
	info, err := framework.NewPodInfo(p)
	if err != nil {
		t.Fatal(err)
	}
	c.handle.AddNominatedPod(klog.Background(), info, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: node})
}

// keepsRoom tells whether the scheduler keeps room on a node for a pod.
func (c *cluster) keepsRoom(p *corev1.Pod, node string) bool {
	for _, nominated := range c.handle.NominatedPodsForNode(node) {
		if nominated.GetPod().UID == p.UID {
			return true
		}
	}
	return false
}

// A nomination of a pod that holds no node, in the scheduler's memory or on the API
// server, keeps other pods off the node only for a short time. No cycle of the nominated
// pod would end the nomination, because its queue is full; and no event brings back the
// pods that were kept off.
func TestNominationWithoutAHoldKeepsNoPodOff(t *testing.T) {
	for how, nominate := range map[string]func(*cluster, *testing.T, *corev1.Pod, string){"written": (*cluster).nominate, "remembered": (*cluster).remember} {
		for _, profile := range []string{managed, other} {
			t.Run(how+" "+profile, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					c := start(t, options{queues: twoQueues, backoff: 1})
					defer c.end()
					c.addNodes(1, 2)
					first, full := inQueue(pod(managed, "first", 0), "small", "app"), inQueue(pod(managed, "full", 1), "small", "app")
					c.api.create(t, onNode(first, "node-000"), full)
					c.seen(1, 1)
					time.Sleep(time.Second)
					nominate(c, t, full, "node-000")
					late := inQueue(pod(profile, "late", 2), "large", "another")
					c.api.create(t, late)
					time.Sleep(time.Second)
					if c.bound(late) || !c.keepsRoom(full, "node-000") {
						t.Fatal("the test is none: the nomination keeps nobody off")
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					if !c.bound(late) || c.bound(full) {
						t.Errorf("room is kept for a pod whose queue is full; the other one waits: %v", c.store.Explain(late.UID))
					}
				})
			})
		}
	}
}

// reclaims are a queue that takes back its guarantee, and one that uses it.
const reclaims = `
partitions:
- name: default
  placementrules: [{name: provided}]
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: poor, resources: {guaranteed: {vcore: 2}}, properties: {preemption.delay: 1s}}
    - {name: rich}
`

// A pod that holds a node stays nominated to it as long as the hold lasts. Nominations of
// other profiles are left alone.
func TestNominationsOfOthersStay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := start(t, options{queues: reclaims, backoff: 1})
		defer c.end()
		c.api.stays = func(*corev1.Pod) bool { return true }
		c.addNodes(1, 2)
		first, second := inQueue(pod(managed, "first", 0), "rich", "one"), inQueue(pod(managed, "second", 1), "rich", "two")
		c.api.create(t, onNode(first, "node-000"), onNode(second, "node-000"))
		c.seen(1, 2)
		asker, gated := inQueue(pod(managed, "asker", 2), "poor", "app"), pod(other, "gated", 3)
		asker.CreationTimestamp = metav1.Now() // the preemption delay begins
		gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}}
		c.api.create(t, asker, gated)
		time.Sleep(time.Second)
		c.nominate(t, gated, "node-000")
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, held := c.store.Holds().Of(asker.UID); !held {
			t.Fatalf("nobody makes room for the asker: %v", c.store.Explain(asker.UID))
		}
		for _, p := range []*corev1.Pod{asker, gated} {
			if written := c.api.pod(p.Namespace, p.Name).Status.NominatedNodeName; written != "node-000" || !c.keepsRoom(p, "node-000") {
				t.Errorf("%s is nominated to %q, and room is kept for it: %v", p.Name, written, c.keepsRoom(p, "node-000"))
			}
		}
	})
}
