package preemption

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

func args() *config.QueuePreemptionArgs {
	a := &config.QueuePreemptionArgs{}
	a.SetDefaults()
	return a
}

func newPlugin(t *testing.T, h *plugintest.Handle) *Plugin {
	t.Helper()
	return expect.Get(New(h.Context(), args(), h))(t).(*Plugin)
}

// started is the plugin and a QueueSort with a store that has seen everything.
func started(t *testing.T, h *plugintest.Handle) (*Plugin, *store.Store) {
	t.Helper()
	plugin := newPlugin(t, h) // in any order
	expect.Get(queuesort.New(h.Context(), plugintest.Args(), h))(t)
	h.Start(t)
	s := app.For(h.Context(), h).Store()
	plugintest.Until(t, "the store starts", s.Ready)
	return plugin, s
}

// until polls until the pod waits for the code; empty means admitted.
func until(t *testing.T, s *store.Store, pod *corev1.Pod, code reasons.Code) {
	t.Helper()
	plugintest.Eventually(t, func() error {
		_, keyed := s.Key(pod.UID)
		if why := s.Explain(pod.UID); why.Code != code || (code == "" && !keyed) {
			return errors.New("waits for " + why.String())
		}
		return nil
	})
}

func TestNewRefuses(t *testing.T) {
	bad := args()
	bad.PodOptOut = "Perhaps"
	plugintest.WantRefused(t, Name, New, bad, "podOptOut")
}

func TestWithoutQueueSort(t *testing.T) {
	plugin := newPlugin(t, plugintest.New(t))
	for _, pod := range []*corev1.Pod{plugintest.Pod("p", 1), plugintest.Foreign(plugintest.Pod("q", 1))} {
		result, status := plugin.PreFilter(t.Context(), framework.NewCycleState(), pod, nil)
		expect.That(t, result == nil && errors.Is(status.AsError(), app.ErrNoStore) && status.Code() == fwk.Error,
			"%v, %v; want the error that QueueSort is missing", result, status)
	}
	expect.That(t, strings.Contains(app.ErrNoStore.Error(), "enable it in every profile"),
		"the error does not say what to do")
	_, status := plugin.PostFilter(t.Context(), framework.NewCycleState(), plugintest.Pod("p", 1), nil)
	plugintest.WantStatus(t, "PostFilter", status, fwk.Unschedulable, "")
}

func TestPreFilterGivesTheQuotaVerdict(t *testing.T) {
	running := plugintest.On(plugintest.Pod("running", 600), "n1")
	fits := plugintest.Pod("fits", 400)
	h := plugintest.New(t, plugintest.Queues(plugintest.Document("{vcore: 1}")), running, fits)
	plugin, s := started(t, h)
	until(t, s, fits, "")

	preFilter := func(pod *corev1.Pod) (fwk.CycleState, *fwk.Status) {
		t.Helper()
		state := framework.NewCycleState()
		result, status := plugin.PreFilter(t.Context(), state, pod, nil)
		expect.That(t, result == nil, "pod %s: narrows the nodes to %v", pod.Name, result)
		return state, status
	}
	_, status := preFilter(plugintest.Foreign(plugintest.Pod("foreign", 9000)))
	plugintest.WantStatus(t, "a pod of no queue", status, fwk.Success, "")
	state, status := preFilter(fits)
	plugintest.WantStatus(t, "a pod within the quota", status, fwk.Success, "")
	v, ok := verdictOf(state)
	expect.That(t, ok && !v.overQuota, "the verdict for a granted pod is %+v, %v", v, ok)
	_, status = preFilter(plugintest.Pod("unknown", 1))
	plugintest.WantStatus(t, "a pod that was not seen yet", status, fwk.UnschedulableAndUnresolvable, "Starting: ")

	// Another pod uses the capacity between the gate and the cycle.
	h.Create(t, plugintest.On(plugintest.Pod("intruder", 100), "n1"))
	plugintest.Until(t, "the intruder is seen", func() bool {
		q, _ := s.Snapshot().Find("root.a")
		return q.Allocated.Get("vcore") == 700
	})
	state, status = preFilter(fits)
	plugintest.WantStatus(t, "a pod over quota", status, fwk.UnschedulableAndUnresolvable, "OverMax: queue root.a: vcore used ")
	v, _ = verdictOf(state.Clone())
	expect.That(t, v.overQuota, "PostFilter cannot see the refusal")
	until(t, s, fits, reasons.OverMax)
	_, status = plugin.PostFilter(t.Context(), state, fits, nil)
	plugintest.WantStatus(t, "PostFilter after the refusal", status, fwk.Unschedulable, "PreemptionRefused: ")
	until(t, s, fits, reasons.OverMax) // and not for a node
	expect.Holds(t, s.Check())
	h.Delete(t, running)
	until(t, s, fits, "") // free capacity requeues it
}

