package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// leftOut are the fields of YuniKorn's interface that are not served, and why. The
// page docs/rest.md tells people.
var leftOut = map[string]string{
	"application.placeholderData":       "gangs are not scheduled here",
	"application.resourceHistory":       "use over time is not counted",
	"application.backoffDeadline":       "applications are not put aside",
	"request.placeholder":               "gangs are not scheduled here",
	"request.taskGroupName":             "gangs are not scheduled here",
	"request.triggeredScaleUp":          "whether an autoscaler acts is not known",
	"allocation.placeholder":            "gangs are not scheduled here",
	"allocation.placeholderUsed":        "gangs are not scheduled here",
	"allocation.taskGroupName":          "gangs are not scheduled here",
	"node.rackName":                     "racks are not known",
	"sorting.resourceWeights":           "nodes are scored by the profile",
	"build.siSHA":                       "there is no scheduler interface",
	"dump.rmDiagnostics":                "there is no second cache to compare with",
	"dump.logLevel":                     "each component has its own",
	"dump.eventStreams":                 "there are none here; TestStreamsAreInTheDump",
	"stream.Name":                       "there are none here; TestStreamsAreInTheDump",
	"stream.CreatedAt":                  "there are none here; TestStreamsAreInTheDump",
	"config.Extra":                      "it has no queues",
	"configPartition.UserGroupResolver": "users and groups are as pods say",
	"queue.quotaPreemptionDelay":        "pods of a queue whose max was lowered go on",
	"config.DeadlockDetectionEnabled":   "locks are not watched",
	"config.DeadlockTimeoutSeconds":     "locks are not watched",
}

// added are fields that YuniKorn's interface does not have.
var added = map[string]string{
	"application.namespace":    "IDs are unique in a namespace only",
	"foreign.requestTime":      "its design has it",
	"node.foreign_allocations": "its design has it",
	"validation.warnings":      "what would have no effect",
}

// contract collects what is served.
type contract struct {
	kinds  map[string]any
	served map[string]bool
	wrong  []string
}

// check holds a value against its type: a kind of object, "list of" something, or
// what jsonType says.
func (c *contract) check(where, kind string, value any) {
	if of, list := strings.CutPrefix(kind, "list of "); list && c.kinds[of] != nil {
		values, ok := value.([]any)
		if !ok {
			c.wrong = append(c.wrong, fmt.Sprintf("%s: %T is not a %s", where, value, kind))
		}
		for _, v := range values {
			c.check(where, of, v)
		}
		return
	}
	fields, known := c.kinds[kind].(map[string]any)
	if !known {
		if got := jsonType(value); got != kind {
			c.wrong = append(c.wrong, fmt.Sprintf("%s: %s, want %s", where, got, kind))
		}
		return
	}
	object, ok := value.(map[string]any)
	if !ok {
		c.wrong = append(c.wrong, fmt.Sprintf("%s: %T is no object", where, value))
	}
	for name, v := range object {
		field := kind + "." + name
		c.served[field] = true
		if of, ok := fields[name].(string); ok {
			c.check(where+"."+name, of, v)
		} else if added[field] == "" {
			c.wrong = append(c.wrong, where+"."+name+": YuniKorn has no such field")
		}
	}
}

// missing are the fields that were never served.
func (c *contract) missing() []string {
	var out []string
	for kind, fields := range c.kinds {
		for name := range fields.(map[string]any) {
			if field := kind + "." + name; !c.served[field] {
				out = append(out, field)
			}
		}
	}
	slices.Sort(out)
	return out
}

// stampedBuild is the information of a program that was built as ours is.
func stampedBuild(t *testing.T) map[string]string {
	documents.BuildVersion, documents.BuildCommit, documents.BuildDate = "v1.2.3", "0123abcd", "2026-01-02"
	t.Cleanup(func() { documents.BuildVersion, documents.BuildCommit, documents.BuildDate = "", "", "" })
	return documents.BuildInformation()
}

