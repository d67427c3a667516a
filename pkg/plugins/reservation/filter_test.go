package reservation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/leader"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// standby makes the schedulers of a test standbys: they read what is written on pods and
// do not act on it.
func standby(t *testing.T) {
	t.Helper()
	app.SetLeader(leader.NewGate())
	t.Cleanup(func() { app.SetLeader(leader.Always()) })
}

// held is a fixture in which the asker's condition says that it holds node n1. Without
// victims, the one victim that there was is gone.
func held(t *testing.T, victims ...*corev1.Pod) (*fixture, *corev1.Pod) {
	t.Helper()
	asker := plugintest.Pod("asker", 100)
	return heldFor(t, asker, victims...), asker
}

// heldFor is the same for a given asker.
func heldFor(t *testing.T, asker *corev1.Pod, victims ...*corev1.Pod) *fixture {
	t.Helper()
	standby(t)
	s := newFixture(t, "{vcore: 100}")
	for _, name := range []string{"n1", "n2"} {
		s.store.UpsertNode(name, resources.VectorOf(resources.Entry{Name: resources.CPU, Amount: 1000}), time.Now())
	}
	claim := reservations.Claim{Node: "n1", Since: time.Now().Truncate(time.Second)}
	for _, v := range victims {
		s.handle.Create(t, v)
		claim.Victims = append(claim.Victims, v.UID)
	}
	if len(victims) == 0 {
		claim.Victims = []types.UID{"gone"}
	}
	plugintest.Eventually(t, func() error { return s.known(victims) })
	claiming(asker, claim)
	s.awaitHold(t, asker)
	return s
}

// claiming has the condition of a pod say that it holds a node.
func claiming(asker *corev1.Pod, claim reservations.Claim) {
	asker.Status.Conditions = []corev1.PodCondition{{
		Type: reservations.HeldCondition, Status: corev1.ConditionTrue, Message: claim.Message(),
	}}
}

// awaitHold creates a pod and waits until the store knows that it holds a node.
func (s *fixture) awaitHold(t *testing.T, asker *corev1.Pod) {
	t.Helper()
	s.handle.Create(t, asker)
	plugintest.Eventually(t, func() error {
		if _, ok := s.store.Holds().Of(asker.UID); !ok {
			return errNotYet
		}
		return nil
	})
}

var errNotYet = fwk.NewStatus(fwk.Error, "not yet").AsError()

// TestHoldsBeforeTheQueuesAreReady: a scheduler with an invalid queue configuration
// schedules the pods of other profiles, and keeps them off nodes that were held before it
// started. The first cycle waits until the holds are known.
func TestHoldsBeforeTheQueuesAreReady(t *testing.T) {
	asker := plugintest.Daemon(plugintest.Pod("asker", 100), "n1")
	claiming(asker, reservations.Claim{Node: "n1", Since: time.Now().Truncate(time.Second)})
	h := plugintest.New(t, plugintest.Queues("no configuration"), asker)
	expect.Get(queuesort.New(h.Context(), plugintest.Args(), h))(t)
	s := &fixture{handle: h, Plugin: newPlugin(t, h), store: app.For(h.Context(), h).Store()}
	early := make(chan *fwk.Status)
	go func() {
		early <- s.filter(t, framework.NewCycleState(), plugintest.Foreign(plugintest.Pod("early", 1)), "n1")
	}()
	h.Start(t)
	plugintest.WantStatus(t, "a pod of no queue", <-early, fwk.UnschedulableAndUnresolvable, "NodeHeld: node n1 is held for pod ns/asker")
	plugintest.WantStatus(t, "elsewhere", s.filter(t, nil, plugintest.Foreign(plugintest.Pod("other", 1)), "n2"), fwk.Success, "")
	if s.store.Ready() {
		t.Error("the store started without queues")
	}
}

func (s *fixture) known(pods []*corev1.Pod) error {
	var listing []objects.Pod
	for _, p := range pods {
		listing = append(listing, listed(p)...)
	}
	return s.store.CompareWith(listing)
}

