package framework_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
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

// TestDaemonSetPodsThatAreNotTriedKeepNoRoom: DaemonSet pods that plugin DynamicResources or
// the max of their queue holds back close their node for no pod of any profile.
func TestDaemonSetPodsThatAreNotTriedKeepNoRoom(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"its claim is missing": func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: &p.Name}}
		},
		"it is beyond a max": func(p *corev1.Pod) { p.Labels[placement.KeyQueue] = "root.small" },
		"it has no queue":    func(p *corev1.Pod) { p.Labels[placement.KeyQueue] = "root.nothere" },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) { notTriedOnItsNode(t, change) })
		})
	}
}

func notTriedOnItsNode(t *testing.T, change func(*corev1.Pod)) {
	t.Helper()
	c := start(t, options{queues: fullQueues + "    - name: small\n      resources: {max: {vcore: 1}}\n", backoff: 1, before: func(c *cluster) { c.addNodes(1, 4) }})
	defer c.end()
	time.Sleep(20 * time.Second) // of virtual time: it no longer counts then that the node came
	held := plugintest.Daemon(inQueue(pod(managed, "held", 0), "root.daemons", "held"), "node-000")
	held.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("4")
	change(held)
	c.api.create(t, held)
	synctest.Wait()
	c.api.create(t, inQueue(pod(managed, "ours", 1), "root.fills", "ours"), pod(other, "theirs", 1))
	synctest.Wait()
	for _, name := range []string{"ours", "theirs"} {
		if p := c.api.pod("default", name); p.Spec.NodeName == "" {
			t.Errorf("pod %s does not run: %v", name, c.store.Explain(p.UID))
		}
	}
	if c.store.AnyNodeBound() {
		t.Error("room is kept")
	}
}
