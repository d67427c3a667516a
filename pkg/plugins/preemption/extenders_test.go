package preemption_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler" //nolint:depguard // for its HTTP extender; upstream's suites compile none of our tests
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// httpExtender is an extender that upstream's client calls over HTTP.
type httpExtender struct {
	schedulerconfig.Extender
	// preempt changes the proposed victims. status is the response code if it is not 0.
	preempt func(map[string]*extenderv1.MetaVictims)
	filter  func(node string) (passes, unresolvable bool)
	status  int

	mu    sync.Mutex
	asked []string // verb, node, proposed victims
}

// set changes the status of responses.
func (e *httpExtender) set(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status = status
}

func (e *httpExtender) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.status != 0 {
		e.asked = append(e.asked, "failed")
		w.WriteHeader(e.status)
		return
	}
	var answer any
	switch verb := strings.TrimPrefix(r.URL.Path, "/"); verb {
	case "preempt":
		answer = e.answerPreempt(r)
	case "filter":
		answer = e.answerFilter(r)
	default:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (e *httpExtender) answerPreempt(r *http.Request) any {
	args := extenderv1.ExtenderPreemptionArgs{}
	_ = json.NewDecoder(r.Body).Decode(&args)
	plan := args.NodeNameToMetaVictims
	if plan == nil { // an extender without a cache of its own receives whole pods
		plan = map[string]*extenderv1.MetaVictims{}
		for node, victims := range args.NodeNameToVictims {
			plan[node] = &extenderv1.MetaVictims{NumPDBViolations: victims.NumPDBViolations}
			for _, p := range victims.Pods {
				plan[node].Pods = append(plan[node].Pods, &extenderv1.MetaPod{UID: string(p.UID)})
			}
		}
	}
	for node, victims := range plan {
		said := "preempt " + node
		for _, p := range victims.Pods {
			said += strings.Replace(p.UID, "uid-", " ", 1)
		}
		e.asked = append(e.asked, said)
	}
	if e.preempt != nil {
		e.preempt(plan)
	}
	return extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: plan}
}

func (e *httpExtender) answerFilter(r *http.Request) any {
	args := extenderv1.ExtenderArgs{}
	_ = json.NewDecoder(r.Body).Decode(&args)
	result := extenderv1.ExtenderFilterResult{
		NodeNames: &[]string{}, FailedNodes: extenderv1.FailedNodesMap{}, FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{},
	}
	for _, node := range *args.NodeNames {
		e.asked = append(e.asked, "filter "+node)
		switch passes, never := e.filter(node); {
		case passes:
			*result.NodeNames = append(*result.NodeNames, node)
		case never:
			result.FailedAndUnresolvableNodes[node] = "no device"
		default:
			result.FailedNodes[node] = "no device"
		}
	}
	return result
}

// withExtenders adds extenders to a cluster, made as the scheduler does from its
// configuration.
func withExtenders(t testing.TB, extenders ...*httpExtender) frameworkruntime.Option {
	t.Helper()
	var out []fwk.Extender
	for _, e := range extenders {
		server := httptest.NewServer(e)
		t.Cleanup(server.Close)
		e.URLPrefix = server.URL
		if e.filter != nil {
			e.FilterVerb, e.NodeCacheCapable = "filter", true
		}
		made := expect.Get(scheduler.NewHTTPExtender(&e.Extender))(t)
		out = append(out, made)
	}
	return frameworkruntime.WithExtenders(out)
}

func preempting(e schedulerconfig.Extender) schedulerconfig.Extender {
	e.PreemptVerb = "preempt"
	return e
}

// refusing leaves the node out of the answer.
func refusing(nodes ...string) func(map[string]*extenderv1.MetaVictims) {
	return func(plan map[string]*extenderv1.MetaVictims) {
		for _, n := range nodes {
			delete(plan, n)
		}
	}
}

// passing is a filter verb that rejects the nodes.
func passing(never bool, refused ...string) func(string) (bool, bool) {
	return func(node string) (bool, bool) { return !slices.Contains(refused, node), never }
}

