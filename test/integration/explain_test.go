package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
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

// explanation asks REST about a pod; nil if it is not known.
func (e *env) explanation(ctx context.Context, p *corev1.Pod) *documents.Explanation {
	e.Helper()
	body, err := fetch(ctx, http.DefaultClient, fmt.Sprintf("http://%s/api/v1/pods/%s/%s/explain", e.rest, p.Namespace, p.Name))
	if err != nil {
		return nil
	}
	var x documents.Explanation
	e.ok(json.Unmarshal(body, &x))
	return &x
}

// explainedElsewhere are the codes that TestExplanations has no case for, each with what
// shows it: another test on this API server, a part of TestExplanations, or a file that
// has the code.
var explainedElsewhere = map[reasons.Code]string{
	reasons.Starting:                "pkg/store/testdata/preempt_restart.txt",
	reasons.InOrder:                 "pkg/store/testdata/way.txt",
	reasons.BackingOff:              "pkg/rest/testdata/pages/backoff.txt",
	reasons.HoldSuperseded:          "pkg/store/testdata/preempt_ends.txt",
	reasons.ConfigurationInvalid:    "TestBadConfigurationAtStart",
	reasons.ConfigurationUnreadable: "TestConfigurationThatMayNotBeRead",
	reasons.PodGroupIncomplete:      "TestPodGroups",
	reasons.PodGroupBeyondGuarantee: "TestPodGroups",
	reasons.PreemptionPaced:         "pkg/store/testdata/preempt_asks.txt",
	reasons.RoomAwaited:             "TestDaemonSetHoldsEnd",
	reasons.HoldTimedOut:            "pkg/store/testdata/preempt_ends.txt",
	reasons.HoldNodeGone:            "pkg/store/testdata/preempt_ends.txt",
	reasons.HoldNodeUnschedulable:   "pkg/store/testdata/preempt_ends.txt",
	reasons.HoldGivenUp:             "TestPlanThatFails",
	reasons.MakingRoom:              "TestExplanations, when room is made",
	reasons.Preempted:               "TestExplanations, when room is made",
	reasons.WaitingForRoom:          "TestExplanations, when a pod leaves",
	reasons.RoomImpossible:          "TestExplanations, of a DaemonSet",
	reasons.TooManyQueues:           "pkg/store/testdata/dynamic_limits.txt",
	reasons.QueueDraining:           "TestExplanations, after a change of the configuration",
	reasons.PreemptionDisabled:      "TestExplanations, after a change of the configuration",
}

// unexplained are the codes for which no explanation is taken from a cluster, and why
// that is impossible.
var unexplained = map[reasons.Code]string{
	reasons.NamespaceAnnotationInvalid: "a warning on a namespace: no pod waits for it",
	reasons.SoftGangIgnored:            "a warning on a pod: it does not wait for it",
	reasons.PodGroupIgnored:            "a warning on a pod: it does not wait for it",
	reasons.NodeHeld:                   "the filter says it of a node: FailedScheduling counts it, as TestDaemonSetHoldsEnd reads, and the pod's reason is NoNodeFits",
	reasons.ConfigurationChanged:       "ends an attempt that is made again at once: between the two it is nobody's reason. The tests of pkg/plugins/reservation see the attempt",
}

// explainCase is a pod that waits for a reason.
type explainCase struct {
	code    reasons.Code
	at      place
	options []podOption
}

// reckoned checks that for each code of the table exactly one of three is true: there is
// a case of TestExplanations, another test covers it, or there is a reason why no test
// can. For the first two a file has the code: the kept answer, or that of the other test. It returns the codes for which the check
// fails.
func reckoned(table []reasons.Entry, cases []explainCase, elsewhere, never map[reasons.Code]string, kept func(reasons.Code) bool) []reasons.Code {
	var out []reasons.Code
	for _, entry := range table {
		asked := 0
		if slices.ContainsFunc(cases, func(c explainCase) bool { return c.code == entry.Code }) {
			asked++
		}
		if elsewhere[entry.Code] != "" {
			asked++
		}
		excused := never[entry.Code] != ""
		if asked > 1 || excused == (asked == 1) || kept(entry.Code) != (asked == 1) {
			out = append(out, entry.Code)
		}
	}
	return out
}

