package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// leftOut are the fields of YuniKorn's interface that are not served, by the reason. The
// page docs/rest.md tells people.
var leftOut = map[string][]string{
	"gangs are not scheduled here": {
		"application.placeholderData", "request.placeholder", "request.taskGroupName",
		"allocation.placeholder", "allocation.placeholderUsed", "allocation.taskGroupName",
	},
	"there are none here; TestStreamsAreInTheDump": {"dump.eventStreams", "stream.Name", "stream.CreatedAt"},
	"locks are not watched": {
		"config.DeadlockDetectionEnabled", "config.DeadlockTimeoutSeconds",
	},
	"use over time is not counted":                {"application.resourceHistory"},
	"applications are not put aside":              {"application.backoffDeadline"},
	"whether an autoscaler acts is not known":     {"request.triggeredScaleUp"},
	"racks are not known":                         {"node.rackName"},
	"nodes are scored by the profile":             {"sorting.resourceWeights"},
	"there is no scheduler interface":             {"build.siSHA"},
	"there is no second cache to compare with":    {"dump.rmDiagnostics"},
	"each component has its own":                  {"dump.logLevel"},
	"it has no queues":                            {"config.Extra"},
	"users and groups are as pods say":            {"configPartition.UserGroupResolver"},
	"pods of a queue whose max was lowered go on": {"queue.quotaPreemptionDelay"},
}

// added are fields that YuniKorn's interface does not have.
var added = map[string]string{
	"application.namespace":    "IDs are unique in a namespace only",
	"foreign.requestTime":      "its design has it",
	"node.foreign_allocations": "its design has it",
	"validation.warnings":      "what would have no effect",
}

type contract struct {
	kinds  map[string]any
	served map[string]bool
	wrong  []string
}

func newContract(t *testing.T) contract {
	return contract{kinds: readJSON(t, "testdata/contract.json"), served: map[string]bool{}}
}

// check holds a value against its type: a kind of object, "list of" something, or what jsonType says.
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
	c.server.health.checks = []HealthCheck{{Name: "n", Description: "d", Run: func() error { return errors.New("e") }}}
	c.server.CheckHealth()
	c.Node("n1", "vcore=8 pods=20 memory=8Gi")
	c.does(t, `
		pod name=over queue=root.b app=over request=vcore=4 node=n1
		delete name=over
		pod name=b1 queue=root.b app=job request=vcore=4 user=dev1 groups=dev
		wait for=1s
		pod name=b1 queue=root.b app=job request=vcore=4 user=dev1 groups=dev node=n1
		pod name=b2 queue=root.b app=job request=vcore=4 node=n1 user=dev1 groups=dev priority=-1
		pod name=f1 request=vcore=4 node=n1 foreign
		pod name=lost queue=root.b app=mal request=vcore=4 user=mallory groups=x
		pod name=a1 queue=root.a.x app=svc request=vcore=4
		pod name=a2 queue=root.a.x app=svc request=vcore=4 required=n1
		wait for=2s
		pod name=a1 queue=root.a.x app=svc request=vcore=4 failed=no-node
		sample
		wait for=2s
		preempt name=a1
	`)
	h, _ := c.Store.Holds().Of("uid-a1")
	expect.That(t, len(h.Chosen) > 0, "no room is made for a1")
	return c
}

func TestContract(t *testing.T) {
	c := busyCluster(t)
	served := newContract(t)
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
		_, body := c.do(http.MethodGet, "/ws/v1/"+page)
		expect.OK(t, json.Unmarshal(body, &value))
		served.check(page, kind, value)
	}
	for _, document := range []string{"partitions: []", "partitions: [{name: default, nodesortpolicy: {type: fair}, queues: [{name: root}]}]"} {
		w := ask(c.http, http.MethodPost, "/ws/v1/validate-conf", document)
		var value any
		expect.OK(t, json.Unmarshal(w.Body.Bytes(), &value))
		served.check("validate-conf", "validation", value)
	}
	slices.Sort(served.wrong)
	for _, problem := range slices.Compact(served.wrong) {
		t.Error(problem)
	}
	known := slices.Concat(slices.Collect(maps.Values(leftOut))...)
	slices.Sort(known)
	expect.Same(t, "fields that are left out (-known +now)", known, served.missing())
	for field := range added {
		expect.That(t, served.served[field], "%s is not served", field)
	}
}

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

// unlike says where what a YuniKorn at work answered is not in the contract, or is of
// another type there. Observed are the types that JSON knows, by kind of object and
// field. What is in the contract is served or has a reason in leftOut, by TestContract.
func unlike(contract, observed map[string]any) (out []string) {
	for kind, fields := range observed {
		known, _ := contract[kind].(map[string]any)
		for name, is := range fields.(map[string]any) {
			if of, there := known[name].(string); !there || kindOfJSON(of) != is {
				out = append(out, fmt.Sprintf("%s.%s: YuniKorn answers a %s, want %q", kind, name, is, of))
			}
		}
	}
	return out
}

func kindOfJSON(of string) string {
	switch {
	case strings.HasPrefix(of, "list of "):
		return "list"
	case of == "string" || of == "number" || of == "bool":
		return of
	}
	return "object"
}

// TestContractHasWhatWasObserved: testdata/observed.json has each field, with its type, of the answers
// of a YuniKorn 1.9.0 with queues, users, DaemonSets and preemption. What it did not have, such as pods
// of other schedulers, the contract has from YuniKorn's source only.
func TestContractHasWhatWasObserved(t *testing.T) {
	contract, observed := readJSON(t, "testdata/contract.json"), readJSON(t, "testdata/observed.json")
	for _, text := range unlike(contract, observed) {
		t.Error(text)
	}
	neverObserved := []string{"configLimit", "filter", "foreign", "group", "log", "request", "stream", "template"}
	isObserved := func(kind string) bool { return observed[kind] != nil }
	missing := slices.DeleteFunc(slices.Sorted(maps.Keys(contract)), isObserved)
	expect.Same(t, "not observed", neverObserved, missing)
	fields := 0
	for _, of := range observed {
		fields += len(of.(map[string]any))
	}
	expect.That(t, fields >= 150, "only %d fields were observed", fields)
	for want, spoil := range map[string]func(){
		"queue.new: ":      func() { observed["queue"].(map[string]any)["new"] = "string" },
		"new.field: ":      func() { observed["new"] = map[string]any{"field": "string"} },
		"node.nodeID: ":    func() { observed["node"].(map[string]any)["nodeID"] = "number" },
		"queue.children: ": func() { observed["queue"].(map[string]any)["children"] = "string" },
	} {
		observed = readJSON(t, "testdata/observed.json")
		spoil()
		found := unlike(contract, observed)
		expect.That(t, len(found) == 1 && strings.HasPrefix(found[0], want), "%s: found %q", want, found)
	}
}
