package preemption_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
)

// daemon is a DaemonSet pod for a node, of queue b.
func daemon(name, node string, milliCPU int64) *corev1.Pod {
	p := plugintest.Pod(name, milliCPU)
	p.Labels = map[string]string{"queue": "root.b", "applicationId": name}
	return plugintest.Daemon(p, node)
}

func withPort(p *corev1.Pod, port int32) *corev1.Pod {
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port, Protocol: corev1.ProtocolTCP}}
	return p
}

func withDisk(p *corev1.Pod) *corev1.Pod {
	p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{
		GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk"},
	}}}
	return p
}

func prioritized(p *corev1.Pod, priority int32) *corev1.Pod {
	p.Spec.Priority = &priority
	return p
}

// TestRoomOnTheOnlyNode: for a DaemonSet pod, victims are chosen at once, on its node and
// on no other, whatever the guaranteed share of its queue.
func TestRoomOnTheOnlyNode(t *testing.T) {
	for _, profile := range []string{plugintest.Profile, corev1.DefaultSchedulerName} {
		t.Run(profile, func(t *testing.T) {
			c := newCluster(t, twoQueues, []*corev1.Node{node("n1", 220), node("n2", 200)}, []*corev1.Pod{
				running("v1", "n1", 100), running("v2", "n1", 100), prioritized(running("v3", "n2", 100), -5),
			})
			asker := daemon("asker", "n1", 50)
			asker.Spec.SchedulerName = profile
			on, status := c.answer(t, asker)
			wantAnswer(t, on, status, "n1", fwk.UnschedulableAndUnresolvable, "MakingRoom: node n1, the only one the pod can run on")
			if got := c.chosen(); len(got) != 1 || got[0] == "v3" {
				t.Errorf("chosen %v, want one of node n1", got)
			}
			// A second call before any victim is gone chooses no further victims.
			on, status = c.answer(t, asker)
			wantAnswer(t, on, status, "n1", fwk.UnschedulableAndUnresolvable, "MakingRoom")
			c.wantChosen(t)
			// No other pod is placed there, of any profile.
			for _, other := range []*corev1.Pod{plugintest.Pod("w", 10), plugintest.Foreign(plugintest.Pod("f", 10))} {
				info := expect.Get(c.SnapshotSharedLister().NodeInfos().Get("n1"))(t)
				state := framework.NewCycleState()
				if _, status, _ := c.RunPreFilterPlugins(t.Context(), state, other); other.Name == "f" && !status.IsSuccess() {
					t.Fatal(status)
				}
				status := c.RunFilterPlugins(t.Context(), state, other, info)
				if status.Code() != fwk.UnschedulableAndUnresolvable || !strings.Contains(status.Message(), "held for pod ns/asker") {
					t.Errorf("pod %s: %v", other.Name, status)
				}
			}
		})
	}
}

// TestDefaultPreemptionDoesNotFollow: where this process preempts for pods of default-scheduler,
// its rejection is final. DefaultPreemption, which comes next in that profile, would take
// pods that are never preempted for a DaemonSet (D4).
func TestDefaultPreemptionDoesNotFollow(t *testing.T) {
	kept := prioritized(daemon("kept", "n1", 100), -5)
	kept.Spec.NodeName = "n1"
	for _, profile := range []string{plugintest.Profile, corev1.DefaultSchedulerName} {
		c := newCluster(t, twoQueues, []*corev1.Node{node("n1", 100)}, []*corev1.Pod{kept})
		asker := daemon("asker", "n1", 50)
		asker.Spec.SchedulerName = profile
		asker.Status.NominatedNodeName = "n1" // from before
		state, statuses := c.fail(t, asker)
		result, status := c.RunPostFilterPlugins(t.Context(), state, asker, statuses)
		if status.Plugin() != preemption.Name || !strings.Contains(status.Message(), "RoomImpossible") {
			t.Errorf("%s: %s says %q", profile, status.Plugin(), status.Message())
		}
		if result == nil || result.Mode() != fwk.ModeOverride || result.NominatedNodeName != "" {
			t.Errorf("%s: the nomination is %+v", profile, result)
		}
		c.wantChosen(t)
	}
}