func TestEveryReasonIsExplained(t *testing.T) {
	kept := func(code reasons.Code) bool {
		file := answerFile(code)
		if at := explainedElsewhere[code]; strings.HasPrefix(at, "pkg/") {
			file = filepath.Join("..", "..", at)
		}
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(text), string(code))
	}
	cases, table := explainCases("x"), reasons.Table()
	if codes := reckoned(table, cases, explainedElsewhere, unexplained, kept); len(codes) > 0 {
		t.Errorf("no explanation is taken from a cluster and kept for %v, and nothing says why, or both", codes)
	}
	one := func(code reasons.Code) map[reasons.Code]string { return map[reasons.Code]string{code: "x"} }
	yes, no := func(reasons.Code) bool { return true }, func(reasons.Code) bool { return false }
	for name, codes := range map[string][]reasons.Code{
		"a new code":          reckoned([]reasons.Entry{{Code: "New"}}, cases, nil, nil, no),
		"nobody asks":         reckoned([]reasons.Entry{{Code: "New"}}, cases, nil, nil, yes),
		"not kept":            reckoned([]reasons.Entry{{Code: reasons.OverMax}}, cases, nil, nil, no),
		"asked and excused":   reckoned([]reasons.Entry{{Code: "New"}}, cases, one("New"), one("New"), yes),
		"asked twice":         reckoned([]reasons.Entry{{Code: reasons.OverMax}}, cases, one(reasons.OverMax), nil, yes),
		"kept, nobody asks":   reckoned([]reasons.Entry{{Code: "New"}}, cases, nil, one("New"), yes),
		"elsewhere, not kept": reckoned([]reasons.Entry{{Code: "New"}}, cases, one("New"), nil, no),
	} {
		if len(codes) != 1 {
			t.Errorf("%s is not noticed", name)
		}
	}
}

// TestExplanations makes pods that wait, one for each reason that can be made to last,
// and asks why.
func TestExplanations(t *testing.T) {
	e := setup(t, explainQueues)
	e.useNodes(1, localcluster.NodeSpec{CPU: "6"})
	victim := e.createPod(e.pod("victim", "victim", inQueue("root.borrows"), requests("cpu", "2"), stopsAfter(5*time.Minute)))
	e.awaitRunning(victim)
	leaves := e.createPod(e.pod("leaves", "leaves", inQueue("root.borrows"), requests("cpu", "500m"), stopsAfter(5*time.Minute)))
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
			name := "why-" + strings.ToLower(string(s.code))
			x := e.awaitExplained(e.createPod(e.pod(name, name, s.options...)), s.code, s.at)
			if s.code == reasons.NoNodeFits && !strings.Contains(x.Reason.Message, "1 Insufficient cpu") {
				e.Errorf("it does not count the nodes by what was missing: %s", x.Reason.Message)
			}
		})
	}
	e.run("DaemonSet", func(e *env) {
		e.createDaemonSet("wide", inQueue("root.free"), requests("cpu", "50"))
		e.awaitExplained(e.awaitWaiting("wide", 1)[0], reasons.RoomImpossible, asRefusal)
	})
	e.run("preview and hold", func(e *env) { e.foretellAndHold(victim) })
	e.run("leaving pod", func(e *env) {
		e.delete(leaves)
		waits := e.createPod(e.pod("waits", "waits", inQueue("root.owed"), requests("cpu", "400m")))
		e.awaitExplained(waits, reasons.WaitingForRoom, asRefusal)
	})
	e.run("configuration", func(e *env) {
		changed := strings.Replace(explainQueues, `    - {name: one, submitacl: "*", maxapplications: 1}`+"\n", "", 1)
		e.configure(strings.Replace(changed, "- name: default\n", "- name: default\n  preemption: {enabled: false}\n", 1))
		e.awaitQueue("root.one", "is draining", func(q *documents.Queue) bool { return q.Status == "Draining" })
		e.awaitExplained(e.createPod(e.pod("new", "new", inQueue("root.one"))), reasons.QueueDraining, asReason)
		e.awaitExplained(e.createPod(e.pod("stuck", "stuck", inQueue("root.owed"), requests("cpu", "5"))), reasons.PreemptionDisabled, asNoRoom)
	})
}

