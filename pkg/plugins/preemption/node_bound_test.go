package preemption_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
)

// bothProfiles runs a test for pods of queues, and for pods of a profile without them.
func bothProfiles(t *testing.T, test func(t *testing.T, profile string)) {
	for _, profile := range []string{plugintest.Profile, corev1.DefaultSchedulerName} {
		t.Run(profile, func(t *testing.T) { test(t, profile) })
	}
}

// TestRoomOnTheOnlyNode: for a DaemonSet pod, victims are chosen at once, on its node and
// on no other, whatever the guaranteed share of its queue.
func TestRoomOnTheOnlyNode(t *testing.T) {
	bothProfiles(t, func(t *testing.T, profile string) {
		c := newCluster(t, twoQueues, nodeList{node("n1", 220), node("n2", 200)}, podList{
			running("v1", "n1", 100), running("v2", "n1", 100), prioritized(running("v3", "n2", 100), -5),
		})
		asker := of(profile, daemon("asker", "n1", 50))
		c.answers(t, asker, "n1", "MakingRoom: node n1, the only one the pod can run on", "v1")
		// A second call before any victim is gone chooses no further victims.
		c.answers(t, asker, "n1", "")
		// No other pod is placed there, of any profile.
		info := expect.Get(c.SnapshotSharedLister().NodeInfos().Get("n1"))(t)
		for _, other := range []*corev1.Pod{plugintest.Pod("w", 10), plugintest.Foreign(plugintest.Pod("f", 10))} {
			state := framework.NewCycleState()
			if _, status, _ := c.RunPreFilterPlugins(t.Context(), state, other); other.Name == "f" && !status.IsSuccess() {
				t.Fatal(status)
			}
			status := c.RunFilterPlugins(t.Context(), state, other, info)
			plugintest.WantStatus(t, other.Name, status, fwk.UnschedulableAndUnresolvable, "held for pod ns/asker")
		}
	})
}

// TestDefaultPreemptionDoesNotFollow: where this process preempts for pods of default-scheduler,
// its rejection is final. DefaultPreemption, which comes next in that profile, would take
// pods that are never preempted for a DaemonSet (D4).
func TestDefaultPreemptionDoesNotFollow(t *testing.T) {
	bothProfiles(t, func(t *testing.T, profile string) {
		kept := plugintest.On(prioritized(daemon("kept", "n1", 100), -5), "n1")
		c := newCluster(t, twoQueues, nodeList{node("n1", 100)}, podList{kept})
		asker := of(profile, daemon("asker", "n1", 50))
		asker.Status.NominatedNodeName = "n1" // from before
		state, statuses := c.fail(t, asker)
		result, status := c.RunPostFilterPlugins(t.Context(), state, asker, statuses)
		expect.That(t, status.Plugin() == preemption.Name && strings.Contains(status.Message(), "RoomImpossible"),
			"%s says %q", status.Plugin(), status.Message())
		expect.That(t, result != nil && result.Mode() == fwk.ModeOverride && result.NominatedNodeName == "",
			"the nomination is %+v", result)
		expect.Same(t, "chosen", []string(nil), c.chosen())
	})
}

// TestHoldersBeforeThePodAreCounted: the second pod that requires a node is judged as if the
// first one was placed, with its ports. A pod of a higher priority is judged without it.
func TestHoldersBeforeThePodAreCounted(t *testing.T) {
	c := newCluster(t, twoQueues, nodeList{node("n1", 400)}, podList{
		prioritized(running("v1", "n1", 100), -1), running("v2", "n1", 100), running("v3", "n1", 200),
	})
	c.answers(t, withPort(daemon("first", "n1", 100), 80), "n1", "", "v1")
	// v2 covers the need as v3 does, and has the smaller UID.
	c.answers(t, daemon("second", "n1", 100), "n1", "", "v2")
	// The first pod uses its port and may not be preempted.
	c.answers(t, withPort(daemon("third", "n1", 50), 80), "", "RoomImpossible")
	c.answers(t, prioritized(withPort(daemon("urgent", "n1", 50), 80), 9), "n1", "WaitingForRoom")
	var order []string
	for _, h := range c.store.Holds().Beside("uid-urgent") {
		order = append(order, h.Name)
	}
	expect.Same(t, "behind the urgent one", []string{"first", "second"}, order)
}

// TestDeletedPodInTheSnapshotTakesNoPlace: a pod that is gone, and that the scheduler's snapshot
// still has, takes no place.
func TestDeletedPodInTheSnapshotTakesNoPlace(t *testing.T) {
	gone := withPort(running("gone", "n1", 100), 80)
	c := newCluster(t, twoQueues, nodeList{node("n1", 200)}, podList{gone, running("v1", "n1", 50)})
	c.ends(t, gone)
	c.answers(t, withPort(daemon("asker", "n1", 100), 80), "n1", "WaitingForRoom")
}

// TestPodsOnlyTheSchedulerHas: a pod that the scheduler has assumed on the node uses the
// node, although the store has not heard of it, and is not a victim.
func TestPodsOnlyTheSchedulerHas(t *testing.T) {
	c := newCluster(t, twoQueues, nodeList{node("n1", 300)}, two())
	assumed := plugintest.Foreign(plugintest.Pod("assumed", 100))
	c.known(t, assumed)
	c.onSnapshot(t, assumed)
	c.answers(t, daemon("asker", "n1", 200), "n1", "", "v1", "v2")
	c.answers(t, daemon("larger", "n1", 300), "", "RoomImpossible")
}

// TestNominatedPodsDoNotCountOnAHeldNode: a pod nominated to the node does not count as if it ran there
// once a node-bound pod holds the node.
func TestNominatedPodsDoNotCountOnAHeldNode(t *testing.T) {
	c := newCluster(t, twoQueues, nodeList{node("n1", 100)}, podList{running("v1", "n1", 100)})
	asker := daemon("asker", "n1", 100)
	c.answer(t, asker)
	for _, name := range []string{"asker", "nominee"} {
		nominee := plugintest.Pod(name, 100)
		c.known(t, nominee)
		c.nominate(t, nominee)
	}
	expect.Same(t, "nominated to the node", []string{"asker"}, c.nominated(t, asker))
}

// TestAnotherPluginRefusesTheDaemonSetPod: a PreFilter plugin refuses a DaemonSet pod, and its Filter,
// which has no state then, passes. The node is not held, with room on it or not, and no pod is
// preempted. An earlier hold ends. When the refusal ends, the pod gets its room.
func TestAnotherPluginRefusesTheDaemonSetPod(t *testing.T) {
	bothProfiles(t, func(t *testing.T, profile string) {
		for _, milliCPU := range []int64{50, 150} { // with room, and without
			c := newCluster(t, twoQueues, nodeList{node("n1", 200)}, podList{running("v1", "n1", 100)})
			asker := of(profile, daemon("asker", "n1", milliCPU))
			refused := labelled(asker.DeepCopy(), "refused", "")
			wantRefused := func() {
				t.Helper()
				c.answers(t, refused, "", "RoomImpossible")
				expect.That(t, !c.store.Holds().Held() && !c.store.AnyNodeBound(), "%dm: the node is kept", milliCPU)
			}
			wantRefused()
			if milliCPU == 50 {
				continue // it fits, and no filter refuses it
			}
			c.answers(t, asker, "n1", "", "v1")
			wantRefused()
		}
	})
}
