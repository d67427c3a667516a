package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest"
)

const explainQueues = `
partitions:
- name: default
  placementrules:
  - {name: provided, create: false}
  queues:
  - name: root
    queues:
    - {name: free, submitacl: "*"}
    - {name: closed, submitacl: "boss"}
    - {name: small, submitacl: "*", resources: {max: {vcore: 1}}}
    - {name: one, submitacl: "*", maxapplications: 1}
    - name: parent
      submitacl: "*"
      queues: [{name: leaf}]
    - name: limited
      submitacl: "*"
      limits:
      - {limit: ann, users: [ann], maxresources: {vcore: 1}}
      - {limit: bob, users: [bob], maxapplications: 1}
      - {limit: staff, groups: [staff], maxresources: {vcore: 2}}
      - {limit: crew, groups: [crew], maxapplications: 1}
    - {name: borrows, submitacl: "*", properties: {preemption.delay: 1s}}
    - {name: owed, submitacl: "*", resources: {guaranteed: {vcore: 8}}, properties: {preemption.delay: 1s}}
    - {name: patient, submitacl: "*", resources: {guaranteed: {vcore: 8}}, properties: {preemption.delay: 1h}}
`

// explanation asks REST about a pod; nil where it is not known.
func (e *env) explanation(ctx context.Context, p *corev1.Pod) *rest.Explanation {
	e.Helper()
	body, err := fetch(ctx, http.DefaultClient, fmt.Sprintf("http://%s/api/v1/pods/%s/%s/explain", e.rest, p.Namespace, p.Name))
	if err != nil {
		return nil
	}
	var x rest.Explanation
	e.ok(json.Unmarshal(body, &x))
	return &x
}

// codesOf are all codes that an explanation names.
func codesOf(x *rest.Explanation) []string {
	var out []string
	add := func(list ...*rest.Reason) {
		for _, r := range list {
			if r != nil {
				out = append(out, r.Code)
			}
		}
	}
	add(x.Reason, x.Limits)
	if x.Room != nil {
		add(x.Room.Reason, x.Room.LastRefusal)
	}
	return out
}

// awaitExplained waits until a pod is explained by a code, with what to do.
func (e *env) awaitExplained(p *corev1.Pod, code reasons.Code) *rest.Explanation {
	e.Helper()
	var x *rest.Explanation
	eventually(e, patience, fmt.Sprintf("pod %s is explained by %s", p.Name, code), func() (bool, string) {
		if x = e.explanation(e.Context(), p); x == nil {
			return false, "it is not known"
		}
		text, err := json.Marshal(x)
		e.ok(err)
		return slices.Contains(codesOf(x), string(code)), string(text)
	})
	is := func(r *rest.Reason) bool { return r != nil && r.Code == string(code) }
	counts := is(x.Reason) || is(x.Limits) || x.State == "stuck" || x.State == "backing off" // else others cannot make room for it now
	if entry, known := reasons.Explain(code); !known || x.Summary == "" || counts && !slices.Contains(x.ToDo, entry.Remedy) {
		e.Errorf("%s: summary %q, to do %q", code, x.Summary, x.ToDo)
	}
	return x
}

// awaitLastHold waits until a pod's last hold is explained to have ended for a reason.
func (e *env) awaitLastHold(p *corev1.Pod, why reasons.Code) {
	e.Helper()
	eventually(e, patience, fmt.Sprintf("the last hold of pod %s ended by %s", p.Name, why), func() (bool, string) {
		x := e.explanation(e.Context(), p)
		if x == nil || x.LastHold == nil {
			return false, "it had none"
		}
		return x.LastHold.Reason == why && x.LastHold.Message != "", fmt.Sprintf("%+v", *x.LastHold)
	})
}

// explainedElsewhere are the codes for which TestExplanations has no pod, and why.
var explainedElsewhere = map[reasons.Code]string{
	reasons.Starting:                   "nothing is known of the pod's queue then; the pages of pkg/rest show the start",
	reasons.ConfigurationInvalid:       "nothing is known of the pod's queue then; TestBadConfigurationAtStart reads the conditions",
	reasons.ConfigurationUnreadable:    "nothing is known of the pod's queue then; the tests of the configuration's source",
	reasons.NamespaceAnnotationInvalid: "a warning for which nothing waits",
	reasons.SoftGangIgnored:            "a warning for which nothing waits",
	reasons.InOrder:                    "lasts for moments; pkg/queues/store/testdata/window.txt",
	reasons.BackingOff:                 "lasts for moments; pkg/queues/store/testdata/window.txt",
	reasons.PreemptionPaced:            "lasts for moments; the tests of the store",
	reasons.NodeHeld:                   "said of a node, in what FailedScheduling counts, and not of a pod; TestDaemonSetHoldsEnd reads it there",
	reasons.ConfigurationChanged:       "said of an attempt, which is made again at once; the tests of pkg/plugins/reservation",
	reasons.RoomAwaited:                "TestDaemonSetHoldsEnd asks",
	reasons.HoldTimedOut:               "TestHoldTimesOut asks",
	reasons.HoldSuperseded:             "a new hold ends soon after; TestHoldSuperseded reads the list of holds that ended",
	reasons.HoldNodeGone:               "TestHoldOfANodeThatGoes asks",
	reasons.HoldNodeUnschedulable:      "TestHoldOfANodeThatIsCordoned asks",
	reasons.HoldGivenUp:                "TestPlanThatFails asks",
	reasons.MakingRoom:                 "TestExplanations, when room is made",
	reasons.Preempted:                  "TestExplanations, when room is made",
	reasons.WaitingForRoom:             "TestExplanations, when a pod leaves",
	reasons.RoomImpossible:             "TestExplanations, of a DaemonSet",
	reasons.QueueDraining:              "TestExplanations, after a change of the configuration",
	reasons.PreemptionDisabled:         "TestExplanations, after a change of the configuration",
}