// explainCases are the pods of TestExplanations; the names of the test begin with id.
func explainCases(id string) []explainCase {
	return []explainCase{
		{reasons.SchedulingGated, asReason, []podOption{inQueue("root.free"), gated}},
		{reasons.RequestTooLarge, asReason, []podOption{inQueue("root.free"), requests("memory", "7Ei")}},
		{reasons.TooManyResourceTypes, asReason, []podOption{inQueue("root.free"), ofTypes(65)}},
		{reasons.NoPlacementRuleMatched, asReason, nil},
		{reasons.QueueNotFound, asReason, []podOption{inQueue("root.nowhere")}},
		{reasons.QueueNotLeaf, asReason, []podOption{inQueue("root.parent")}},
		{reasons.SubmitDenied, asReason, []podOption{inQueue("root.closed")}},
		{reasons.InvalidQueueName, asReason, []podOption{func(p *corev1.Pod) { p.Annotations[placement.KeyQueue] = "root.a b" }}},
		{reasons.InvalidUserInfo, asReason, []podOption{inQueue("root.free"), annotated(placement.KeyUserInfo, "me")}},
		{reasons.HardGangUnsupported, asReason, []podOption{
			inQueue("root.free"), annotated(placement.KeyPolicyParameters, "gangSchedulingStyle=Hard"),
			annotated(placement.KeyTaskGroups, `[{"name":"g","minMember":2}]`),
		}},
		{reasons.OverMax, asReason, []podOption{inQueue("root.small"), requests("cpu", "2")}},
		{reasons.OverUserLimit, asReason, []podOption{inQueue("root.limited"), ofUser("ann"), requests("cpu", "2")}},
		{reasons.OverGroupLimit, asReason, []podOption{inQueue("root.limited"), ofUser("sue", "staff"), requests("cpu", "3")}},
		{reasons.MaxApplications, asReason, []podOption{inQueue("root.one"), requests("cpu", "100m")}},
		{reasons.UserMaxApplications, asReason, []podOption{inQueue("root.limited"), ofUser("bob"), requests("cpu", "100m")}},
		{reasons.GroupMaxApplications, asReason, []podOption{inQueue("root.limited"), ofUser("ned", "crew"), requests("cpu", "100m")}},
		{reasons.NoNodeFits, asReason, []podOption{inQueue("root.free"), requests("cpu", "50")}},
		{reasons.PreemptionRefused, asNoRoom, []podOption{inQueue("root.borrows"), requests("cpu", "50")}},
		{reasons.PreemptionDelayed, asNoRoom, []podOption{inQueue("root.patient"), requests("cpu", "2")}},
		{reasons.PlacementRuleFailed, asReason, []podOption{annotated(placement.KeyQueue, placement.RecoveryQueue)}},
		{reasons.PreemptionNever, asNoRoom, []podOption{inQueue("root.borrows"), requests("cpu", "2"), ofPriority(id + "-never")}},
	}
}

// foretellAndHold requests a preview of a pod, creates it, and checks that the preview
// comes true.
func (e *env) foretellAndHold(victim *corev1.Pod) {
	e.Helper()
	asker := e.pod("asker", "asker", inQueue("root.owed"), requests("cpu", "2"))
	foretold := e.preview(asker)
	if foretold.Outcome != documents.PreviewPreempts || foretold.Node != e.get(victim).Spec.NodeName ||
		len(foretold.Decision.Victims) != 1 || foretold.Decision.Victims[0].Name != victim.Name {
		e.Errorf("foretold: %+v", foretold)
	}
	if p := e.preview(e.pod("little", "little", inQueue("root.free"), requests("cpu", "100m"))); p.Outcome != documents.PreviewFits {
		e.Errorf("a little pod: %s", p.Summary)
	}
	made := e.createPod(asker)
	x := e.awaitExplained(made, reasons.MakingRoom, asReason)
	if x.Hold == nil || x.Hold.Node != foretold.Node || len(x.Hold.WaitsFor) != 1 || x.LastDecision == nil {
		e.Errorf("hold %+v, decision %+v", x.Hold, x.LastDecision)
	}
	gone := e.awaitExplained(victim, reasons.Preempted, asReason)
	if gone.MakesRoomFor == nil || gone.MakesRoomFor.Name != made.Name {
		e.Errorf("the victim makes room for %+v", gone.MakesRoomFor)
	}
}

// preview requests a preview of a pod.
func (e *env) preview(p *corev1.Pod) *documents.Preview {
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
	var out documents.Preview
	e.ok(json.Unmarshal(body, &out))
	return &out
}
