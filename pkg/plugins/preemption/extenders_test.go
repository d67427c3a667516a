package preemption_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
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

// httpExtender is an extender that upstream's client calls over HTTP, with one request at a time.
type httpExtender struct {
	schedulerconfig.Extender
	// preempt changes the proposed victims, unless mute, which has no verb for them. status is
	// the response code if it is not 0.
	preempt func(map[string]*extenderv1.MetaVictims)
	mute    bool
	filter  func(node string) (passes, unresolvable bool)
	status  int
	asked   []string // verb, node, proposed victims
}

type extenders = []*httpExtender

// ignorable is the configuration of an extender without which the scheduler goes on.
var ignorable = schedulerconfig.Extender{Ignorable: true}

// fails is the response code of an extender that fails.
const fails = http.StatusInternalServerError

func (e *httpExtender) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e.status != 0 {
		e.asked = append(e.asked, "failed")
		w.WriteHeader(e.status)
		return
	}
	answer := e.answerPreempt
	if r.URL.Path == "/filter" {
		answer = e.answerFilter
	}
	_ = json.NewEncoder(w).Encode(answer(r))
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

// withExtenders adds extenders to a cluster, made as the scheduler does from its configuration.
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
		if !e.mute {
			e.PreemptVerb = "preempt"
		}
		out = append(out, expect.Get(scheduler.NewHTTPExtender(&e.Extender))(t))
	}
	return frameworkruntime.WithExtenders(out)
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
// the pod, too. Without extenders, pod v1 of node n1 is chosen.
func TestExtendersAreAsked(t *testing.T) {
	ownCache := schedulerconfig.Extender{NodeCacheCapable: true}
	device := schedulerconfig.Extender{ManagedResources: []schedulerconfig.ExtenderManagedResource{{Name: "example.com/device"}}}
	instead := func(plan map[string]*extenderv1.MetaVictims) {
		if plan["n2"] != nil {
			plan["n2"].Pods = plan["n2"].Pods[:1]
		}
		delete(plan, "n1")
	}
	for name, c := range map[string]struct {
		extenders extenders
		node      string // the held node; empty for none
		text      string // why none is held
		asked     string // the requests to the last extender; empty for any
	}{
		"agrees": {extenders: extenders{{Extender: ownCache}},
			node: "n1", asked: "preempt n1 v1"},
		"agrees, is sent whole pods": {extenders: extenders{{}},
			node: "n1", asked: "preempt n1 v1"},
		"refuses the best node": {extenders: extenders{{Extender: ownCache, preempt: refusing("n1")}},
			node: "n2"},
		"one of two refuses": {extenders: extenders{{Extender: ownCache, preempt: refusing("n1")}, {Extender: ownCache}},
			node: "n2", asked: "preempt n2 v2 v3"},
		"refuses all": {extenders: extenders{{Extender: ownCache, preempt: refusing("n1", "n2")}},
			text: "refuses node n1: the pods that would go do not make room there"},
		"has fewer go": {extenders: extenders{{Extender: ownCache, preempt: instead}},
			node: "n2"},
		"names none": {extenders: extenders{{Extender: ownCache, preempt: naming()}},
			text: "expected at least one victim pod on node n1"},
		"names none, ignorable": {extenders: extenders{{Extender: ignorable, preempt: naming()}},
			text: "it named no pods that would go"},
		"fails": {extenders: extenders{{Extender: ownCache, status: fails}},
			text: "code 500; no pod is preempted until the extender answers", asked: "failed"},
		"fails, ignorable": {extenders: extenders{{Extender: ignorable, status: fails}},
			node: "n1", asked: "failed"},
		"is not interested": {extenders: extenders{{Extender: device, preempt: refusing("n1", "n2")}},
			node: "n1"},
		"filters only, passes": {extenders: extenders{{mute: true, filter: passing(false)}},
			node: "n1", asked: "filter n1"},
		"filters only": {extenders: extenders{{mute: true, filter: passing(false, "n1")}},
			node: "n2", asked: "filter n1, filter n2"},
		"filters only, never": {extenders: extenders{{mute: true, filter: passing(true, "n1", "n2")}},
			text: "refuses node n1: no device"},
		"filters only, all": {extenders: extenders{{mute: true, filter: passing(false, "n1", "n2")}},
			text: "refuses node n1: no device; it has no preemptVerb, so it cannot be asked which pods would have to go"},
		"filters, and may be asked": {extenders: extenders{{filter: passing(false, "n1", "n2")}},
			node: "n1", asked: "preempt n1 v1"},
	} {
		t.Run(name, func(t *testing.T) {
			cl := oneVictimOrTwo(t, withExtenders(t, c.extenders...))
			chosen := map[string][]string{"n1": {"v1"}, "n2": {"v2", "v3"}}[c.node]
			cl.answers(t, plugintest.Pod("asker", 150), c.node, c.text, chosen...)
			expect.Same(t, "a node is held", c.node != "", cl.store.Holds().Held())
			asked := strings.Join(c.extenders[len(c.extenders)-1].asked, ", ")
			expect.That(t, c.asked == "" || asked == c.asked, "asked %q, want %q", asked, c.asked)
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

// TestExtendersNameOtherPods: an extender that returns fewer victims agrees. One that returns other
// victims is called again with more pods. The laws decide which may be preempted.
func TestExtendersNameOtherPods(t *testing.T) {
	peer := labelled(running("kept", "n1", 100), "queue", "root.a") // of the asker's queue
	for name, c := range map[string]struct {
		named  []string
		pods   podList
		asker  *corev1.Pod
		node   string // the held node; empty for none
		text   string
		chosen []string
	}{
		"all candidates are proposed": {named: []string{"v2"}, asker: withPort(plugintest.Pod("asker", 50), 80),
			pods: podList{running("v1", "n1", 10), withPort(running("v2", "n1", 10), 80), running("v3", "n1", 10)},
			node: "n1", chosen: []string{"v2"}},
		"not the one of least harm": {named: []string{"v2"}, asker: prioritized(plugintest.Pod("asker", 100), 5),
			pods: podList{running("v1", "n1", 100), prioritized(running("v2", "n1", 100), 1)},
			node: "n1", chosen: []string{"v2"}},
		"no law lets it go": {named: []string{"v1", "kept"}, asker: plugintest.Pod("asker", 100),
			pods: podList{running("v1", "n1", 100), peer},
			text: "pod ns/kept would have to go, too, and the plan does not name it"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &httpExtender{preempt: naming(c.named...)}
			cl := newCluster(t, twoQueues, nodeList{node("n1", 200)}, c.pods, withExtenders(t, e))
			cl.answers(t, c.asker, c.node, c.text, c.chosen...)
		})
	}
}

// TestTheOnlyNodeIsAskedAboutAgain: while an extender does not answer, a hold of the node
// stays, the decision is recorded, and the pod is requeued after the retry interval.
func TestTheOnlyNodeIsAskedAboutAgain(t *testing.T) {
	bothProfiles(t, func(t *testing.T, profile string) {
		e := &httpExtender{status: fails}
		cl := fullNode(t, withExtenders(t, e))
		decided := record.New(cl.store.Follow(output.Decisions))
		asker := of(profile, daemon("asker", "n1", 50))
		_, status := cl.answer(t, asker)
		decided.Take()
		got := decided.Decisions(record.Query{})
		expect.That(t, len(got) == 1 && got[0].Kind == record.NodeBound && got[0].Outcome == planner.Refuse &&
			strings.HasSuffix(status.Message(), got[0].Message),
			"on record: %+v, want one refusal with %q", got, status.Message())
		backsOff := func(after time.Duration) bool {
			cl.now = cl.now.Add(after)
			cl.store.Tick(cl.now)
			x, _ := cl.store.Explanation(asker.UID, cl.now)
			return x.State == "BackingOff"
		}
		expect.That(t, backsOff(14*time.Second), "it came back before the retry interval was over")
		expect.That(t, !backsOff(2*time.Second), "it did not come back after the retry interval")
		e.status = 0
		cl.answers(t, asker, "n1", "", "v1")
		e.status = fails
		cl.answer(t, asker)
		expect.That(t, cl.store.Holds().Held(), "the hold ended")
	})
}

// TestExtendersKnowWhatLeaves: pods that leave in any case are among the proposed victims.
func TestExtendersKnowWhatLeaves(t *testing.T) {
	leaves := running("v1", "n1", 100)
	leaves.DeletionTimestamp, leaves.DeletionGracePeriodSeconds = &metav1.Time{}, new(int64(60))
	e, v2 := &httpExtender{}, running("v2", "n1", 100)
	c := newCluster(t, twoQueues, nodeList{node("n1", 200)}, podList{leaves, v2}, withExtenders(t, e))
	c.answers(t, plugintest.Pod("asker", 200), "n1", "", "v2")
	expect.Same(t, "asked", []string{"preempt n1 v1 v2"}, e.asked)
}

// TestExtendersJudgeTheOnlyNode: the node that a DaemonSet pod requires is held only if
// the extenders accept the pod, too.
func TestExtendersJudgeTheOnlyNode(t *testing.T) {
	for name, c := range map[string]struct {
		extender *httpExtender
		node     string // the held node; empty for none
		text     string
	}{
		"agrees":           {&httpExtender{}, "n1", ""},
		"refuses":          {&httpExtender{preempt: refusing("n1")}, "", "node n1 is not held: extender"},
		"fails":            {&httpExtender{status: fails}, "", "PreemptionRefused: extender "},
		"fewer":            {&httpExtender{preempt: naming("v1")}, "n1", ""},
		"fails, ignorable": {&httpExtender{Extender: ignorable, status: fails}, "n1", ""},
		"filters only":     {&httpExtender{mute: true, filter: passing(false, "n1")}, "", "it has no preemptVerb"},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newCluster(t, twoQueues, nodeList{node("n1", 400)}, podList{
				withPort(running("v1", "n1", 200), 80), running("v2", "n1", 100),
			}, withExtenders(t, c.extender))
			chosen := map[string][]string{"n1": {"v1"}}[c.node]
			cl.answers(t, withPort(daemon("asker", "n1", 50), 80), c.node, c.text, chosen...)
			expect.Same(t, "the node is held", c.node != "", cl.store.Holds().Held())
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
		"a node that fits": {&httpExtender{mute: true, filter: passing(false)}, 1000,
			documents.PreviewFits, "would fit on 1 of 2 nodes"},
		"refuses what fits": {&httpExtender{mute: true, filter: passing(true, "roomy", "full")}, 1000,
			documents.PreviewWaits, ": no device"},
		"agrees with a plan": {&httpExtender{}, 3000, documents.PreviewPreempts, "would make others leave"},
		"refuses a plan": {&httpExtender{preempt: refusing("full", "roomy")}, 3000,
			documents.PreviewWaits, "do not make room there"},
		"does not answer a plan": {&httpExtender{status: fails}, 3000, documents.PreviewWaits, "until the extender answers"},
	} {
		t.Run(name, func(t *testing.T) {
			_, pv := previewCluster(t, withExtenders(t, c.extender))
			out := previewOf(t, pv, plugintest.Pod("new", c.milli))
			expect.That(t, out.Outcome == c.outcome && strings.Contains(out.Summary, c.text),
				"%s: %s; want %s: %s", out.Outcome, out.Summary, c.outcome, c.text)
			expect.That(t, c.extender.status != fails || !out.Decision.Incomplete, "without an answer no choice was weighed: %s", out.Summary)
		})
	}
}
