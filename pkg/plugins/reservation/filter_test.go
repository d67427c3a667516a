package reservation

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/leader"
	"github.com/paddock-scheduler/paddock/pkg/objects"
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

// held is a fixture in which the condition of a pod says that it holds node n1. Without
// victims, the one victim that there was is gone.
func held(t *testing.T, asker *corev1.Pod, victims ...*corev1.Pod) *fixture {
	t.Helper()
	standby(t)
	s := newFixture(t, "{vcore: 100}")
	for _, name := range []string{"n1", "n2"} {
		s.store.UpsertNode(name, oneCore, time.Now())
	}
	var uids []types.UID
	var listing []objects.Pod
	options := informer.Options{ManagedProfiles: []string{plugintest.Profile}, ClaimedOwners: true}
	for _, v := range victims {
		uids, listing = append(uids, v.UID), append(listing, options.Translate(v))
	}
	if len(victims) == 0 {
		uids = []types.UID{"gone"}
	}
	s.handle.Create(t, victims...)
	plugintest.Eventually(t, func() error { return s.store.CompareWith(listing) })
	s.awaitHold(t, claiming(asker, uids...))
	return s
}

var oneCore = resources.VectorOf(resources.Entry{Name: resources.CPU, Amount: 1000})

// claiming has the condition of a pod say that it holds node n1.
func claiming(asker *corev1.Pod, victims ...types.UID) *corev1.Pod {
	claim := reservations.Claim{Node: "n1", Since: time.Now().Truncate(time.Second), Victims: victims}
	asker.Status.Conditions = []corev1.PodCondition{{
		Type: reservations.HeldCondition, Status: corev1.ConditionTrue, Message: claim.Message(),
	}}
	return asker
}

// awaitHold creates a pod and waits until the store knows that it holds a node.
func (s *fixture) awaitHold(t *testing.T, asker *corev1.Pod) {
	t.Helper()
	s.handle.Create(t, asker)
	plugintest.Until(t, asker.Name+" holds a node", func() bool {
		_, ok := s.store.Holds().Of(asker.UID)
		return ok
	})
}

// TestHoldsBeforeTheQueuesAreReady: a scheduler with an invalid queue configuration
// schedules the pods of other profiles, and keeps them off nodes that were held before it
// started. The first cycle waits until the holds are known.
func TestHoldsBeforeTheQueuesAreReady(t *testing.T) {
	asker := claiming(plugintest.Daemon(plugintest.Pod("asker", 100), "n1"))
	h := plugintest.New(t, plugintest.Queues("no configuration"), asker)
	expect.Get(queuesort.New(h.Context(), plugintest.Args(), h))(t)
	s := &fixture{handle: h, Plugin: newPlugin(t, h), store: app.For(h.Context(), h).Store()}
	early := make(chan *fwk.Status)
	go func() { early <- s.filter(t, plugintest.Foreign(plugintest.Pod("early", 1)), "n1") }()
	h.Start(t)
	plugintest.WantStatus(t, "a pod of no queue", <-early, fwk.UnschedulableAndUnresolvable, "NodeHeld: node n1 is held for pod ns/asker")
	other := plugintest.Foreign(plugintest.Pod("other", 1))
	plugintest.WantStatus(t, "elsewhere", s.filter(t, other, "n2"), fwk.Success, "")
	expect.That(t, !s.store.Ready(), "the store started without queues")
}

// filter is what the filter says of a pod on a node of one core with the others.
func (s *fixture) filter(t *testing.T, pod *corev1.Pod, node string, others ...*corev1.Pod) *fwk.Status {
	t.Helper()
	return s.Filter(t.Context(), framework.NewCycleState(), pod, nodeOf(node, 1000, others...))
}

func nodeOf(name string, milliCPU int64, pods ...*corev1.Pod) *framework.NodeInfo {
	info := framework.NewNodeInfo(pods...)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU:  *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
		corev1.ResourcePods: resource.MustParse("10"),
	}
	info.SetNode(node)
	return info
}

// planning is the state of a cycle in which a plan asks the filters.
func planning() fwk.CycleState {
	state := framework.NewCycleState()
	state.Write(PlanningKey, Planning{})
	return state
}