// explainCase is a pod that waits for a reason.
type explainCase struct {
	code    reasons.Code
	options []podOption
}

// unexplained are the codes of the table that have neither a case nor an entry in
// explainedElsewhere, and those that have both.
func unexplained(table []reasons.Entry, cases []explainCase, elsewhere map[reasons.Code]string) []reasons.Code {
	var out []reasons.Code
	for _, entry := range table {
		with := slices.ContainsFunc(cases, func(c explainCase) bool { return c.code == entry.Code })
		if with == (elsewhere[entry.Code] != "") {
			out = append(out, entry.Code)
		}
	}
	return out
}

func TestEveryReasonIsExplained(t *testing.T) {
	if codes := unexplained(reasons.Table(), explainCases("x"), explainedElsewhere); len(codes) > 0 {
		t.Errorf("no explanation is taken from a cluster for %v, and nothing says why, or both", codes)
	}
	table := append(reasons.Table(), reasons.Entry{Code: "New"})
	if codes := unexplained(table, explainCases("x"), explainedElsewhere); !slices.Equal(codes, []reasons.Code{"New"}) {
		t.Errorf("a new code is not noticed: %v", codes)
	}
}

// TestExplanations makes pods that wait, one for each reason that can be made to
// last, and asks why.
func TestExplanations(t *testing.T) {
	e := setup(t, explainQueues)
	e.useNodes(1, localcluster.NodeSpec{CPU: "6"})
	victim := e.createPod(e.pod("victim", "victim", inQueue("root.borrows"), requests("cpu", "2"), stopsAfter(time.Hour)))
	e.awaitRunning(victim)
	leaves := e.createPod(e.pod("leaves", "leaves", inQueue("root.borrows"), requests("cpu", "500m"), stopsAfter(time.Hour)))
	e.awaitRunning(leaves)
	for _, p := range []*corev1.Pod{
		e.pod("bobs", "bobs", inQueue("root.limited"), ofUser("bob"), requests("cpu", "100m")),
		e.pod("crews", "crews", inQueue("root.limited"), ofUser("eve", "crew"), requests("cpu", "100m")),
		e.pod("first", "first", inQueue("root.one"), requests("cpu", "100m")),
		e.pod("filler", "filler", inQueue("root.free"), requests("cpu", "3")),
	} {
		e.awaitRunning(e.createPod(p))
	}
	e.priorityClass("never", 0, neverPreempts)
	for _, s := range explainCases(e.id) {
		e.run(string(s.code), func(e *env) {
			name := "why-" + fmt.Sprintf("%x", len(e.id)) + "-" + lower(string(s.code))
			e.awaitExplained(e.createPod(e.pod(name, name, s.options...)), s.code)
		})
	}
	e.run("DaemonSet", func(e *env) {
		e.createDaemonSet("wide", inQueue("root.free"), requests("cpu", "50"))
		e.awaitExplained(e.awaitWaiting("wide", 1)[0], reasons.RoomImpossible)
	})
	e.run("preview and hold", func(e *env) { e.foretellAndHold(victim) })
	e.run("leaving pod", func(e *env) {
		e.delete(leaves)
		waits := e.createPod(e.pod("waits", "waits", inQueue("root.owed"), requests("cpu", "400m")))
		e.awaitExplained(waits, reasons.WaitingForRoom)
	})
	e.run("configuration", func(e *env) {
		changed := strings.Replace(explainQueues, `    - {name: one, submitacl: "*", maxapplications: 1}`+"\n", "", 1)
		e.configure(strings.Replace(changed, "- name: default\n", "- name: default\n  preemption: {enabled: false}\n", 1))
		e.awaitQueue("root.one", "is draining", func(q *rest.Queue) bool { return q.Status == "Draining" })
		e.awaitExplained(e.createPod(e.pod("new", "new", inQueue("root.one"))), reasons.QueueDraining)
		e.awaitExplained(e.createPod(e.pod("stuck", "stuck", inQueue("root.owed"), requests("cpu", "5"))), reasons.PreemptionDisabled)
	})
}