// TestTheRealFiltersJudgeTheOnlyNode: ports, volumes and taints are checked by the
// filters.
func TestTheRealFiltersJudgeTheOnlyNode(t *testing.T) {
	tainted := node("n1", 400)
	tainted.Spec.Taints = []corev1.Taint{{Key: "mine", Effect: corev1.TaintEffectNoSchedule}}
	for _, c := range []struct {
		name   string
		node   *corev1.Node
		pods   []*corev1.Pod
		asker  *corev1.Pod
		on     string
		text   string
		chosen []string
	}{
		{"a port", node("n1", 400), []*corev1.Pod{running("v1", "n1", 100), withPort(running("v2", "n1", 100), 80)},
			withPort(daemon("asker", "n1", 100), 80), "n1", "MakingRoom", []string{"v2"}},
		{"room and a port", node("n1", 200), []*corev1.Pod{running("v1", "n1", 100), withPort(running("v2", "n1", 100), 80)},
			withPort(daemon("asker", "n1", 100), 80), "n1", "MakingRoom", []string{"v2"}},
		{"the port of a pod that may not go", node("n1", 400), []*corev1.Pod{withPort(prioritized(running("v2", "n1", 100), 7), 80)},
			withPort(daemon("asker", "n1", 100), 80), "", "RoomImpossible", nil},
		{"a volume", node("n1", 400), []*corev1.Pod{running("v1", "n1", 100), withDisk(running("v2", "n1", 100))},
			withDisk(daemon("asker", "n1", 100)), "n1", "MakingRoom", []string{"v2"}},
		{"a taint", tainted, []*corev1.Pod{running("v1", "n1", 400)}, daemon("asker", "n1", 100), "", "RoomImpossible", nil},
		{"a pod of higher priority", node("n1", 100), []*corev1.Pod{prioritized(running("v1", "n1", 100), 7)},
			daemon("asker", "n1", 100), "", "higher priority than the asker's: 1", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := newCluster(t, twoQueues, []*corev1.Node{c.node}, c.pods)
			on, status := cl.answer(t, c.asker)
			wantAnswer(t, on, status, c.on, fwk.UnschedulableAndUnresolvable, c.text)
			cl.wantChosen(t, c.chosen...)
			expect.Same(t, "held", c.on != "", cl.store.Holds().Held())
		})
	}
}

// TestHoldersBeforeThePodAreCounted: the second pod that requires a node is judged as if the
// first one was placed, with its ports. A pod of a higher priority is judged without it.
func TestHoldersBeforeThePodAreCounted(t *testing.T) {
	c := newCluster(t, twoQueues, []*corev1.Node{node("n1", 400)}, []*corev1.Pod{
		prioritized(running("v1", "n1", 100), -1), running("v2", "n1", 100), running("v3", "n1", 200),
	})
	_, status := c.answer(t, withPort(daemon("first", "n1", 100), 80))
	wantAnswer(t, "", status, "", fwk.UnschedulableAndUnresolvable, "MakingRoom")
	c.wantChosen(t, "v1")
	_, status = c.answer(t, daemon("second", "n1", 100))
	wantAnswer(t, "", status, "", fwk.UnschedulableAndUnresolvable, "MakingRoom")
	c.wantChosen(t, "v2") // it covers the need as v3 does, and has the smaller UID
	// The first pod uses its port and may not be preempted.
	on, status := c.answer(t, withPort(daemon("third", "n1", 50), 80))
	wantAnswer(t, on, status, "", fwk.UnschedulableAndUnresolvable, "RoomImpossible")
	on, status = c.answer(t, prioritized(withPort(daemon("urgent", "n1", 50), 80), 9))
	wantAnswer(t, on, status, "n1", fwk.UnschedulableAndUnresolvable, "WaitingForRoom")
	c.wantChosen(t)
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
	c := newCluster(t, twoQueues, []*corev1.Node{node("n1", 200)}, []*corev1.Pod{gone, running("v1", "n1", 50)})
	expect.OK(t, c.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer().Delete(gone))
	c.store.Delete(gone.UID, c.now)
	on, status := c.answer(t, withPort(daemon("asker", "n1", 100), 80))
	wantAnswer(t, on, status, "n1", fwk.UnschedulableAndUnresolvable, "WaitingForRoom")
	c.wantChosen(t)
}