// TestNodeBoundPodsGoFirstOnAnUnseenNode: a pod that was tried on its node goes first again
// as soon as a filter sees another allocatable of the node than the store, which requeues the
// pods that were kept off when it sees that, too (D0).
func TestNodeBoundPodsGoFirstOnAnUnseenNode(t *testing.T) {
	agent := plugintest.Daemon(plugintest.Pod("agent", 1500), "n1")
	s := newFixture(t, "{vcore: 100}")
	other := plugintest.Foreign(plugintest.Pod("other", 1000))
	filter := func(info *framework.NodeInfo) *fwk.Status {
		return s.Filter(t.Context(), framework.NewCycleState(), other, info)
	}
	small, large := nodeOf("n1", 1000), nodeOf("n1", 2000)
	s.store.UpsertNode("n1", informer.Allocatable(small.Node()), time.Now())
	s.admit(t, agent)
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
	asker := plugintest.Pod("asker", 100)
	s := held(t, asker, plugintest.On(plugintest.Pod("victim", 100), "n1"))
	foreign := plugintest.Foreign(plugintest.Pod("foreign", 1))
	agent := plugintest.Daemon(plugintest.Pod("daemon", 1), "n2")
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
		node string
		want string // empty: the pod passes
	}{
		{"the holder", asker, "n1", ""},
		{"the holder elsewhere, before a victim was disrupted", asker, "n2", ""},
		{"a pod of a queue", plugintest.Pod("other", 1), "n1", "NodeHeld: node n1 is held for pod ns/asker"},
		{"a pod of no queue", foreign, "n1", "NodeHeld: node n1 is held for pod ns/asker"},
		{"elsewhere", plugintest.Pod("other", 1), "n2", ""},
		{"a DaemonSet pod of the node", plugintest.Daemon(plugintest.Pod("daemon", 1), "n1"), "n1", ""},
		{"a DaemonSet pod of another node", agent, "n1", "NodeHeld"},
	} {
		code := fwk.UnschedulableAndUnresolvable
		if c.want == "" {
			code = fwk.Success
		}
		plugintest.WantStatus(t, c.name, s.filter(t, c.pod, c.node), code, c.want)
	}
	status := s.Filter(t.Context(), planning(), plugintest.Pod("other", 1), nodeOf("n1", 1000))
	plugintest.WantStatus(t, "a plan", status, fwk.Success, "")
	_, status = s.SignPod(t.Context(), asker)
	expect.That(t, !status.IsSuccess(), "pods are signed alike though a node is held")
}

// TestAHoldForPodsOfItsOwnLeavesTheRestOfTheNode: a holder that waits for pods of its own
// namespace keeps its request from pods of other namespaces, and they are tried again when room on
// the node becomes free.
func TestAHoldForPodsOfItsOwnLeavesTheRestOfTheNode(t *testing.T) {
	victim, third := plugintest.On(plugintest.Pod("victim", 400), "n1"), plugintest.On(plugintest.Foreign(plugintest.Pod("third", 100)), "n1")
	asker := plugintest.Daemon(plugintest.Pod("asker", 700), "n1")
	s := held(t, asker, victim)
	s.handle.Create(t, third)
	of := func(name string, milliCPU int64) *corev1.Pod {
		p := plugintest.Foreign(plugintest.Pod(name, milliCPU))
		p.Namespace = "other"
		return p
	}
	filter := func(pod *corev1.Pod, on ...*corev1.Pod) *fwk.Status { return s.filter(t, pod, "n1", on...) }
	const kept = "node n1 keeps room for pods that hold it, the first of them ns/asker"
	plugintest.WantStatus(t, "a pod that fits beside it", filter(of("fits", 200), victim, third), fwk.Success, "")
	plugintest.WantStatus(t, "one that does not", filter(of("large", 201), victim, third), fwk.UnschedulableAndUnresolvable, kept)
	agent := plugintest.Daemon(of("agent", 200), "n1")
	plugintest.WantStatus(t, "a pod of another DaemonSet that fits beside it", filter(agent, victim, third), fwk.Success, "")
	agent = plugintest.Daemon(of("large-agent", 201), "n1")
	plugintest.WantStatus(t, "one that does not", filter(agent, victim, third), fwk.UnschedulableAndUnresolvable, kept)
	status := s.Filter(t.Context(), planning(), agent, nodeOf("n1", 1000, third))
	plugintest.WantStatus(t, "its plan, which places the holders before it itself", status, fwk.Success, "")
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
	plugintest.Until(t, "the pod that was kept off is tried again", func() bool {
		return slices.Contains(s.handle.Activated(), "other/large other/large uid-large")
	})
}

