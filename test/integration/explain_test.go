package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
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
	if entry, known := reasons.Explain(code); !known || x.Summary == "" || x.Reason != nil && x.Reason.Code == string(code) && !slices.Contains(x.ToDo, entry.Remedy) {
		e.Errorf("%s: summary %q, to do %q", code, x.Summary, x.ToDo)
	}
	return x
}

// TestExplanations makes pods that wait, one for each reason that can be made to
// last, and asks why. Codes that are not here do not last, are about no pod that
// waits, or are asked for where they are made:
//
//   - Starting, ConfigurationInvalid, ConfigurationUnreadable: nothing is known
//     of a pod's queue then; the pages' tests and refusal by REST show them.
//   - NamespaceAnnotationInvalid, SoftGangIgnored: warnings for which nothing waits.
//   - InOrder, BackingOff, NodeHeld, ConfigurationChanged, PreemptionPaced: they
//     last for moments; the tests of the store explain pods in these states.
//   - PreemptionDisabled, PreemptionNever: need another configuration, or a
//     PriorityClass; the tests of the store and of previews have them.
//   - WaitingForRoom, RoomAwaited, RoomImpossible and the ends of holds: the tests
//     of holds and DaemonSets; lastDecision and lastHold have them.
func TestExplanations(t *testing.T) {
	e := setup(t, explainQueues)
	e.useNodes(1, localcluster.NodeSpec{CPU: "6"})
	victim := e.createPod(e.pod("victim", "victim", inQueue("root.borrows"), requests("cpu", "2"), stopsAfter(time.Hour)))
	e.awaitRunning(victim)
	for _, p := range []*corev1.Pod{
		e.pod("bobs", "bobs", inQueue("root.limited"), ofUser("bob"), requests("cpu", "100m")),
		e.pod("crews", "crews", inQueue("root.limited"), ofUser("eve", "crew"), requests("cpu", "100m")),
		e.pod("first", "first", inQueue("root.one"), requests("cpu", "100m")),
		e.pod("filler", "filler", inQueue("root.free"), requests("cpu", "3")),
	} {
		e.awaitRunning(e.createPod(p))
	}
	for _, s := range []struct {
		code    reasons.Code
		options []podOption
	}{
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
	} {
		e.run(string(s.code), func(e *env) {
			name := "why-" + fmt.Sprintf("%x", len(e.id)) + "-" + lower(string(s.code))
			e.awaitExplained(e.createPod(e.pod(name, name, s.options...)), s.code)
		})
	}
	e.run("preview and hold", func(e *env) { e.foretellAndHold(victim) })
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