// TestExtendersAreAsked: victims are chosen only where the scheduler's extenders accept
// the pod, too. Without extenders, pod v1 of node n1 is chosen, because one victim is
// better than two.
func TestExtendersAreAsked(t *testing.T) {
	ownCache := schedulerconfig.Extender{NodeCacheCapable: true}
	device := schedulerconfig.Extender{ManagedResources: []schedulerconfig.ExtenderManagedResource{{Name: "example.com/device"}}}
	ignorable := schedulerconfig.Extender{Ignorable: true}
	instead := func(plan map[string]*extenderv1.MetaVictims) {
		if plan["n2"] != nil {
			plan["n2"].Pods = plan["n2"].Pods[:1]
		}
		delete(plan, "n1")
	}
	none := func(plan map[string]*extenderv1.MetaVictims) {
		for _, v := range plan {
			v.Pods = nil
		}
	}
	on1, on2 := []string{"v1"}, []string{"v2", "v3"}
	for name, c := range map[string]struct {
		extenders []*httpExtender
		node      string // the held node; empty for none
		chosen    []string
		text      string
		// asked is the first request to the last extender, and the number of all
		// requests.
		asked string
		times int
	}{
		"agrees": {extenders: []*httpExtender{{Extender: preempting(ownCache)}}, node: "n1", chosen: on1, asked: "preempt n1 v1", times: 1},
		"agrees, is sent whole pods": {extenders: []*httpExtender{{Extender: preempting(schedulerconfig.Extender{})}}, node: "n1", chosen: on1,
			asked: "preempt n1 v1", times: 1},
		"refuses the best node": {extenders: []*httpExtender{{Extender: preempting(ownCache), preempt: refusing("n1")}}, node: "n2", chosen: on2},
		"one of two refuses": {extenders: []*httpExtender{{Extender: preempting(ownCache), preempt: refusing("n1")}, {Extender: preempting(ownCache)}},
			node: "n2", chosen: on2, asked: "preempt n2 v2 v3", times: 1},
		"refuses all": {extenders: []*httpExtender{{Extender: preempting(ownCache), preempt: refusing("n1", "n2")}},
			text: "refuses node n1: the pods that would go do not make room there"},
		"has fewer go":          {extenders: []*httpExtender{{Extender: preempting(ownCache), preempt: instead}}, node: "n2", chosen: on2},
		"names none":            {extenders: []*httpExtender{{Extender: preempting(ownCache), preempt: none}}, text: "expected at least one victim pod on node n1"},
		"names none, ignorable": {extenders: []*httpExtender{{Extender: preempting(ignorable), preempt: none}}, text: "it named no pods that would go"},
		"fails": {extenders: []*httpExtender{{Extender: preempting(ownCache), status: http.StatusInternalServerError}},
			text: "code 500; no pod is preempted until the extender answers", asked: "failed", times: 1},
		"fails, ignorable": {extenders: []*httpExtender{{Extender: preempting(ignorable), status: http.StatusInternalServerError}},
			node: "n1", chosen: on1, asked: "failed", times: 1},
		"is not interested":    {extenders: []*httpExtender{{Extender: preempting(device), preempt: refusing("n1", "n2")}}, node: "n1", chosen: on1},
		"filters only, passes": {extenders: []*httpExtender{{filter: passing(false)}}, node: "n1", chosen: on1, asked: "filter n1", times: 1},
		"filters only":         {extenders: []*httpExtender{{filter: passing(false, "n1")}}, node: "n2", chosen: on2, asked: "filter n1", times: 2},
		"filters only, never":  {extenders: []*httpExtender{{filter: passing(true, "n1", "n2")}}, text: "refuses node n1: no device"},
		"filters only, all": {extenders: []*httpExtender{{filter: passing(false, "n1", "n2")}},
			text: "refuses node n1: no device; it has no preemptVerb, so it cannot be asked which pods would have to go"},
		"filters, and may be asked": {extenders: []*httpExtender{{Extender: preempting(schedulerconfig.Extender{}), filter: passing(false, "n1", "n2")}},
			node: "n1", chosen: on1, asked: "preempt n1 v1", times: 1},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newCluster(t, twoQueues, []*corev1.Node{node("n1", 200), node("n2", 200)}, []*corev1.Pod{
				running("v1", "n1", 200), running("v2", "n2", 100), running("v3", "n2", 100),
			}, withExtenders(t, c.extenders...))
			on, status := cl.answer(t, plugintest.Pod("asker", 150))
			if c.node != "" {
				wantAnswer(t, on, status, c.node, fwk.UnschedulableAndUnresolvable, "MakingRoom")
			} else if on != "" || !strings.Contains(status.Message(), c.text) {
				t.Errorf("node %q, %q; want none, %q", on, status.Message(), c.text)
			}
			cl.wantChosen(t, c.chosen...)
			expect.Same(t, "a node is held", c.node != "", cl.store.Holds().Held())
			last := c.extenders[len(c.extenders)-1]
			if c.asked != "" && (len(last.asked) != c.times || last.asked[0] != c.asked) {
				t.Errorf("asked %q, want %d times, %q first", last.asked, c.times, c.asked)
			}
		})
	}
}

