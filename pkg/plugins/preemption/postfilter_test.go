package preemption_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

func node(name string, milliCPU int64) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewMilliQuantity(milliCPU, resource.DecimalSI), corev1.ResourcePods: resource.MustParse("110"),
		}},
	}
}

// running is a pod of queue b on a node, with an application of its own.
func running(name, node string, milliCPU int64) *corev1.Pod {
	p := plugintest.On(plugintest.Pod(name, milliCPU), node)
	p.Labels = map[string]string{"queue": "root.b", "applicationId": name}
	p.Status.Phase = corev1.PodRunning
	return p
}

// chosen lists the names of the victims that the executor gets for the first time. A
// process that becomes leader gets all of them again.
func (c *cluster) chosen() []string {
	var out []string
	for _, w := range c.store.TakeWork() {
		if w.Kind != output.WorkDeleteVictims || c.told[w.Hold.Decision] {
			continue
		}
		c.told[w.Hold.Decision] = true
		if w.Decision != nil {
			for _, v := range w.Decision.Victims {
				out = append(out, v.Name)
			}
		}
		if w.NodeBoundDecision != nil {
			for _, v := range w.NodeBoundDecision.Victims {
				out = append(out, v.Name)
			}
		}
	}
	slices.Sort(out)
	return out
}

func (c *cluster) wantChosen(t *testing.T, want ...string) {
	t.Helper()
	expect.Same(t, "chosen", want, c.chosen())
}

func wantAnswer(t *testing.T, gotNode string, got *fwk.Status, node string, code fwk.Code, text string) {
	t.Helper()
	if gotNode != node || got.Code() != code || !strings.Contains(got.Message(), text) {
		t.Errorf("node %q, %s %q; want node %q, %s %q", gotNode, got.Code(), got.Message(), node, code, text)
	}
}

func TestPostFilterMakesRoom(t *testing.T) {
	c := newCluster(t, twoQueues, []*corev1.Node{node("n1", 200), node("n2", 200)}, []*corev1.Pod{
		running("v1", "n1", 200), running("v2", "n2", 100), running("v3", "n2", 100),
	})
	asker := plugintest.Pod("asker", 150)
	on, status := c.answer(t, asker)
	// One victim is chosen rather than two.
	wantAnswer(t, on, status, "n1", fwk.UnschedulableAndUnresolvable, "MakingRoom: node n1 is held for the pod")
	c.wantChosen(t, "v1")
	if h, ok := c.store.Holds().Of(asker.UID); !ok || h.Node != "n1" {
		t.Errorf("hold %+v, %v", h, ok)
	}
	// A second call before any victim is gone gives the same answer and no further
	// victims.
	state, statuses := c.fail(t, asker)
	result, status := c.postFilter(t, preemption.Name).PostFilter(t.Context(), state, asker, statuses)
	if result != nil || status.Code() != fwk.UnschedulableAndUnresolvable || !strings.Contains(status.Message(), "MakingRoom") {
		t.Errorf("%v, %v; want that it waits", result, status)
	}
	c.wantChosen(t)
}

// TestAMemberThatWaitsForRoomTakesNoPlacesBack: a member of a PodGroup fits once the victim
// of another member is gone. No plugin behind is asked: the one for PodGroups would take
// the places of the others back.
func TestAMemberThatWaitsForRoomTakesNoPlacesBack(t *testing.T) {
	for group, want := range map[string]fwk.Code{"": fwk.Unschedulable, "g": fwk.UnschedulableAndUnresolvable} {
		t.Run("PodGroup "+group, func(t *testing.T) {
			c := newCluster(t, twoQueues, []*corev1.Node{node("n1", 200)}, []*corev1.Pod{running("v1", "n1", 200)})
			first, second := plugintest.Pod("first", 100), plugintest.Pod("second", 100)
			if group != "" {
				c.store.FollowPodGroups()
				first.Labels[objects.PodGroupLabel], second.Labels[objects.PodGroupLabel] = group, group
				c.store.SetPodGroup(first.Namespace, group, 2, c.now)
			}
			c.store.Upsert(c.translate(second), c.now)
			on, status := c.answer(t, first)
			wantAnswer(t, on, status, "n1", fwk.UnschedulableAndUnresolvable, "MakingRoom: node n1 is held for the pod")
			on, status = c.answer(t, second)
			wantAnswer(t, on, status, "", want, "WaitingForRoom: ")
		})
	}
}