func (s *fixture) filter(t *testing.T, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	t.Helper()
	info := framework.NewNodeInfo()
	info.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
	return s.Filter(t.Context(), state, pod, info)
}

// TestNodeBoundPodsGoFirstOnAnUnseenNode: a pod that was tried on its node goes first again
// as soon as a filter sees another allocatable of the node than the store, which requeues the
// pods that were kept off when it sees that, too (D0).
func TestNodeBoundPodsGoFirstOnAnUnseenNode(t *testing.T) {
	agent := plugintest.Daemon(plugintest.Pod("agent", 1500), "n1")
	s := newFixture(t, "{vcore: 100}")
	node := func(milliCPU int64) *framework.NodeInfo {
		list := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milliCPU, resource.DecimalSI), corev1.ResourcePods: resource.MustParse("10")}
		info := framework.NewNodeInfo()
		info.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Allocatable: list}})
		return info
	}
	other := plugintest.Foreign(plugintest.Pod("other", 1000))
	filter := func(info *framework.NodeInfo) *fwk.Status {
		return s.Filter(t.Context(), framework.NewCycleState(), other, info)
	}
	small, large := node(1000), node(2000)
	s.store.UpsertNode("n1", informer.Allocatable(small.Node()), time.Now())
	s.handle.Create(t, agent)
	plugintest.Eventually(t, func() error {
		if _, admitted := s.store.Key(agent.UID); !admitted {
			return errNotYet
		}
		return nil
	})
	s.store.BeginNodeBoundPlan(agent.UID, nil, time.Now())
	plugintest.WantStatus(t, "after the pod was tried", filter(small), fwk.Success, "")
	plugintest.WantStatus(t, "on the node that grew", filter(large), fwk.UnschedulableAndUnresolvable, "room for pod ns/agent first")
	s.store.UpsertNode("n1", informer.Allocatable(large.Node()), time.Now())
	plugintest.WantStatus(t, "after the store saw it", filter(large), fwk.UnschedulableAndUnresolvable, "room for pod ns/agent first")
	s.store.BeginNodeBoundPlan(agent.UID, nil, time.Now())
	plugintest.WantStatus(t, "after the pod was tried there", filter(large), fwk.Success, "")
	s.store.DeleteNode("n1", time.Now())
	plugintest.WantStatus(t, "on the node that came back", filter(large), fwk.UnschedulableAndUnresolvable, "room for pod ns/agent first")
}

func TestFilterKeepsTheNodeForItsHolder(t *testing.T) {
	s, asker := held(t, plugintest.On(plugintest.Pod("victim", 100), "n1"))
	planning := framework.NewCycleState()
	planning.Write(PlanningKey, Planning{})
	for _, c := range []struct {
		name  string
		state fwk.CycleState
		pod   *corev1.Pod
		node  string
		want  string // empty: the pod passes
	}{
		{"the holder", nil, asker, "n1", ""},
		{"the holder elsewhere, before a victim was disrupted", nil, asker, "n2", ""},
		{"a pod of a queue", nil, plugintest.Pod("other", 1), "n1", "NodeHeld: node n1 is held for pod ns/asker"},
		{"a pod of no queue", nil, plugintest.Foreign(plugintest.Pod("foreign", 1)), "n1", "NodeHeld: node n1 is held for pod ns/asker"},
		{"elsewhere", nil, plugintest.Pod("other", 1), "n2", ""},
		{"a DaemonSet pod of the node", nil, plugintest.Daemon(plugintest.Pod("daemon", 1), "n1"), "n1", ""},
		{"a DaemonSet pod of another node", nil, plugintest.Daemon(plugintest.Pod("daemon", 1), "n2"), "n1", "NodeHeld"},
		{"a plan", planning, plugintest.Pod("other", 1), "n1", ""},
	} {
		state := c.state
		if state == nil {
			state = framework.NewCycleState()
		}
		code := fwk.UnschedulableAndUnresolvable
		if c.want == "" {
			code = fwk.Success
		}
		plugintest.WantStatus(t, c.name, s.filter(t, state, c.pod, c.node), code, c.want)
	}
	if _, status := s.SignPod(t.Context(), asker); status.IsSuccess() {
		t.Error("pods are signed alike though a node is held")
	}
}