// naming replaces the victims in the answer by the given pods.
func naming(pods ...string) func(map[string]*extenderv1.MetaVictims) {
	return func(plan map[string]*extenderv1.MetaVictims) {
		for _, v := range plan {
			v.Pods = nil
			for _, name := range pods {
				v.Pods = append(v.Pods, &extenderv1.MetaPod{UID: "uid-" + name})
			}
		}
	}
}

// TestExtendersNameOtherPods: an extender that returns fewer victims agrees. One that
// returns other victims is called again with more pods. The laws decide which may be
// preempted.
func TestExtendersNameOtherPods(t *testing.T) {
	peer := func(name string) *corev1.Pod { // of the asker's queue
		p := running(name, "n1", 100)
		p.Labels["queue"] = "root.a"
		return p
	}
	for name, c := range map[string]struct {
		named  []string
		pods   []*corev1.Pod
		asker  *corev1.Pod
		chosen []string
		text   string
	}{
		"all candidates are proposed": {named: []string{"v2"}, asker: withPort(plugintest.Pod("asker", 50), 80), chosen: []string{"v2"},
			pods: []*corev1.Pod{running("v1", "n1", 10), withPort(running("v2", "n1", 10), 80), running("v3", "n1", 10)}},
		"not the one of least harm": {named: []string{"v2"}, asker: prioritized(plugintest.Pod("asker", 100), 5), chosen: []string{"v2"},
			pods: []*corev1.Pod{running("v1", "n1", 100), prioritized(running("v2", "n1", 100), 1)}},
		"no law lets it go": {named: []string{"v1", "kept"}, asker: plugintest.Pod("asker", 100),
			pods: []*corev1.Pod{running("v1", "n1", 100), peer("kept")}, text: "pod ns/kept would have to go, too, and the plan does not name it"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &httpExtender{Extender: preempting(schedulerconfig.Extender{}), preempt: naming(c.named...)}
			cl := newCluster(t, twoQueues, []*corev1.Node{node("n1", 200)}, c.pods, withExtenders(t, e))
			on, status := cl.answer(t, c.asker)
			if c.text == "" {
				wantAnswer(t, on, status, "n1", fwk.UnschedulableAndUnresolvable, "MakingRoom")
			} else if on != "" || !strings.Contains(status.Message(), c.text) {
				t.Errorf("node %q, %q; want none, %q", on, status.Message(), c.text)
			}
			cl.wantChosen(t, c.chosen...)
		})
	}
}

// TestTheOnlyNodeIsAskedAboutAgain: while an extender does not answer, a hold of the node
// stays, the decision is recorded, and the pod is requeued after the retry interval.
func TestTheOnlyNodeIsAskedAboutAgain(t *testing.T) {
	for _, profile := range []string{plugintest.Profile, corev1.DefaultSchedulerName} {
		t.Run(profile, func(t *testing.T) {
			e := &httpExtender{Extender: preempting(schedulerconfig.Extender{}), status: http.StatusInternalServerError}
			cl := newCluster(t, twoQueues, []*corev1.Node{node("n1", 200)}, []*corev1.Pod{running("v1", "n1", 200)}, withExtenders(t, e))
			decided := record.New(cl.store.Follow(output.Decisions))
			asker := daemon("asker", "n1", 50)
			asker.Spec.SchedulerName = profile
			_, status := cl.answer(t, asker)
			decided.Take()
			if got := decided.Decisions(record.Query{}); len(got) != 1 || got[0].Kind != record.NodeBound || got[0].Outcome != planner.Refuse || !strings.HasSuffix(status.Message(), got[0].Message) {
				t.Errorf("on record: %+v, want one refusal with %q", got, status.Message())
			}
			backsOff := func(after time.Duration) bool {
				cl.now = cl.now.Add(after)
				cl.store.Tick(cl.now)
				x, _ := cl.store.Explanation(asker.UID, cl.now)
				return x.State == "BackingOff"
			}
			if !backsOff(14 * time.Second) {
				t.Error("it came back before the retry interval was over")
			}
			if backsOff(2 * time.Second) {
				t.Error("it did not come back after the retry interval")
			}
			e.set(0)
			on, status := cl.answer(t, asker)
			wantAnswer(t, on, status, "n1", fwk.UnschedulableAndUnresolvable, "MakingRoom")
			e.set(http.StatusInternalServerError)
			cl.answer(t, asker)
			if !cl.store.Holds().Held() {
				t.Error("the hold ended")
			}
			expect.Holds(t, cl.store.Check())
		})
	}
}

