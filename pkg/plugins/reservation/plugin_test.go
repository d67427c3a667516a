package reservation

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

func args() *config.NodeReservationArgs {
	a := &config.NodeReservationArgs{}
	a.SetDefaults()
	return a
}

func newPlugin(t *testing.T, h *plugintest.Handle) *Plugin {
	t.Helper()
	return expect.Get(New(h.Context(), args(), h))(t).(*Plugin)
}

// fixture is a plugin, a QueueSort and a store that has admitted the pods.
type fixture struct {
	*Plugin
	handle *plugintest.Handle
	store  *store.Store
}

func newFixture(t *testing.T, limit string, pods ...*corev1.Pod) *fixture {
	t.Helper()
	h := plugintest.New(t, plugintest.Queues(plugintest.Document(limit)))
	s := &fixture{handle: h}
	expect.Get(queuesort.New(h.Context(), plugintest.Args(), h))(t)
	s.Plugin, s.store = newPlugin(t, h), app.For(h.Context(), h).Store()
	h.Start(t)
	s.admit(t, pods...)
	return s
}

// admit creates pods and waits until the store has admitted them.
func (s *fixture) admit(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	s.handle.Create(t, pods...)
	for _, p := range pods {
		plugintest.Until(t, p.Name+" is admitted", func() bool {
			_, admitted := s.store.Key(p.UID)
			return admitted
		})
	}
}

func (s *fixture) reserve(t *testing.T, pod *corev1.Pod) *fwk.Status {
	t.Helper()
	return s.Reserve(t.Context(), framework.NewCycleState(), pod, "n1")
}

func (s *fixture) permit(t *testing.T, pod *corev1.Pod) *fwk.Status {
	t.Helper()
	status, wait := s.Permit(t.Context(), framework.NewCycleState(), pod, "n1")
	expect.That(t, wait == 0, "pod %s waits for %v", pod.Name, wait)
	return status
}

func (s *fixture) unreserve(t *testing.T, pod *corev1.Pod) {
	s.Unreserve(t.Context(), framework.NewCycleState(), pod, "n1")
}

// allocated checks the usage of root.a and the store's invariants.
func (s *fixture) allocated(t *testing.T, milliCPU resources.Amount) {
	t.Helper()
	q, _ := s.store.Snapshot().Find("root.a")
	expect.Same(t, "milli-CPU of root.a", milliCPU, q.Allocated.Get("vcore"))
	expect.Holds(t, s.store.Check())
}

func TestNewRefuses(t *testing.T) {
	bad := args()
	bad.ClassOrder = "Random"
	plugintest.WantRefused(t, Name, New, bad, "classOrder")
}

func TestWithoutQueueSort(t *testing.T) {
	s := &fixture{Plugin: newPlugin(t, plugintest.New(t))}
	for _, pod := range []*corev1.Pod{plugintest.Pod("p", 1), plugintest.Foreign(plugintest.Pod("q", 1))} {
		status := s.reserve(t, pod)
		expect.That(t, status.Code() == fwk.Error && errors.Is(status.AsError(), app.ErrNoStore),
			"%s: %v, want the error that QueueSort is missing", pod.Name, status)
		s.unreserve(t, pod) // upstream calls it after the failure
	}
}

func TestReserveCharges(t *testing.T) {
	pod := plugintest.Pod("p", 600)
	s := newFixture(t, "{vcore: 1}", pod)
	plugintest.WantStatus(t, "Reserve", s.reserve(t, pod), fwk.Success, "")
	s.allocated(t, 600)
	plugintest.WantStatus(t, "Reserve again", s.reserve(t, pod), fwk.Success, "")
	s.allocated(t, 600)
	plugintest.WantStatus(t, "Permit", s.permit(t, pod), fwk.Success, "")
	s.PostBind(t.Context(), framework.NewCycleState(), pod, "n1")
	s.allocated(t, 600)
}