// explainCases are the pods of TestExplanations; names of the test begin with id.
func explainCases(id string) []explainCase {
	return []explainCase{
		{reasons.SchedulingGated, []podOption{inQueue("root.free"), gated}},
		{reasons.RequestTooLarge, []podOption{inQueue("root.free"), requests("memory", "7Ei")}},
		{reasons.NoPlacementRuleMatched, nil},
		{reasons.QueueNotFound, []podOption{inQueue("root.nowhere")}},
		{reasons.QueueNotLeaf, []podOption{inQueue("root.parent")}},
		{reasons.SubmitDenied, []podOption{inQueue("root.closed")}},
		{reasons.InvalidQueueName, []podOption{func(p *corev1.Pod) { p.Annotations[placement.KeyQueue] = "root.a b" }}},
		{reasons.InvalidUserInfo, []podOption{inQueue("root.free"), annotated(placement.KeyUserInfo, "me")}},
		{reasons.HardGangUnsupported, []podOption{
			inQueue("root.free"), annotated(placement.KeyPolicyParameters, "gangSchedulingStyle=Hard"),
			annotated(placement.KeyTaskGroups, `[{"name":"g","minMember":2}]`),
		}},
		{reasons.OverMax, []podOption{inQueue("root.small"), requests("cpu", "2")}},
		{reasons.OverUserLimit, []podOption{inQueue("root.limited"), ofUser("ann"), requests("cpu", "2")}},
		{reasons.OverGroupLimit, []podOption{inQueue("root.limited"), ofUser("sue", "staff"), requests("cpu", "3")}},
		{reasons.MaxApplications, []podOption{inQueue("root.one"), requests("cpu", "100m")}},
		{reasons.UserMaxApplications, []podOption{inQueue("root.limited"), ofUser("bob"), requests("cpu", "100m")}},
		{reasons.GroupMaxApplications, []podOption{inQueue("root.limited"), ofUser("ned", "crew"), requests("cpu", "100m")}},
		{reasons.NoNodeFits, []podOption{inQueue("root.free"), requests("cpu", "50")}},
		{reasons.PreemptionRefused, []podOption{inQueue("root.borrows"), requests("cpu", "50")}},
		{reasons.PreemptionDelayed, []podOption{inQueue("root.patient"), requests("cpu", "2")}},
		{reasons.PlacementRuleFailed, []podOption{annotated(placement.KeyQueue, placement.RecoveryQueue)}},
		{reasons.PreemptionNever, []podOption{inQueue("root.borrows"), requests("cpu", "2"), ofPriority(id + "-never")}},
	}
}

func lower(s string) string { return string(bytes.ToLower([]byte(s))) }

// foretellAndHold asks what would become of a pod, makes it, and looks whether
// that is what becomes of it.
func (e *env) foretellAndHold(victim *corev1.Pod) {
	e.Helper()
	asker := e.pod("asker", "asker", inQueue("root.owed"), requests("cpu", "2"))
	foretold := e.preview(asker)
	if foretold.Outcome != rest.PreviewPreempts || foretold.Node != e.get(victim).Spec.NodeName ||
		len(foretold.Decision.Victims) != 1 || foretold.Decision.Victims[0].Name != victim.Name {
		e.Errorf("foretold: %+v", foretold)
	}
	if p := e.preview(e.pod("little", "little", inQueue("root.free"), requests("cpu", "100m"))); p.Outcome != rest.PreviewFits {
		e.Errorf("a little pod: %s", p.Summary)
	}
	made := e.createPod(asker)
	x := e.awaitExplained(made, reasons.MakingRoom)
	if x.Hold == nil || x.Hold.Node != foretold.Node || len(x.Hold.WaitsFor) != 1 || x.LastDecision == nil {
		e.Errorf("hold %+v, decision %+v", x.Hold, x.LastDecision)
	}
	gone := e.awaitExplained(victim, reasons.Preempted)
	if gone.MakesRoomFor == nil || gone.MakesRoomFor.Name != made.Name {
		e.Errorf("the victim makes room for %+v", gone.MakesRoomFor)
	}
}

// preview asks what would become of a pod.
func (e *env) preview(p *corev1.Pod) *rest.Preview {
	e.Helper()
	p = p.DeepCopy()
	p.APIVersion, p.Kind = "v1", "Pod"
	manifest, err := yaml.Marshal(p)
	e.ok(err)
	request, err := http.NewRequestWithContext(e.Context(), http.MethodPost, "http://"+e.rest+"/api/v1/preview", bytes.NewReader(manifest))
	e.ok(err)
	response, err := http.DefaultClient.Do(request)
	e.ok(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	e.ok(err)
	if response.StatusCode != http.StatusOK {
		e.Fatalf("preview: %s: %s", response.Status, body)
	}
	var out rest.Preview
	e.ok(json.Unmarshal(body, &out))
	return &out
}