// TestPodsOnlyTheSchedulerHas: a pod that the scheduler has assumed on the node uses the
// node, although the store has not heard of it, and is not a victim.
func TestPodsOnlyTheSchedulerHas(t *testing.T) {
	c := newCluster(t, twoQueues, []*corev1.Node{node("n1", 300)}, []*corev1.Pod{running("v1", "n1", 100), running("v2", "n1", 100)})
	assumed := plugintest.Foreign(plugintest.Pod("assumed", 100))
	c.known(t, assumed)
	info := expect.Get(c.SnapshotSharedLister().NodeInfos().Get("n1"))(t)
	pi := expect.Get(framework.NewPodInfo(plugintest.On(assumed.DeepCopy(), "n1")))(t)
	info.AddPodInfo(pi)
	on, status := c.answer(t, daemon("asker", "n1", 200))
	wantAnswer(t, on, status, "n1", fwk.UnschedulableAndUnresolvable, "MakingRoom")
	c.wantChosen(t, "v1", "v2")
	on, status = c.answer(t, daemon("larger", "n1", 300))
	wantAnswer(t, on, status, "", fwk.UnschedulableAndUnresolvable, "RoomImpossible")
}

// TestNominatedPodsDoNotCountOnAHeldNode: a pod nominated to the node does not count as if it ran there
// once a node-bound pod holds the node.
func TestNominatedPodsDoNotCountOnAHeldNode(t *testing.T) {
	c := newCluster(t, twoQueues, []*corev1.Node{node("n1", 100)}, []*corev1.Pod{running("v1", "n1", 100)})
	asker := daemon("asker", "n1", 100)
	c.answer(t, asker)
	for _, name := range []string{"asker", "nominee"} {
		nominee := plugintest.Pod(name, 100)
		info := expect.Get(framework.NewPodInfo(nominee))(t)
		c.known(t, nominee)
		c.AddNominatedPod(klog.Background(), info, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: "n1"})
	}
	if _, status, _ := c.RunPreFilterPlugins(t.Context(), framework.NewCycleState(), asker); !status.IsSuccess() {
		t.Fatal(status)
	}
	left := c.NominatedPodsForNode("n1")
	if len(left) != 1 || left[0].GetPod().Name != "asker" {
		t.Errorf("%d pods are nominated to the node, want the asker only", len(left))
	}
}

// TestAnotherPluginRefusesTheDaemonSetPod: a PreFilter plugin refuses a DaemonSet pod, and
// its Filter, which has no state then, passes. The node is not held, with room on it or
// not, and no pod is preempted. An earlier hold ends. When the refusal ends, the pod gets
// its room.
func TestAnotherPluginRefusesTheDaemonSetPod(t *testing.T) {
	for _, profile := range []string{plugintest.Profile, corev1.DefaultSchedulerName} {
		for name, c := range map[string]struct {
			milliCPU int64
			chosen   []string
		}{"room": {50, nil}, "no room": {150, []string{"v1"}}} {
			t.Run(profile+"/"+name, func(t *testing.T) {
				cl := newCluster(t, twoQueues, []*corev1.Node{node("n1", 200)}, []*corev1.Pod{running("v1", "n1", 100)})
				asker := daemon("asker", "n1", c.milliCPU)
				asker.Spec.SchedulerName = profile
				refused := asker.DeepCopy()
				refused.Labels["refused"] = ""
				wantRefused := func() {
					t.Helper()
					on, status := cl.answer(t, refused)
					wantAnswer(t, on, status, "", fwk.UnschedulableAndUnresolvable, "RoomImpossible")
					cl.wantChosen(t)
					if cl.store.Holds().Held() || cl.store.AnyNodeBound() {
						t.Error("the node is kept free")
					}
				}
				wantRefused()
				if c.chosen == nil {
					return // it fits, and no filter refuses it
				}
				on, status := cl.answer(t, asker)
				wantAnswer(t, on, status, "n1", fwk.UnschedulableAndUnresolvable, "MakingRoom")
				cl.wantChosen(t, c.chosen...)
				wantRefused()
			})
		}
	}
}
