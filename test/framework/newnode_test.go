package framework_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// TestDaemonSetPodsGoFirstOnANewNode checks that a DaemonSet pod that exists when its
// node is added gets its room there, although other waiting pods precede it in the order:
// no pod starts on the node that the DaemonSet pod would have to preempt.
func TestDaemonSetPodsGoFirstOnANewNode(t *testing.T) {
	for _, profile := range []string{managed, other} {
		t.Run(profile, func(t *testing.T) {
			inBubble(t, func(t *testing.T) { daemonsOnNewNodes(t, profile) })
		})
	}
}

func daemonsOnNewNodes(t *testing.T, profile string) {
	t.Helper()
	const nodes, cores = 5, 4
	c := start(t, options{queues: fullQueues, backoff: 1, daemonsInDefault: true})
	defer func() {
		c.stop()
		time.Sleep(2 * time.Second) // upstream's metrics check once a second whether they may end
	}()
	for i := range nodes * (cores + 1) {
		c.api.create(t, inQueue(pod(managed, fmt.Sprintf("fill-%03d", i), i), "root.fills", "fill"))
	}
	var daemons []*corev1.Pod
	for i := range nodes {
		p := requiring(inQueue(pod(profile, fmt.Sprintf("agent-%03d", i), 1000), "root.daemons", "agent"), fmt.Sprintf("node-%03d", i))
		daemons = append(daemons, p)
		c.api.create(t, p)
	}
	time.Sleep(20 * time.Second)
	c.addNodes(nodes, cores)
	time.Sleep(30 * time.Second)
	synctest.Wait()
	for _, p := range daemons {
		if now := c.api.pod("default", p.Name); now == nil || now.Spec.NodeName == "" {
			t.Errorf("pod %s does not run: %v", p.Name, c.store.Explain(p.UID))
		}
	}
	running := 0
	for i := range nodes * (cores + 1) {
		name := fmt.Sprintf("fill-%03d", i)
		switch p := c.api.pod("default", name); {
		case p == nil || p.DeletionTimestamp != nil:
			t.Errorf("pod %s was preempted", name)
		case p.Spec.NodeName != "":
			running++
		}
	}
	if want := nodes * (cores - 1); running != want {
		t.Errorf("%d other pods run, want %d", running, want)
	}
	if err := c.store.Check(); err != nil {
		t.Error(err)
	}
}

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
	held := requiring(inQueue(pod(managed, "held", 0), "root.daemons", "held"), "node-000")
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