// TestExtendersKnowWhatLeaves: pods that leave in any case are among the proposed
// victims.
func TestExtendersKnowWhatLeaves(t *testing.T) {
	leaves := running("v1", "n1", 100)
	short := int64(60)
	leaves.DeletionTimestamp, leaves.DeletionGracePeriodSeconds = &metav1.Time{Time: plugintest.Pod("x", 1).CreationTimestamp.Time}, &short
	e := &httpExtender{Extender: preempting(schedulerconfig.Extender{})}
	c := newCluster(t, twoQueues, []*corev1.Node{node("n1", 200)}, []*corev1.Pod{leaves, running("v2", "n1", 100)}, withExtenders(t, e))
	on, status := c.answer(t, plugintest.Pod("asker", 200))
	wantAnswer(t, on, status, "n1", fwk.UnschedulableAndUnresolvable, "MakingRoom")
	c.wantChosen(t, "v2")
	expect.Same(t, "asked", []string{"preempt n1 v1 v2"}, e.asked)
}

// TestExtendersJudgeTheOnlyNode: the node that a DaemonSet pod requires is held only if
// the extenders accept the pod, too.
func TestExtendersJudgeTheOnlyNode(t *testing.T) {
	for name, c := range map[string]struct {
		extender *httpExtender
		text     string
	}{
		"agrees":           {&httpExtender{Extender: preempting(schedulerconfig.Extender{})}, ""},
		"refuses":          {&httpExtender{Extender: preempting(schedulerconfig.Extender{}), preempt: refusing("n1")}, "node n1 is not held: extender"},
		"fails":            {&httpExtender{Extender: preempting(schedulerconfig.Extender{}), status: http.StatusInternalServerError}, "PreemptionRefused: extender "},
		"fewer":            {&httpExtender{Extender: preempting(schedulerconfig.Extender{}), preempt: naming("v1")}, ""},
		"fails, ignorable": {&httpExtender{Extender: preempting(schedulerconfig.Extender{Ignorable: true}), status: http.StatusInternalServerError}, ""},
		"filters only":     {&httpExtender{filter: passing(false, "n1")}, "it has no preemptVerb"},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newCluster(t, twoQueues, []*corev1.Node{node("n1", 400)}, []*corev1.Pod{withPort(running("v1", "n1", 200), 80), running("v2", "n1", 100)}, withExtenders(t, c.extender))
			on, status := cl.answer(t, withPort(daemon("asker", "n1", 50), 80))
			if c.text == "" {
				wantAnswer(t, on, status, "n1", fwk.UnschedulableAndUnresolvable, "MakingRoom")
				cl.wantChosen(t, "v1")
				return
			}
			if on != "" || !strings.Contains(status.Message(), c.text) {
				t.Errorf("node %q, %q; want none, %q", on, status.Message(), c.text)
			}
			cl.wantChosen(t)
			if cl.store.Holds().Held() {
				t.Error("the node is held")
			}
		})
	}
}

// TestPreviewAsksExtenders: a preview reports what a cycle would do.
func TestPreviewAsksExtenders(t *testing.T) {
	for name, c := range map[string]struct {
		extender *httpExtender
		milli    int64
		outcome  string
		text     string
	}{
		"a node that fits":       {&httpExtender{filter: passing(false)}, 1000, documents.PreviewFits, "would fit on 1 of 2 nodes"},
		"refuses what fits":      {&httpExtender{filter: passing(true, "roomy", "full")}, 1000, documents.PreviewWaits, ": no device"},
		"agrees with a plan":     {&httpExtender{Extender: preempting(schedulerconfig.Extender{})}, 3000, documents.PreviewPreempts, "would make others leave"},
		"refuses a plan":         {&httpExtender{Extender: preempting(schedulerconfig.Extender{}), preempt: refusing("full", "roomy")}, 3000, documents.PreviewWaits, "do not make room there"},
		"does not answer a plan": {&httpExtender{Extender: preempting(schedulerconfig.Extender{}), status: http.StatusInternalServerError}, 3000, documents.PreviewWaits, "until the extender answers"},
	} {
		t.Run(name, func(t *testing.T) {
			_, pv := previewCluster(t, withExtenders(t, c.extender))
			out := previewOf(t, pv, plugintest.Pod("new", c.milli))
			if out.Outcome != c.outcome || !strings.Contains(out.Summary, c.text) {
				t.Errorf("%s: %s; want %s: %s", out.Outcome, out.Summary, c.outcome, c.text)
			}
		})
	}
}
