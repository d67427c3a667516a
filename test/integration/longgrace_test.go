package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/nodeagent"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// graceQueues are two queues without a guarantee and two with one, which preempt as soon as
// they may. The guarantee of root.owed is far more than it uses.
const graceQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: evil
    - name: owed
      resources: {guaranteed: {vcore: 100}}
      properties: {preemption.delay: 500ms}
    - {name: team, resources: {guaranteed: {vcore: 8}}, properties: {preemption.delay: 500ms}}
    - name: other
`

// staysFor gives a pod a grace period and lets it use all of it.
func staysFor(grace time.Duration) podOption {
	return func(p *corev1.Pod) {
		withGrace(int64(grace / time.Second))(p)
		p.Annotations[nodeagent.AnnotationStopAfter] = grace.String()
	}
}

func withHostPort(p *corev1.Pod) {
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 7777, HostPort: 7777}}
}

const year = 365 * 24 * time.Hour

// apartFrom keeps a pod off nodes with pods of a group.
func apartFrom(of string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{group: of}},
				TopologyKey:   corev1.LabelHostname,
			}},
		}}
	}
}

// TestLongGraceClosesNoNode: a tenant deletes its pods, which run on for their grace
// period, and makes others that fit only once these are gone. The pods are small and
// there is one on each node. No node is held for the new pods: pods of other queues and
// of the other profile are placed beside the old ones.
func TestLongGraceClosesNoNode(t *testing.T) {
	const minutes = 5 * time.Minute // reservationTimeout is 10 minutes
	e := setup(t, graceQueues, twoProfiles, preemption("retryInterval", "1s"))
	for _, k := range []struct {
		name, queue string
		grace       time.Duration
		daemons     bool
		apart       func(of string) podOption // keeps the new pods off the old ones
		lent        bool                      // a pod of another queue has to go for a new pod
		says        string                    // to the new pods
	}{
		{"daemons-port", "root.evil", year, true, samePort, false, "longer than a hold"},
		{"daemons-affinity", "root.evil", year, true, apartFrom, false, "longer than a hold"},
		{"daemons-minutes", "root.evil", minutes, true, samePort, false, "pods of its own namespace or queue that leave"},
		{"forged-port", "root.evil", year, false, forged, false, "law 4"},
		{"guaranteed-year", "root.owed", year, false, samePort, false, "whichever pods go"},
		{"guaranteed-victims", "root.owed", year, false, samePort, true, "whichever pods go"},
		{"guaranteed-minutes", "root.owed", minutes, false, samePort, false, "first in the order then gets it"},
	} {
		e.run(k.name, func(e *env) {
			part := e.apart(k.name, 0, localcluster.NodeSpec{})
			nodes := part.addNodes(2, localcluster.NodeSpec{CPU: "4"})
			small := []podOption{inQueue(k.queue), requests("cpu", "10m"), staysFor(k.grace)}
			before, after := k.name+"-old", k.name+"-new"
			old := part.onEachNode(before, k.daemons, nodes, append(small, k.apart(after)))
			part.deleteAll(before, k.daemons, old)
			options := append(small, k.apart(before))
			if k.lent {
				for _, p := range part.onEachNode(k.name+"-lent", false, nodes, []podOption{inQueue("root.other"), requests("cpu", "2")}) {
					part.awaitRunning(p)
				}
				options = append(options, requests("cpu", "3"))
			}
			part.expectOpenBeside(k.name, nodes, old, part.onEachNode(after, k.daemons, nodes, options), k.says)
		})
	}
	// The controller makes a second pod of the same DaemonSet beside each old one.
	e.run("daemons-update", func(e *env) {
		part := e.apart("update", 0, localcluster.NodeSpec{})
		nodes := part.addNodes(2, localcluster.NodeSpec{CPU: "4"})
		old := part.onEachNode("updated", true, nodes, []podOption{inQueue("root.evil"), requests("cpu", "2100m"), staysFor(year)})
		for _, p := range old {
			part.awaitRunning(p)
		}
		expect.Get(suite.client.AppsV1().DaemonSets(part.ns).Patch(t.Context(), "updated", types.StrategicMergePatchType, []byte(
			`{"spec":{"updateStrategy":{"rollingUpdate":{"maxSurge":"100%","maxUnavailable":0}},"template":{"metadata":{"annotations":{"integration/version":"2"}}}}}`,
		), metav1.PatchOptions{}))(e)
		young := part.awaitWaiting("updated", len(nodes))
		part.deleteAll("updated", false, old)
		part.expectOpenBeside("update", nodes, old, young, "longer than a hold")
	})
	e.expectBooks()
}

// TestPodsDeletedWithALongGrace: a tenant deletes its pods with a grace period of a year. They
// do not stop before it is over, and are preempted all the same, for a queue below its
// guarantee and for a DaemonSet.
func TestPodsDeletedWithALongGrace(t *testing.T) {
	e := setup(t, graceQueues, preemption("retryInterval", "1s"))
	for _, daemons := range []bool{false, true} {
		name := fmt.Sprintf("daemons-%t", daemons)
		e.run(name, func(e *env) {
			part := e.apart(name, 0, localcluster.NodeSpec{})
			nodes := part.addNodes(1, localcluster.NodeSpec{CPU: "4"})
			old := part.onEachNode(name+"-old", false, nodes, []podOption{inQueue("root.evil"), requests("cpu", "3"), staysFor(year), withGrace(2)})[0]
			part.awaitRunning(old)
			seconds := int64(year / time.Second)
			e.ok(suite.client.CoreV1().Pods(old.Namespace).Delete(t.Context(), old.Name, metav1.DeleteOptions{GracePeriodSeconds: &seconds}))
			part.awaitPod(old, "terminates", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
			for _, p := range part.onEachNode(name+"-new", daemons, nodes, []podOption{inQueue("root.owed"), requests("cpu", "3")}) {
				part.awaitRunning(p)
			}
		})
	}
	e.expectBooks()
}

// TestPodsDoNotWaitForVictimsThatStay: a pod has pods with a grace period of a year preempted,
// which do not stop. When its hold times out, it is placed on the node that became empty
// meanwhile.
func TestPodsDoNotWaitForVictimsThatStay(t *testing.T) {
	e := setup(t, graceQueues, preemption("retryInterval", "1s"), reservation("reservationTimeout", "5s"))
	nodes := e.useNodes(2, localcluster.NodeSpec{CPU: "4"})
	e.fill("lent", 2, inQueue("root.evil"), requests("cpu", "2"), staysFor(year), onNode(nodes[0]))
	e.fill("team", 2, inQueue("root.team"), requests("cpu", "2"), onNode(nodes[1]))
	asker := e.create("asker", 1, inQueue("root.owed"), requests("cpu", "3"))[0]
	e.awaitHeld(asker, reasons.MakingRoom)
	team, _ := e.podsOf("team")
	for _, p := range team {
		e.endAtOnce(p)
	}
	e.awaitRunning(asker)
	if now := e.get(asker); now.Spec.NodeName != nodes[1] {
		t.Errorf("the pod runs on node %s, where its victims are", now.Spec.NodeName)
	}
	lent, _ := e.podsOf("lent")
	if len(lent) != 2 {
		t.Errorf("%d of 2 victims are left, so it was not shown that the pod waits for none", len(lent))
	}
	e.expectBooks()
}

// TestMaxVictimGraceBoundsDeletes: victims have a grace period of a year, and stop after
// maxVictimGrace.
func TestMaxVictimGraceBoundsDeletes(t *testing.T) {
	e := setup(t, graceQueues, preemption("retryInterval", "1s"), reservation("maxVictimGrace", "2s"))
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	c := e.keepHistory()
	e.fill("lent", 2, inQueue("root.evil"), requests("cpu", "2"), staysFor(year))
	e.awaitRunning(e.create("asker", 1, inQueue("root.owed"), requests("cpu", "3"))[0])
	for _, v := range c.expectEvicted("lent", 2) {
		s := c.first(v.pod.UID, func(s sight) bool { return s.pod.DeletionTimestamp != nil })
		if grace := *s.pod.DeletionGracePeriodSeconds; grace != 2 {
			t.Errorf("pod %s was deleted with a grace period of %d s, want 2", v.pod.Name, grace)
		}
	}
	e.expectBooks()
}

// expectOpenBeside checks that the nodes are open while the old pods terminate there, and
// that the new pods wait and say why.
func (e *env) expectOpenBeside(name string, nodes []string, old, young []*corev1.Pod, says string) {
	e.Helper()
	for _, p := range young {
		e.awaitTold(p, says)
	}
	e.expectOpen(name, nodes)
	for _, p := range old {
		if now := e.get(p); now.UID != p.UID || now.DeletionTimestamp == nil {
			e.Errorf("pod %s does not terminate any more, so it was not shown that others are placed beside it", p.Name)
		}
	}
	for _, p := range young {
		if node := e.get(p).Spec.NodeName; node != "" {
			e.Errorf("pod %s runs on node %s beside the pod that it has to wait for", p.Name, node)
		}
	}
}

func samePort(string) podOption { return withHostPort }

// forged pods have the same port, and name a DaemonSet that does not exist.
func forged(string) podOption {
	return func(p *corev1.Pod) {
		withHostPort(p)
		saysItIsOf("fake.example/v1", "DaemonSet", "x", "11111111-1111-1111-1111-111111111111")(p)
	}
}

// onEachNode makes one pod of a group for each node, by a DaemonSet or one by one, and
// returns the pods once they are there.
func (e *env) onEachNode(of string, daemons bool, nodes []string, options []podOption) []*corev1.Pod {
	e.Helper()
	if daemons {
		e.createDaemonSet(of, options...)
	} else {
		for i, node := range nodes {
			e.createPod(e.pod(fmt.Sprintf("%s-%d", of, i), of, append(slices.Clone(options), requiresNode(node))...))
		}
	}
	var pods []*corev1.Pod
	eventually(e, patience, fmt.Sprintf("group %s has %d pods", of, len(nodes)), func() (bool, string) {
		running, waiting := e.podsOf(of)
		pods = append(running, waiting...)
		return len(pods) == len(nodes), fmt.Sprint(len(pods))
	})
	return pods
}

// deleteAll deletes the running pods of a group, with their DaemonSet if they have one,
// and waits until all of them terminate.
func (e *env) deleteAll(of string, daemons bool, pods []*corev1.Pod) {
	e.Helper()
	for _, p := range pods {
		e.awaitRunning(p)
	}
	if daemons {
		e.ok(suite.client.AppsV1().DaemonSets(e.ns).Delete(e.Context(), of, inBackground()))
	} else {
		for _, p := range pods {
			e.delete(p)
		}
	}
	for _, p := range pods {
		e.awaitPod(p, "terminates", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	}
}

// expectOpen checks that pods of two other queues and of the other profile run on each
// node, and that no node is held or was held.
func (e *env) expectOpen(name string, nodes []string) {
	e.Helper()
	var others []*corev1.Pod
	for i, node := range nodes {
		for from, option := range map[string]podOption{
			"plain": ofProfile(corev1.DefaultSchedulerName), "team": inQueue("root.team"), "other": inQueue("root.other"),
		} {
			of := name + "-" + from
			others = append(others, e.createPod(e.pod(fmt.Sprintf("%s-%d", of, i), of, option, requests("cpu", "500m"), onNode(node))))
		}
	}
	for _, p := range others {
		e.awaitRunning(p)
	}
	var holds documents.Holds
	e.own("holds", &holds)
	for _, h := range holds.Holds {
		if slices.Contains(nodes, h.Node) {
			e.Errorf("node %s is held for %s, %s, which waits for %+v", h.Node, h.Asker.Name, h.State, h.WaitsFor)
		}
	}
	for _, h := range holds.Ended {
		if slices.Contains(nodes, h.Node) {
			e.Errorf("node %s was held for %s: %s", h.Node, h.Asker.Name, h.Message)
		}
	}
}