func TestPostFilterGivesThePlaceToOthers(t *testing.T) {
	pod := plugintest.Pod("p", 600)
	h := plugintest.New(t, plugintest.Queues(plugintest.Document("{vcore: 1}")), pod)
	plugin, s := started(t, h)
	until(t, s, pod, "")
	state := framework.NewCycleState()
	if _, status := plugin.PreFilter(t.Context(), state, pod, nil); !status.IsSuccess() {
		t.Fatal(status)
	}
	result, status := plugin.PostFilter(t.Context(), state, pod, framework.NewDefaultNodeToStatus())
	plugintest.WantStatus(t, "no node", status, fwk.Unschedulable, "PreemptionRefused: ")
	expect.Same(t, "nominated to", "", result.NominatedNodeName)
	until(t, s, pod, reasons.NoNodeFits)
	other := plugintest.Pod("other", 600) // both do not fit
	h.Create(t, other)
	until(t, s, other, "")

	// Nothing is recorded for pods without a queue.
	foreign := plugintest.Foreign(plugintest.Pod("foreign", 1))
	_, status = plugin.PostFilter(t.Context(), framework.NewCycleState(), foreign, nil)
	plugintest.WantStatus(t, "a pod of no queue", status, fwk.Unschedulable, "")
	expect.Holds(t, s.Check())
}

// TestNoNodeCountsTheNodes: the text counts nodes by what was missing, and omits what is
// outdated a moment later.
func TestNoNodeCountsTheNodes(t *testing.T) {
	full, absent := fwk.NewStatus(fwk.Unschedulable, "Insufficient cpu"), fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "had a taint")
	two := fwk.NewStatus(fwk.Unschedulable, "Insufficient memory", "Insufficient cpu")
	some := framework.NewNodeToStatus(map[string]*fwk.Status{"n1": full, "n2": two, "n3": full}, absent)
	all := framework.NewNodeToStatus(map[string]*fwk.Status{"n1": full}, absent)
	law := reasons.New(reasons.PreemptionRefused, "no pod may go")
	for _, c := range []struct {
		name     string
		statuses fwk.NodeToStatusReader
		nodes    int
		why      reasons.Reason
		want     string
	}{
		{"each by its reasons", some, 3, law, "none of 3 nodes could take the pod: 3 Insufficient cpu, 1 Insufficient memory; no pod may go"},
		{"those that no filter saw", some, 5, law, "none of 5 nodes could take the pod: 3 Insufficient cpu, 1 Insufficient memory, 2 had a taint; no pod may go"},
		{"more than the lister has", some, 1, law, "none of 3 nodes could take the pod: 3 Insufficient cpu, 1 Insufficient memory; no pod may go"},
		{"it waits for its delay", all, 1, reasons.New(reasons.PreemptionDelayed, "in 3s"), "none of 1 nodes could take the pod: 1 Insufficient cpu"},
		{"its turn comes", all, 1, reasons.New(reasons.PreemptionPaced, "in the next round"), "none of 1 nodes could take the pod: 1 Insufficient cpu"},
		{"nothing more is known", all, 1, reasons.Reason{}, "none of 1 nodes could take the pod: 1 Insufficient cpu"},
		{"no node", framework.NewNodeToStatus(nil, absent), 0, law, "no node could take the pod; no pod may go"},
		{"no statuses", nil, 3, law, "no node could take the pod; no pod may go"},
	} {
		got := noNode(c.statuses, c.nodes, c.why)
		expect.Same(t, c.name, "NoNodeFits: "+c.want, string(got.Code)+": "+got.Text)
	}
}

// TestEndedPodsAreRecognised: a pod that the scheduler's cache still has is gone if the
// informers do not have it, have another pod of its name, or have it as ended.
func TestEndedPodsAreRecognised(t *testing.T) {
	for _, c := range []struct {
		name, known string // the UID that the informers have; empty for none
		phase       corev1.PodPhase
		over        bool
	}{
		{"runs", "1", corev1.PodRunning, false},
		{"assumed", "1", corev1.PodPending, false},
		{"deleted and made again", "2", corev1.PodRunning, true},
		{"done", "1", corev1.PodSucceeded, true},
		{"failed", "1", corev1.PodFailed, true},
		{"deleted", "", "", true},
	} {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		pod := plugintest.Pod("p", 1)
		if pod.UID, pod.Status.Phase = types.UID(c.known), c.phase; c.known != "" {
			expect.OK(t, indexer.Add(pod.DeepCopy()))
		}
		pod.UID, pod.Status.Phase = "1", corev1.PodRunning
		pl := &Plugin{pods: corelisters.NewPodLister(indexer)}
		expect.Same(t, c.name+": gone", c.over, !pl.exists(pod))
	}
}
