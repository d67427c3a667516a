package preemption_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

func TestPostFilterMakesRoom(t *testing.T) {
	c, asker := oneVictimOrTwo(t), plugintest.Pod("asker", 150)
	c.answers(t, asker, "n1", "MakingRoom: node n1 is held for the pod", "v1")
	h, _ := c.store.Holds().Of(asker.UID)
	expect.Same(t, "the held node", "n1", h.Node)
	// A second call before any victim is gone leaves the nomination, and chooses no further victims.
	state, statuses := c.fail(t, asker)
	result, status := c.postFilter(t, preemption.Name).PostFilter(t.Context(), state, asker, statuses)
	expect.That(t, result == nil, "%v, want that it waits", result)
	c.says(t, status, fwk.UnschedulableAndUnresolvable, "MakingRoom")
}

// TestAMemberThatWaitsForRoomTakesNoPlacesBack: a member of a PodGroup fits once the victim
// of another member is gone. No plugin behind is asked: the one for PodGroups would take
// the places of the others back.
func TestAMemberThatWaitsForRoomTakesNoPlacesBack(t *testing.T) {
	for group, want := range map[string]fwk.Code{"": fwk.Unschedulable, "g": fwk.UnschedulableAndUnresolvable} {
		t.Run("PodGroup "+group, func(t *testing.T) {
			c := fullNode(t)
			first, second := plugintest.Pod("first", 100), plugintest.Pod("second", 100)
			if group != "" {
				c.store.FollowPodGroups()
				first.Labels[objects.PodGroupLabel], second.Labels[objects.PodGroupLabel] = group, group
				c.store.SetPodGroup(first.Namespace, group, 2, c.now)
			}
			c.store.Upsert(c.translate(second), c.now)
			c.answers(t, first, "n1", "MakingRoom: node n1 is held for the pod", "v1")
			_, status := c.answer(t, second)
			c.says(t, status, want, "WaitingForRoom: ")
		})
	}
}

// TestTheRealFiltersJudge: ports, volumes and taints are checked by the filters, for pods of queues and
// for DaemonSet pods on their only node. TestScenarios has affinity and topology spread.
func TestTheRealFiltersJudge(t *testing.T) {
	queued := func() *corev1.Pod { return plugintest.Pod("asker", 100) }
	agent := func() *corev1.Pod { return daemon("asker", "n1", 100) }
	n1, n2, full, bad := node("n1", 400), node("n2", 200), node("n1", 200), tainted("n1", 400)
	v1, large := running("v1", "n1", 100), running("v1", "n1", 400)
	port, disk := withPort(running("v2", "n1", 100), 80), withDisk(running("v2", "n1", 100))
	urgent := prioritized(withPort(running("v2", "n1", 100), 80), 7)
	for _, c := range []struct {
		name  string
		nodes nodeList
		pods  podList
		asker *corev1.Pod
		on    string // the node that is held, for which v2 is chosen
		why   string // why none is
	}{
		{"a port", nodeList{n1}, podList{v1, port}, withPort(queued(), 80), "n1", ""},
		{"a volume", nodeList{n1}, podList{v1, disk}, withDisk(queued()), "n1", ""},
		{"a taint", nodeList{bad, n2}, podList{large, running("v2", "n2", 200)}, queued(), "n2", ""},
		{"the only node, a port", nodeList{n1}, podList{v1, port}, withPort(agent(), 80), "n1", ""},
		{"the only node, room and a port", nodeList{full}, podList{v1, port}, withPort(agent(), 80), "n1", ""},
		{"the only node, the port of a pod that may not go", nodeList{n1}, podList{urgent},
			withPort(agent(), 80), "", "RoomImpossible"},
		{"the only node, a volume", nodeList{n1}, podList{v1, disk}, withDisk(agent()), "n1", ""},
		{"the only node, a taint", nodeList{bad}, podList{large}, agent(), "", "RoomImpossible"},
		{"the only node, a pod of higher priority", nodeList{node("n1", 100)}, podList{urgent},
			agent(), "", "higher priority than the asker's: 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := newCluster(t, twoQueues, c.nodes, c.pods)
			var chosen []string
			if c.on != "" {
				chosen = []string{"v2"}
			}
			cl.answers(t, c.asker, c.on, c.why, chosen...)
			expect.Same(t, "held", c.on != "", cl.store.Holds().Held())
		})
	}
}

// below is twoQueues, with queues p.a and p.b beside them, and a max of p in cores.
func below(most int) string {
	return twoQueues + fmt.Sprintf(`    - name: p
      resources: {max: {vcore: %d}}
      queues:
      - {name: a, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 1}}}
      - {name: b}
`, most)
}

// TestPlanRunsFiltersAfterARefusedPreFilter: PreFilter rejects, so the filters did not run for the nodes; the plan
// runs them.
func TestPlanRunsFiltersAfterARefusedPreFilter(t *testing.T) {
	c := newCluster(t, below(1), nodeList{tainted("n1", 4000), node("n2", 1000)}, podList{
		labelled(running("v1", "n1", 1000), "queue", "root.p.b"),
	})
	asker := labelled(plugintest.Pod("asker", 100), "queue", "root.p.a")
	c.answers(t, asker, "n2", "MakingRoom: node n2", "v1")
}