func TestTheRealFiltersJudge(t *testing.T) {
	tainted := node("n1", 400)
	tainted.Spec.Taints = []corev1.Taint{{Key: "mine", Effect: corev1.TaintEffectNoSchedule}}
	apart := plugintest.Pod("asker", 100)
	apart.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"applicationId": "v2"}},
		}},
	}}
	spread := plugintest.Pod("asker", 100)
	spread.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"spread": "me"}},
	}}
	spread.Labels["spread"] = "me"
	alike := running("v1", "n1", 100)
	alike.Labels["spread"] = "me"
	for _, c := range []struct {
		name   string
		nodes  []*corev1.Node
		pods   []*corev1.Pod
		asker  *corev1.Pod
		on     string
		chosen []string
	}{
		{"a port", []*corev1.Node{node("n1", 400)}, []*corev1.Pod{running("v1", "n1", 100), withPort(running("v2", "n1", 100), 80)},
			withPort(plugintest.Pod("asker", 100), 80), "n1", []string{"v2"}},
		{"anti-affinity", []*corev1.Node{node("n1", 400)}, []*corev1.Pod{running("v1", "n1", 100), running("v2", "n1", 100)},
			apart, "n1", []string{"v2"}},
		// n1 has free capacity, but topology spread rejects it. Preempting v1 would help,
		// too, but would free more than is needed.
		{"topology spread", []*corev1.Node{node("n1", 400), node("n2", 100)}, []*corev1.Pod{alike, running("v2", "n2", 100)},
			spread, "n2", []string{"v2"}},
		{"a volume", []*corev1.Node{node("n1", 400)}, []*corev1.Pod{running("v1", "n1", 100), withDisk(running("v2", "n1", 100))},
			withDisk(plugintest.Pod("asker", 100)), "n1", []string{"v2"}},
		{"a taint", []*corev1.Node{tainted, node("n2", 200)}, []*corev1.Pod{running("v1", "n1", 400), running("v2", "n2", 200)},
			plugintest.Pod("asker", 100), "n2", []string{"v2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := newCluster(t, twoQueues, c.nodes, c.pods)
			on, status := cl.answer(t, c.asker)
			wantAnswer(t, on, status, c.on, fwk.UnschedulableAndUnresolvable, "MakingRoom")
			cl.wantChosen(t, c.chosen...)
		})
	}
}

// TestPlanRunsFiltersAfterARefusedPreFilter: PreFilter rejects, so the filters did not run for the nodes; the plan
// runs them.
func TestPlanRunsFiltersAfterARefusedPreFilter(t *testing.T) {
	queues := strings.Replace(twoQueues, "    queues:\n    - {name: a,",
		"    queues:\n    - {name: p, resources: {max: {vcore: 1}}, queues: [{name: a, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 1}}}, {name: b}]}\n    - {name: a,", 1)
	tainted := node("n1", 4000)
	tainted.Spec.Taints = []corev1.Taint{{Key: "mine", Effect: corev1.TaintEffectNoSchedule}}
	v := running("v1", "n1", 1000)
	v.Labels["queue"] = "root.p.b"
	c := newCluster(t, queues, []*corev1.Node{tainted, node("n2", 1000)}, []*corev1.Pod{v})
	asker := plugintest.Pod("asker", 100)
	asker.Labels["queue"] = "root.p.a"
	on, status := c.answer(t, asker)
	wantAnswer(t, on, status, "n2", fwk.UnschedulableAndUnresolvable, "MakingRoom: node n2")
	c.wantChosen(t, "v1")
}

// TestManyNodesRefuse: a plan may run the filters for a hundred nodes. If more of them
// reject, the one that accepts is still found.
func TestManyNodesRefuse(t *testing.T) {
	var nodes []*corev1.Node
	var pods []*corev1.Pod
	for i := range 260 {
		n := node(fmt.Sprintf("n%03d", i), 1000)
		n.Labels["last"] = fmt.Sprint(i == 259)
		nodes = append(nodes, n)
		v := running(fmt.Sprintf("v%03d", i), n.Name, 1000)
		v.Labels["queue"] = "root.p.b"
		pods = append(pods, v)
	}
	selective := plugintest.Pod("asker", 100)
	selective.Labels["queue"] = "root.p.a"
	selective.Spec.NodeSelector = map[string]string{"last": "true"}
	below := func(most int) string {
		return strings.Replace(twoQueues, "    queues:\n    - {name: a,", fmt.Sprintf(
			"    queues:\n    - {name: p, resources: {max: {vcore: %d}}, queues: [{name: a, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 1}}}, {name: b}]}\n    - {name: a,", most), 1)
	}
	for _, most := range []int{260, 1000} { // the max is exceeded, or only the nodes are full
		on, status := newCluster(t, below(most), nodes, pods).answer(t, selective.DeepCopy())
		wantAnswer(t, on, status, "n259", fwk.UnschedulableAndUnresolvable, "MakingRoom: node n259")
	}

	// Protected pods keep the asker off all nodes except the last, by a rejection that
	// the filters do not report as final.
	apart := selective.DeepCopy()
	apart.Spec.NodeSelector = nil
	apart.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"keeps": "off"}},
	}}}}
	for i := range 259 {
		p := running(fmt.Sprintf("k%03d", i), nodes[i].Name, 0)
		p.Labels["keeps"], p.Spec.SchedulerName = "off", "somebody"
		pods = append(pods, p)
	}
	on, status := newCluster(t, below(1000), nodes, pods).answer(t, apart)
	wantAnswer(t, on, status, "", fwk.Unschedulable, "the filters refuse the nodes that preemption could make room on, whichever pods go: n000, n001, n002 and 47 more; other nodes are looked at next")
}