// TestUntriedPodsHaveTheirPlaceAmongHolders: of a holder that keeps its request only and an untried pod,
// the one of higher priority has its room first, and other pods what both leave (D0, D1).
func TestUntriedPodsHaveTheirPlaceAmongHolders(t *testing.T) {
	for _, c := range []struct {
		priority int32
		milliCPU int64 // of the untried pod; 900 are free, the holder requests 500, and the other pod 300
		kept     bool
	}{{1, 700, true}, {-1, 700, false}, {1, 300, true}, {-1, 300, true}, {1, 100, false}} {
		victim := plugintest.On(plugintest.Pod("victim", 100), "n1")
		s := held(t, plugintest.Daemon(plugintest.Pod("holder", 500), "n1"), victim)
		agent := plugintest.Daemon(plugintest.Pod("agent", c.milliCPU), "n1")
		agent.Spec.Priority = &c.priority
		s.admit(t, agent)
		other := plugintest.Foreign(plugintest.Pod("other", 300))
		other.Namespace = "other"
		want, text := fwk.Success, ""
		if c.kept {
			want, text = fwk.UnschedulableAndUnresolvable, "node n1 has room for pod ns/agent first"
		}
		plugintest.WantStatus(t, fmt.Sprint(c), s.filter(t, other, "n1", victim), want, text)
	}
}

// TestAHoldThatEndsDuringTheCheckKeepsNoPodOff: no event would requeue the pod.
func TestAHoldThatEndsDuringTheCheckKeepsNoPodOff(t *testing.T) {
	asker, pod := plugintest.Pod("asker", 500), plugintest.Foreign(plugintest.Pod("other", 100))
	s := held(t, asker)
	check := func(holds *reservations.View) *fwk.Status {
		status := s.checkHolds(holds, s.inHolds(pod, "n1"), pod, "n1", false)
		if !status.IsSuccess() {
			s.handle.Delete(t, asker)
			plugintest.Until(t, "the hold ends", func() bool { return !s.store.Holds().Held() })
		}
		return status
	}
	plugintest.WantStatus(t, "a pod that the hold kept off", checkTwice(s.store, check), fwk.Success, "")
}

// TestAHolderIsKeptToItsNode: a holder may use no other node once a victim is gone.
func TestAHolderIsKeptToItsNode(t *testing.T) {
	asker := plugintest.Pod("asker", 100)
	s := held(t, asker)
	const kept = "NodeHeld: the pod waits for node n1, which is held for it"
	plugintest.WantStatus(t, "elsewhere", s.filter(t, asker, "n2"), fwk.UnschedulableAndUnresolvable, kept)
	plugintest.WantStatus(t, "its node", s.filter(t, asker, "n1"), fwk.Success, "")
}

// TestReserveLooksAtTheHoldsOfNow: a pod held the node when the filters ran and no longer
// does. Reserve refuses it, because another holder is next.
func TestReserveLooksAtTheHoldsOfNow(t *testing.T) {
	asker, other := plugintest.Pod("asker", 100), plugintest.Pod("other", 100)
	s := held(t, asker)
	s.handle.Create(t, other)
	plugintest.Until(t, "the other pod is known", func() bool {
		_, known := s.store.Explanation(other.UID, time.Now())
		return known
	})
	plugintest.WantStatus(t, "another pod", s.Reserve(t.Context(), nil, other, "n1"), fwk.UnschedulableAndUnresolvable, "NodeHeld: node n1 is held for pod ns/asker")
	s.allocated(t, 0)
	e, _ := s.store.Explanation(other.UID, time.Now())
	expect.Same(t, "why the pod waits", reasons.BackingOff, e.Why.Code)
	expect.Says(t, e.Why.Text, "node n1 is held for others")
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
		t.Run(name, func(t *testing.T) {
			asker, foreign := plugintest.Pod("asker", 100), plugintest.Foreign(plugintest.Pod("foreign", 1))
			s := held(t, asker)
			status := s.filter(t, foreign, "n1")
			plugintest.WantStatus(t, "a foreign pod", status, fwk.UnschedulableAndUnresolvable, "NodeHeld")
			end(t, s, asker)
			requeued := 0
			plugintest.Eventually(t, func() error {
				all := s.handle.Activated()
				before := requeued
				if requeued = len(all); !slices.Contains(all[before:], "ns/foreign ns/foreign uid-foreign") {
					return errors.New("the foreign pod is not requeued")
				}
				// A pod that was rejected before the start is requeued after it, too: it is
				// rejected once more, and the end of the hold requeues it again.
				return s.filter(t, foreign, "n1").AsError()
			})
		})
	}
}