// TestManyNodesRefuse: a plan may run the filters for a hundred nodes. If more of them
// reject, the one that accepts is still found.
func TestManyNodesRefuse(t *testing.T) {
	var all nodeList
	var placed podList
	for i := range 260 {
		n := node(fmt.Sprintf("n%03d", i), 1000)
		n.Labels["last"] = fmt.Sprint(i == 259)
		v := running(fmt.Sprintf("v%03d", i), n.Name, 1000)
		all, placed = append(all, n), append(placed, labelled(v, "queue", "root.p.b"))
	}
	asker := labelled(plugintest.Pod("asker", 100), "queue", "root.p.a")
	selective := asker.DeepCopy()
	selective.Spec.NodeSelector = map[string]string{"last": "true"}
	for _, most := range []int{260, 1000} { // the max is exceeded, or only the nodes are full
		c := newCluster(t, below(most), all, placed)
		c.answers(t, selective.DeepCopy(), "n259", "MakingRoom: node n259", "v259")
	}

	// Protected pods keep the asker off all nodes except the last, by a rejection that
	// the filters do not report as final.
	for i := range 259 {
		p := running(fmt.Sprintf("k%03d", i), all[i].Name, 0)
		placed = append(placed, of("somebody", labelled(p, "keeps", "off")))
	}
	c := newCluster(t, below(1000), all, placed)
	c.answers(t, apart(asker, "keeps", "off"), "", "the filters refuse the nodes that preemption could make room on, "+
		"whichever pods go: n000, n001, n002 and 47 more; other nodes are looked at next")
}

// TestHoldersShareANode: a plan may join the holders of a node, because it counts the
// pods that they wait for. The holders do not block each other when their turn comes.
func TestHoldersShareANode(t *testing.T) {
	c := newCluster(t, twoQueues, nodeList{node("n1", 200)}, two())
	first, second := plugintest.Pod("first", 100), plugintest.Pod("second", 100)
	c.answers(t, first, "n1", "MakingRoom: node n1", "v1")
	c.answers(t, second, "n1", "MakingRoom: node n1", "v2")
	c.answers(t, plugintest.Pod("third", 100), "", "PreemptionRefused") // no capacity is left
	c.nominate(t, first)
	c.nominate(t, second)
	expect.Same(t, "nominated, in a cycle of the first pod", []string{"first"}, c.nominated(t, first))
}

// TestPodsInPermit: a pod that waits in Permit is a victim like any other; a pod that is
// being bound is not.
func TestPodsInPermit(t *testing.T) {
	for _, waits := range []bool{false, true} {
		c, v := newCluster(t, twoQueues, nodeList{node("n1", 200)}, nil), ofB("v", 200)
		c.store.Upsert(c.translate(v), c.now)
		c.store.Gate(v.UID, c.now)
		if verdict := c.store.Assume(v.UID, "n1", store.NoSnapshot, c.now); !verdict.OK() {
			t.Fatal(verdict.Reason)
		}
		c.onSnapshot(t, v)
		if !waits {
			c.answers(t, plugintest.Pod("asker", 200), "", "PreemptionRefused")
			continue
		}
		if status := c.RunPermitPlugins(t.Context(), framework.NewCycleState(), v, "n1"); !status.IsWait() {
			t.Fatal(status)
		}
		c.answers(t, plugintest.Pod("asker", 200), "n1", "", "v")
	}
}

// nominations are the pods nominated to nodes, as the scheduler's queue knows them.
type nominations struct {
	fwk.PodNominator
	on map[string][]fwk.PodInfo
}

func (n nominations) NominatedPodsForNode(node string) []fwk.PodInfo { return n.on[node] }

// TestNominatedPodsCount: a plan does not use capacity for which a pod is nominated to
// the node. The store does not know of the nomination: by its numbers the asker fits.
func TestNominatedPodsCount(t *testing.T) {
	info := expect.Get(framework.NewPodInfo(plugintest.Foreign(plugintest.Pod("nominated", 100))))(t)
	c := newCluster(t, twoQueues, nodeList{node("n1", 300)}, two(),
		frameworkruntime.WithPodNominator(nominations{on: map[string][]fwk.PodInfo{"n1": {info}}}))
	c.answers(t, plugintest.Pod("asker", 100), "n1", "MakingRoom: node n1 is held for the pod", "v1")
}

// TestEndedPodsAreNotCountedOnTheNode: next to a pod that ended during the cycle, one victim
// is enough; two would be chosen if the ended pod was counted. The same holds if the
// store knows of a newer pod on the node, so that store and snapshot have equally many.
func TestEndedPodsAreNotCountedOnTheNode(t *testing.T) {
	for _, came := range []*corev1.Pod{nil, running("v4", "n1", 0)} {
		ended := running("v0", "n1", 100)
		c := newCluster(t, twoQueues, nodeList{node("n1", 300)}, append(two(), ended))
		if came != nil {
			c.seen(t, came)
		}
		on, status := c.answer(t, plugintest.Pod("asker", 200), ended)
		expect.Same(t, "held", "n1", on)
		c.says(t, status, fwk.UnschedulableAndUnresolvable, "MakingRoom: node n1 is held for the pod", "v1")
	}
}