func TestReserveRefusesWhatTheGateLetThroughBefore(t *testing.T) {
	pod := plugintest.Pod("p", 600)
	s := newFixture(t, "{vcore: 1}", pod)
	s.handle.Create(t, plugintest.On(plugintest.Pod("intruder", 500), "n1"))
	plugintest.Until(t, "the intruder is seen", func() bool {
		q, _ := s.store.Snapshot().Find("root.a")
		return q.Allocated.Get("vcore") == 500
	})
	plugintest.WantStatus(t, "Reserve", s.reserve(t, pod), fwk.Unschedulable, "OverMax: queue root.a: vcore used ")
	s.allocated(t, 500)
	s.unreserve(t, pod) // upstream calls it after the failure
	s.allocated(t, 500)
	plugintest.WantStatus(t, "a pod that was not seen", s.reserve(t, plugintest.Pod("unknown", 1)), fwk.Unschedulable, "Starting: ")
}

func TestPodsOfNoQueue(t *testing.T) {
	pod := plugintest.Pod("p", 600)
	s := newFixture(t, "{vcore: 1}", pod)
	foreign := plugintest.Foreign(plugintest.Pod("foreign", 9000))
	plugintest.WantStatus(t, "Reserve", s.reserve(t, foreign), fwk.Success, "")
	plugintest.WantStatus(t, "Permit", s.permit(t, foreign), fwk.Success, "")
	s.unreserve(t, foreign)
	s.PostBind(t.Context(), framework.NewCycleState(), foreign, "n1")
	s.allocated(t, 0)
}

// TestEventsAndSignature: the plugin registers the events that can make its filter
// accept a pod, and no PreFilter can skip that filter.
func TestEventsAndSignature(t *testing.T) {
	plugin := newPlugin(t, plugintest.New(t))
	expect.Same(t, "name", "NodeReservation", plugin.Name())
	var events []fwk.ClusterEvent
	for _, e := range expect.Get(plugin.EventsToRegister(t.Context()))(t) {
		events = append(events, e.Event)
	}
	expect.Same(t, "events: new nodes, nodes with another allocatable, and pods that are gone", []fwk.ClusterEvent{
		{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable}, {Resource: fwk.Pod, ActionType: fwk.Delete},
	}, events)
	pod := plugintest.Pod("p", 1)
	status := plugin.Filter(t.Context(), framework.NewCycleState(), pod, framework.NewNodeInfo())
	plugintest.WantStatus(t, "Filter, and no node is held", status, fwk.Success, "")
	parts, status := plugin.SignPod(t.Context(), pod)
	expect.That(t, len(parts) == 0 && status.IsSuccess(), "SignPod: %v, %v", parts, status)
	_, skips := any(plugin).(fwk.PreFilterPlugin)
	expect.That(t, !skips, "a PreFilter could skip the filter")
}

// TestPermitLooksAtTheHoldsOfNow: a node may become held for another pod before the pod
// is bound there, for instance when a process that becomes leader reads the claims.
func TestPermitLooksAtTheHoldsOfNow(t *testing.T) {
	standby(t)
	pod := plugintest.Pod("p", 600)
	s := newFixture(t, "{vcore: 100}", pod)
	s.store.UpsertNode("n1", oneCore, time.Now())
	plugintest.WantStatus(t, "Reserve", s.reserve(t, pod), fwk.Success, "")
	plugintest.WantStatus(t, "Permit", s.permit(t, pod), fwk.Success, "")
	s.awaitHold(t, claiming(plugintest.Pod("asker", 500), "gone"))
	plugintest.WantStatus(t, "Permit", s.permit(t, pod), fwk.UnschedulableAndUnresolvable, "NodeHeld: node n1 is held for pod ns/asker")
	s.unreserve(t, pod)
	s.allocated(t, 0)
	expect.Says(t, s.store.Explain(pod.UID).String(), "node n1 was held for pod ns/asker")
}