// TestHoldersShareANode: a plan may join the holders of a node, because it counts the
// pods that they wait for. The holders do not block each other when their turn comes.
func TestHoldersShareANode(t *testing.T) {
	c := newCluster(t, twoQueues, []*corev1.Node{node("n1", 200)}, []*corev1.Pod{running("v1", "n1", 100), running("v2", "n1", 100)})
	first, second, third := plugintest.Pod("first", 100), plugintest.Pod("second", 100), plugintest.Pod("third", 100)
	for _, asker := range []*corev1.Pod{first, second} {
		on, status := c.answer(t, asker)
		wantAnswer(t, on, status, "n1", fwk.UnschedulableAndUnresolvable, "MakingRoom: node n1")
	}
	c.wantChosen(t, "v1", "v2")
	on, status := c.answer(t, third) // no capacity is left
	wantAnswer(t, on, status, "", fwk.Unschedulable, "PreemptionRefused")

	for _, asker := range []*corev1.Pod{first, second} {
		info := expect.Get(framework.NewPodInfo(asker))(t)
		c.AddNominatedPod(klog.Background(), info, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: "n1"})
	}
	if _, status, _ := c.RunPreFilterPlugins(t.Context(), framework.NewCycleState(), first); !status.IsSuccess() {
		t.Fatal(status)
	}
	var left []string
	for _, pi := range c.NominatedPodsForNode("n1") {
		left = append(left, pi.GetPod().Name)
	}
	expect.Same(t, "nominated to the node, the pod whose cycle it is", []string{"first"}, left)
}

// TestPodsInPermit: a pod that waits in Permit is a victim like any other; a pod that is
// being bound is not.
func TestPodsInPermit(t *testing.T) {
	for _, waits := range []bool{false, true} {
		c := newCluster(t, twoQueues, []*corev1.Node{node("n1", 200)}, nil)
		v := plugintest.Pod("v", 200)
		v.Labels = map[string]string{"queue": "root.b", "applicationId": "v"}
		c.store.Upsert(c.translate(v), c.now)
		c.store.Gate(v.UID, c.now)
		if verdict := c.store.Assume(v.UID, "n1", store.NoSnapshot, c.now); !verdict.OK() {
			t.Fatal(verdict.Reason)
		}
		info := expect.Get(c.SnapshotSharedLister().NodeInfos().Get("n1"))(t)
		pi := expect.Get(framework.NewPodInfo(plugintest.On(v.DeepCopy(), "n1")))(t)
		info.AddPodInfo(pi)
		if waits {
			if status := c.RunPermitPlugins(t.Context(), framework.NewCycleState(), v, "n1"); !status.IsWait() {
				t.Fatal(status)
			}
		}
		on, status := c.answer(t, plugintest.Pod("asker", 200))
		if waits {
			wantAnswer(t, on, status, "n1", fwk.UnschedulableAndUnresolvable, "MakingRoom")
			c.wantChosen(t, "v")
		} else {
			wantAnswer(t, on, status, "", fwk.Unschedulable, "PreemptionRefused")
			c.wantChosen(t)
		}
	}
}

// nominations are the pods nominated to nodes, as the scheduler's queue knows them.
type nominations map[string][]fwk.PodInfo

func (nominations) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}

func (nominations) DeleteNominatedPodIfExists(*corev1.Pod) {}

func (nominations) UpdateNominatedPod(klog.Logger, *corev1.Pod, fwk.PodInfo) {}

func (n nominations) NominatedPodsForNode(node string) []fwk.PodInfo { return n[node] }

// TestNominatedPodsCount: a plan does not use capacity for which a pod is nominated to
// the node. The store does not know of the nomination: by its numbers the asker fits.
func TestNominatedPodsCount(t *testing.T) {
	info := expect.Get(framework.NewPodInfo(plugintest.Foreign(plugintest.Pod("nominated", 100))))(t)
	c := newCluster(t, twoQueues, []*corev1.Node{node("n1", 300)}, []*corev1.Pod{running("v1", "n1", 100), running("v2", "n1", 100)},
		frameworkruntime.WithPodNominator(nominations{"n1": {info}}))
	on, status := c.answer(t, plugintest.Pod("asker", 100))
	wantAnswer(t, on, status, "n1", fwk.UnschedulableAndUnresolvable, "MakingRoom: node n1 is held for the pod")
	if chosen := c.chosen(); len(chosen) != 1 {
		t.Errorf("chosen %v, want one pod", chosen)
	}
}