// TestRoomThatCameByItself: capacity that became free during a cycle is not held for the pod that was
// tried, because other pods may be before it. The pod is tried again in its turn.
func TestRoomThatCameByItself(t *testing.T) {
	ended := running("v1", "n1", 100)
	c := twoNodes(t, podList{ended, running("v2", "n1", 100), running("v3", "n2", 200)})
	asker := plugintest.Pod("asker", 100)
	on, status := c.answer(t, asker, ended)
	expect.Same(t, "held", "", on)
	c.says(t, status, fwk.Unschedulable,
		"pods on node n1 ended while this pod was tried; it is tried again in its turn")
	_, holds := c.store.Holds().Of(asker.UID)
	expect.Same(t, "it holds a node", false, holds)
	expect.Says(t, c.store.Explain(asker.UID).Text, "Insufficient cpu")
	// If other pods use the capacity by then, victims are chosen.
	c.seen(t, running("v4", "n1", 100))
	time.Sleep(time.Second) // plans are at least this far apart
	on, status = c.answer(t, asker)
	expect.That(t, on != "", "no room is made for it: %v", status)
}

// TestBoundWhileItIsPlannedFor: a plan for a pod that another scheduler binds meanwhile
// has no effect, whatever its result.
func TestBoundWhileItIsPlannedFor(t *testing.T) {
	for _, outcome := range []planner.Outcome{planner.Refuse, planner.Wait} {
		t.Run(string(outcome), func(t *testing.T) {
			c, asker := fullNode(t), plugintest.Pod("asker", 100)
			c.fail(t, asker)
			input, why := c.store.BeginPlan(asker.UID, "", nil, c.now)
			if input == nil {
				t.Fatal(why)
			}
			c.store.Upsert(c.translate(plugintest.On(asker.DeepCopy(), "n1")), c.now)
			why = c.store.RejectPlan(asker.UID, &planner.Decision{Ask: input.Ask, Outcome: outcome, Node: "n1"}, c.now)
			expect.Same(t, "why", "the pod has a node", why.Text)
			expect.Holds(t, c.store.Check())
		})
	}
}

// twoQueues: queue a is guaranteed what b uses.
const twoQueues = `
partitions:
- name: default
  placementrules: [{name: provided}]
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: a, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 1000}}}
    - {name: b}
`

const podsOnNode = 30

// crowd returns nodes full of small pods of queue b.
func crowd(nodes int) ([]*corev1.Node, []*corev1.Pod) {
	var objects []*corev1.Node
	var pods []*corev1.Pod
	for n := range nodes {
		name := fmt.Sprintf("node-%05d", n)
		objects = append(objects, node(name, podsOnNode*100))
		for i := range podsOnNode {
			p := running(fmt.Sprintf("p-%05d-%02d", n, i), name, 100)
			p.Labels["applicationId"] = fmt.Sprintf("app-%d", n%100)
			p.CreationTimestamp = metav1.NewTime(time.Unix(int64(n*podsOnNode+i), 0))
			p.Status.StartTime = &p.CreationTimestamp
			pods = append(pods, p)
		}
	}
	return objects, pods
}

// BenchmarkPostFilter compares the whole PostFilter with upstream's DefaultPreemption, in
// one run. Both find victims, because the victims also have a lower priority. Each asker
// needs the capacity of two pods.
func BenchmarkPostFilter(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		objects, pods := crowd(nodes)
		c := newCluster(b, twoQueues, objects, pods)
		asker := prioritized(plugintest.Pod("asker", 200), 10)
		for _, name := range []string{preemption.Name, "DefaultPreemption"} {
			plugin := c.postFilter(b, name)
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, name), func(b *testing.B) { c.measure(b, plugin, asker) })
		}
	}
}

// measure makes room for a pod again and again.
func (c *cluster) measure(b *testing.B, plugin fwk.PostFilterPlugin, asker *corev1.Pod) {
	for range b.N {
		b.StopTimer()
		c.store.Delete(asker.UID, c.now)
		c.store.TakeWork()
		asker.UID += "x" // a new one each time
		state, statuses := c.fail(b, asker)
		b.StartTimer()
		result, status := plugin.PostFilter(b.Context(), state, asker, statuses)
		if result == nil || result.NominatedNodeName == "" {
			b.Fatalf("%v: %v", result, status)
		}
	}
}

// BenchmarkPostFilterThere measures the whole PostFilter for a DaemonSet pod on a full
// node. Its cost must not grow with the cluster.
func BenchmarkPostFilterThere(b *testing.B) {
	for _, nodes := range []int{100, 5000} {
		objects, pods := crowd(nodes)
		c := newCluster(b, twoQueues, objects, pods)
		plugin := c.postFilter(b, preemption.Name)
		asker := daemon("asker", objects[nodes/2].Name, 200)
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			b.ReportAllocs()
			c.measure(b, plugin, asker)
		})
	}
}