// busyCluster is one in which every field has something to show.
func busyCluster(t *testing.T) *cluster {
	c := newCluster(t, `
partitions:
- name: default
  preemption: {enabled: true}
  placementrules:
  - {name: provided, create: true, filter: {type: deny, users: [mallory, m], groups: [x, y]}}
  - {name: tag, value: absent, parent: {name: fixed, value: root.a}, filter: {users: ["d.*"], groups: ["d.*"]}}
  queues:
  - name: root
    submitacl: '*'
    queues:
    - name: t
      parent: true
      childtemplate: {maxapplications: 3, properties: {priority.offset: '1'}, resources: {guaranteed: {vcore: 1}, max: {vcore: 2}}}
    - {name: a, parent: true, queues: [{name: x, resources: {guaranteed: {vcore: 4}}, properties: {preemption.delay: 1s}}]}
    - name: b
      adminacl: admin
      maxapplications: 9
      resources: {max: {vcore: 9}}
      properties: {priority.offset: '-5'}
      limits: [{limit: l, users: [dev1], groups: [dev], maxresources: {vcore: 9}, maxapplications: 9}]
`)
	c.server.options.Build = stampedBuild(t)
	c.server.health.checks = []HealthCheck{{Name: "n", Description: "d", Run: func(func(time.Duration) bool) error { return errors.New("e") }}}
	c.server.CheckHealth()
	c.node(t, "n1", "vcore=8 pods=20 memory=8Gi")
	user := map[string]string{placement.KeyUserInfo: `{"user":"dev1","groups":["dev"]}`}
	add := func(p objects.Pod, queue, app string) {
		p.Name, p.Namespace, p.Created = string(p.UID), "ns", c.now.Add(-time.Second)
		p.Labels = map[string]string{"queue": queue, "applicationId": app}
		p.Request = amountsOf(t, "vcore=4 pods=1")
		if p.Node != "" {
			p.Scheduled = c.now
		}
		c.store.Upsert(p, c.now)
	}
	add(objects.Pod{Identity: objects.Identity{UID: "over"}, Status: objects.Status{Node: "n1"}}, "root.b", "over")
	c.store.Delete("over", c.now)
	add(objects.Pod{Identity: objects.Identity{UID: "b1", Annotations: user}, Status: objects.Status{Node: "n1"}}, "root.b", "job")
	add(objects.Pod{Identity: objects.Identity{UID: "b2", Annotations: user}, Spec: objects.Spec{Priority: -1}, Status: objects.Status{Node: "n1"}}, "root.b", "job")
	add(objects.Pod{Identity: objects.Identity{UID: "f1"}, Spec: objects.Spec{Foreign: true}, Status: objects.Status{Node: "n1"}}, "", "")
	add(objects.Pod{Identity: objects.Identity{UID: "lost", Annotations: map[string]string{placement.KeyUserInfo: `{"user":"mallory","groups":["x"]}`}}}, "root.b", "mal")
	add(objects.Pod{Identity: objects.Identity{UID: "a1"}}, "root.a.x", "svc")
	add(objects.Pod{Identity: objects.Identity{UID: "a2"}, Spec: objects.Spec{RequiredNode: "n1"}}, "root.a.x", "svc")
	c.step(2 * time.Second)
	c.store.NoNode("a1", "", reasons.New(reasons.BackingOff, "no node"), c.now)
	c.server.history.Count(c.store.Snapshot(), c.now)
	c.step(2 * time.Second)
	input, why := c.store.BeginPlan("a1", "", nil, c.now)
	if !why.None() {
		t.Fatal(why)
	}
	plan := search.Plan(input.Snapshot, input.Ask, planner.Params{})
	if c.store.AcceptPlan(types.UID("a1"), &plan, c.now); plan.Outcome != planner.Preempt {
		t.Fatal(plan.Sentence())
	}
	return c
}

func TestContract(t *testing.T) {
	c := busyCluster(t)
	served := contract{kinds: readJSON(t, "testdata/contract.json"), served: map[string]bool{}}
	for page, kind := range map[string]string{
		"partition/default/applications/active":              "list of application",
		"partition/default/applications/completed":           "list of application",
		"partition/default/applications/rejected":            "list of application",
		"partition/default/queue/root.b/applications":        "list of application",
		"partition/default/queue/root.b/applications/active": "list of application",
		"partition/default/application/job":                  "application",
		"partition/default/queue/root.b/application/job":     "application",
		"partition/default/queue/root%2eb/application/j%6fb": "application",
		"partition/default/nodes":                            "list of node",
		"partition/default/node/n1":                          "node",
		"partition/default/placementrules":                   "list of rule",
		"partition/default/usage/users":                      "list of user",
		"partition/default/usage/user/dev1":                  "user",
		"partition/default/usage/groups":                     "list of group",
		"partition/default/usage/group/dev":                  "group",
		"partition/default/queues":                           "queue",
		"partition/default/queue/root.b":                     "queue",
		"partitions":                                         "list of partition",
		"clusters":                                           "list of cluster",
		"history/apps":                                       "list of appSample",
		"history/containers":                                 "list of containerSample",
		"scheduler/node-utilizations":                        "list of utilizations",
		"scheduler/healthcheck":                              "health",
		"events/batch":                                       "events",
		"fullstatedump":                                      "dump",
		"no/such/page":                                       "problem",
	} {
		var value any
		_, body := c.do(t, http.MethodGet, "/ws/v1/"+page)
		if err := json.Unmarshal(body, &value); err != nil {
			t.Fatalf("%s: %v", page, err)
		}
		served.check(page, kind, value)
	}
	for _, document := range []string{"partitions: []", "partitions: [{name: default, nodesortpolicy: {type: fair}, queues: [{name: root}]}]"} {
		w := c.ask(httptest.NewRequest(http.MethodPost, "/ws/v1/validate-conf", strings.NewReader(document)))
		var value any
		expect.OK(t, json.Unmarshal(w.Body.Bytes(), &value))
		served.check("validate-conf", "validation", value)
	}
	slices.Sort(served.wrong)
	for _, problem := range slices.Compact(served.wrong) {
		t.Error(problem)
	}
	known := []string{}
	for field := range leftOut {
		known = append(known, field)
	}
	slices.Sort(known)
	expect.Same(t, "fields that are left out (-known +now)", known, served.missing())
	for field := range added {
		if !served.served[field] {
			t.Errorf("%s is not served", field)
		}
	}
}

// TestContractFindsWhatIsWrong: a wrong type, an unknown field, a missing one.
func TestContractFindsWhatIsWrong(t *testing.T) {
	c := contract{served: map[string]bool{}, kinds: map[string]any{
		"app": map[string]any{"id": "string", "pods": "list of pod", "more": "number"},
		"pod": map[string]any{"name": "string"},
	}}
	c.check("page", "app", map[string]any{"id": 1.0, "other": true, "pods": []any{map[string]any{"name": "p"}, "p"}})
	slices.Sort(c.wrong)
	want := []string{"page.id: number, want string", "page.other: YuniKorn has no such field", "page.pods: string is no object"}
	expect.Same(t, "", want, c.wrong)
	expect.Same(t, "", []string{"app.more"}, c.missing())
}