// TestAHoldForPodsOfItsOwnLeavesTheRestOfTheNode: a holder that waits for pods of its own
// namespace keeps its request from pods of other namespaces, and they are tried again when room on
// the node becomes free.
func TestAHoldForPodsOfItsOwnLeavesTheRestOfTheNode(t *testing.T) {
	victim, third := plugintest.On(plugintest.Pod("victim", 400), "n1"), plugintest.On(plugintest.Foreign(plugintest.Pod("third", 100)), "n1")
	asker := plugintest.Daemon(plugintest.Pod("asker", 700), "n1")
	s := heldFor(t, asker, victim)
	s.handle.Create(t, third)
	of := func(name string, milliCPU int64) *corev1.Pod {
		p := plugintest.Foreign(plugintest.Pod(name, milliCPU))
		p.Namespace = "other"
		return p
	}
	filter := func(pod *corev1.Pod, on ...*corev1.Pod) *fwk.Status {
		return s.Filter(t.Context(), framework.NewCycleState(), pod, nodeOf(on...))
	}
	const kept = "node n1 keeps room for pods that hold it, the first of them ns/asker"
	plugintest.WantStatus(t, "a pod that fits beside it", filter(of("fits", 200), victim, third), fwk.Success, "")
	plugintest.WantStatus(t, "one that does not", filter(of("large", 201), victim, third), fwk.UnschedulableAndUnresolvable, kept)
	agent := plugintest.Daemon(of("agent", 200), "n1")
	plugintest.WantStatus(t, "a pod of another DaemonSet that fits beside it", filter(agent, victim, third), fwk.Success, "")
	agent = plugintest.Daemon(of("large-agent", 201), "n1")
	plugintest.WantStatus(t, "one that does not", filter(agent, victim, third), fwk.UnschedulableAndUnresolvable, kept)
	planning := framework.NewCycleState()
	planning.Write(PlanningKey, Planning{})
	plugintest.WantStatus(t, "its plan, which places the holders before it itself", s.Filter(t.Context(), planning, agent, nodeOf(third)), fwk.Success, "")
	plugintest.WantStatus(t, "one that another filter refuses", filter(of("huge", 501), victim, third), fwk.Success, "")
	plugintest.WantStatus(t, "a pod of its namespace", filter(plugintest.Pod("mate", 1), victim, third), fwk.UnschedulableAndUnresolvable, "node n1 is held for pod ns/asker")
	plugintest.WantStatus(t, "once the victim is gone", filter(of("fits", 200), third), fwk.Success, "")
	plugintest.WantStatus(t, "and one that does not fit", filter(of("large", 201), third), fwk.UnschedulableAndUnresolvable, kept)
	plugintest.WantStatus(t, "once it has the node", filter(of("rest", 200), asker, third), fwk.Success, "")
	events := expect.Get(s.EventsToRegister(t.Context()))(t)
	for namespace, want := range map[string]fwk.QueueingHint{"other": fwk.Queue, "ns": fwk.QueueSkip} {
		waits := of("large", 201)
		waits.Namespace = namespace
		expect.Same(t, namespace, want, expect.Get(events[1].QueueingHintFn(klog.Background(), waits, third, nil))(t))
	}
	s.handle.Delete(t, third)
	plugintest.Eventually(t, func() error {
		if !slices.Contains(s.handle.Activated(), "other/large other/large uid-large") {
			return errNotYet
		}
		return nil
	})
}

// nodeOf is a node of one core with pods.
func nodeOf(on ...*corev1.Pod) *framework.NodeInfo {
	info := framework.NewNodeInfo(on...)
	info.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourcePods: resource.MustParse("10"),
	}}})
	return info
}

// TestAHolderIsKeptToItsNode: a holder may use no other node once a victim is gone.
func TestAHolderIsKeptToItsNode(t *testing.T) {
	victim := plugintest.On(plugintest.Pod("victim", 100), "n1")
	s, asker := held(t, victim, plugintest.On(plugintest.Pod("other-victim", 100), "n1"))
	s.handle.Delete(t, victim)
	// A scheduler that starts reads the condition again: one victim is gone.
	restarted := newFixture(t, "{vcore: 100}")
	restarted.store.UpsertNode("n1", resources.VectorOf(resources.Entry{Name: resources.CPU, Amount: 1000}), time.Now())
	h, _ := s.store.Holds().Of(asker.UID)
	claim := h.Claim()
	asker.Status.Conditions[0].Message = claim.Message()
	restarted.handle.Create(t, asker)
	plugintest.Eventually(t, func() error {
		if restarted.store.Holds().MayUse("n2", reservations.Pod{UID: asker.UID}).OK {
			return errNotYet
		}
		return nil
	})
	plugintest.WantStatus(t, "elsewhere", restarted.filter(t, framework.NewCycleState(), asker, "n2"),
		fwk.UnschedulableAndUnresolvable, "NodeHeld: the pod waits for node n1, which is held for it")
	plugintest.WantStatus(t, "its node", restarted.filter(t, framework.NewCycleState(), asker, "n1"), fwk.Success, "")
}

// TestReserveLooksAtTheHoldsOfNow: a pod held the node when the filters ran and no longer
// does. Reserve refuses it, because another holder is next.
func TestReserveLooksAtTheHoldsOfNow(t *testing.T) {
	s, asker := held(t)
	other := plugintest.Pod("other", 100)
	s.handle.Create(t, other)
	plugintest.Eventually(t, func() error {
		if _, known := s.store.Explanation(other.UID, time.Now()); !known {
			return errNotYet
		}
		return nil
	})
	plugintest.WantStatus(t, "another pod", s.Reserve(t.Context(), nil, other, "n1"), fwk.UnschedulableAndUnresolvable, "NodeHeld: node n1 is held for pod ns/asker")
	s.allocated(t, 0)
	if e, _ := s.store.Explanation(other.UID, time.Now()); e.Why.Code != reasons.BackingOff || !strings.Contains(e.Why.Text, "node n1 is held for others") {
		t.Errorf("the pod is told %v", e.Why)
	}
	plugintest.WantStatus(t, "another pod, elsewhere", s.Reserve(t.Context(), nil, other, "n2"), fwk.Success, "")
	plugintest.WantStatus(t, "the holder", s.Reserve(t.Context(), nil, asker, "n1"), fwk.Success, "")
}

// TestPodsRejectedByAHoldAreRequeued: no cluster event reports the end of a hold, so the
// store requeues the pods that the hold kept off.
func TestPodsRejectedByAHoldAreRequeued(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *fixture, *corev1.Pod){
		"the asker is deleted": func(t *testing.T, s *fixture, asker *corev1.Pod) { s.handle.Delete(t, asker) },
		"the asker is bound": func(t *testing.T, s *fixture, asker *corev1.Pod) {
			expect.Get(s.handle.Client.CoreV1().Pods(asker.Namespace).Update(t.Context(), plugintest.On(asker.DeepCopy(), "n1"), metav1.UpdateOptions{}))(t)
		},
	} {
		t.Run(name, func(t *testing.T) { requeuedAtTheEnd(t, end) })
	}
}

func requeuedAtTheEnd(t *testing.T, end func(*testing.T, *fixture, *corev1.Pod)) {
	s, asker := held(t)
	foreign := plugintest.Foreign(plugintest.Pod("foreign", 1))
	plugintest.WantStatus(t, "a foreign pod", s.filter(t, framework.NewCycleState(), foreign, "n1"), fwk.UnschedulableAndUnresolvable, "NodeHeld")
	end(t, s, asker)
	requeued := 0
	plugintest.Eventually(t, func() error {
		all := s.handle.Activated()
		before := requeued
		if requeued = len(all); !slices.Contains(all[before:], "ns/foreign ns/foreign uid-foreign") {
			return errNotYet
		}
		// A pod that was rejected before the start is requeued after it, too: it is
		// rejected once more, and the end of the hold requeues it again.
		return s.filter(t, framework.NewCycleState(), foreign, "n1").AsError()
	})
}
