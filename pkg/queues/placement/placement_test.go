package placement_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// TestPlacement runs the files of testdata. Each file is a script of its own: a tree, rules, a namespace
// and a pod, set by commands and kept until the next command of the same name.
//
//	tree
//	root: {submit: {everybody: true}}
//	root.team: {submit: {users: [alice], groups: [devs]}}
//	root.team.batch: {leaf: true, draining: true}
//	----
//
// sets the queues by path, as YAML of [queue]; one that is no leaf is a parent.
//
//	rules
//	- {kind: provided, create: true}
//	- {kind: tag, value: namespace, filter: {deny: true, users: [bob]}, parent: {kind: user}}
//	----
//
// sets the placement rules, as YAML of [config.Rule]; an empty list is allowed.
//
//	namespace              pod
//	name: ns1              metadata: {namespace: ns1, labels: {queue: a}}
//	annotations: {}        ----
//	----
//
// set the namespace and the pod, as YAML; a pod's other fields are not looked at.
//
//	identify [unique-ids]
//
// prints the identity of the pod, and the reason if there is one.
//
//	place [running] [queue=Q] [user=U] [groups=(G,H)]
//
// places the pod, with parts of its identity replaced, and prints the result and every step that failed.
//
//	quota
//
// prints the quota of the namespace, and the errors.
func TestPlacement(t *testing.T) {
	for _, folder := range []string{"identify", "place", "quota"} {
		datadriven.Walk(t, filepath.Join("testdata", folder), runFile)
	}
}

func runFile(t *testing.T, path string) {
	f := fixture{tree: tree{}}
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		read := func(into any) { expect.OK(t, yaml.Unmarshal([]byte(d.Input), into)) }
		readAll := func(into any) { expect.OK(t, yaml.UnmarshalStrict([]byte(d.Input), into)) }
		switch d.Cmd {
		case "tree":
			f.tree = tree{}
			readAll(&f.tree)
		case "rules":
			f.rules = nil
			readAll(&f.rules)
		case "namespace":
			f.namespace = placement.Namespace{}
			read(&f.namespace)
		case "pod":
			var manifest struct{ Metadata placement.Pod }
			read(&manifest)
			f.pod = manifest.Metadata
		case "identify":
			return f.identify(d)
		case "place":
			return f.place(t, d)
		case "quota":
			return f.quota()
		default:
			d.Fatalf(t, "unknown command %q", d.Cmd)
		}
		return ""
	})
}

type fixture struct {
	tree      tree
	rules     []config.Rule
	namespace placement.Namespace
	pod       placement.Pod
}

func (f *fixture) identify(d *datadriven.TestData) string {
	id, reason := placement.Identify(f.pod, d.HasArg("unique-ids"))
	out := fmt.Sprintf("application=%s queue=%s user=%s groups=%v gang=%v\n",
		id.Application, id.Queue, id.User.Name, id.User.Groups, id.Gang)
	if !reason.None() {
		out += reason.String() + "\n"
	}
	return out
}

func (f *fixture) place(t *testing.T, d *datadriven.TestData) string {
	id, _ := placement.Identify(f.pod, false)
	req := placement.Request{Identity: id, Namespace: f.namespace, Running: d.HasArg("running")}
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "running":
		case "queue":
			req.Identity.Queue = strings.Join(arg.Vals, ",")
		case "user":
			req.Identity.User.Name = strings.Join(arg.Vals, ",")
		case "groups":
			req.Identity.User.Groups = arg.Vals
		default:
			d.Fatalf(t, "unknown argument %q", arg.Key)
		}
	}
	return show(placement.Place(f.rules, req, f.tree))
}

func show(result placement.Result, reason reasons.Reason) string {
	var b strings.Builder
	if reason.None() {
		fmt.Fprintf(&b, "%s by rule %q", result.Path, result.Rule)
		if result.Create {
			b.WriteString(", to be made")
		}
	} else {
		fmt.Fprintf(&b, "refused: %v", reason)
	}
	b.WriteByte('\n')
	for _, s := range result.Trace {
		if s.Code != "" {
			fmt.Fprintf(&b, "  %s [%s]: %s: %s\n", s.Rule, s.Queue, s.Code, s.Why)
		}
	}
	return b.String()
}

func (f *fixture) quota() string {
	q, errs := placement.NamespaceQuota(f.namespace.Annotations)
	q = cmp.Or(q, &queues.NamespaceQuota{})
	out := fmt.Sprintf("set=%t max=(%v) guaranteed=(%v) applications=%d\n",
		!q.Max.IsUnlimited() || !q.Guaranteed.IsNone(), q.Max, q.Guaranteed, q.MaxApplications)
	for _, err := range errs {
		out += "error: " + err.Error() + "\n"
	}
	return out
}

// tree is a Tree for tests: queues by path, with their access lists.
type tree map[string]queue

type queue struct {
	placement.QueueInfo
	Submit, Admin config.ACL
}

func (tr tree) Queue(path string) (placement.QueueInfo, bool) {
	q, exists := tr[path]
	return q.QueueInfo, exists
}

func (tr tree) MaySubmit(path, user string, groups []string) bool {
	if _, exists := tr[path]; !exists {
		panic("MaySubmit is for queues that exist, not " + path)
	}
	for {
		if q := tr[path]; q.Submit.Allows(user, groups) || q.Admin.Allows(user, groups) {
			return true
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return false
		}
		path = path[:i]
	}
}

// operators has pods as operators make them.
const operators = "testdata/operators"

func TestOperators(t *testing.T) {
	leaf := queue{QueueInfo: placement.QueueInfo{Leaf: true}}
	queues := tree{
		"root": {Submit: config.ACL{Everybody: true}}, "root.spark": {}, "root.spark.etl": leaf, "root.ray": leaf, "root.flink": leaf,
	}
	var wanted map[string][]struct{ Pod, Queue, Application, User, Gang string }
	text := expect.Get(os.ReadFile(filepath.Join(operators, "wanted.yaml")))(t)
	expect.OK(t, yaml.UnmarshalStrict(text, &wanted))
	files := expect.Get(filepath.Glob(operators + "/*.yaml"))(t)
	expect.Same(t, "files, with that of what is wanted", len(wanted)+1, len(files))
	for file, wants := range wanted {
		pods := readPods(t, file)
		var named []string
		for _, want := range wants {
			named = append(named, want.Pod)
			p := pods[want.Pod]
			id, reason := placement.Identify(p, false)
			expect.That(t, reason.None(), "%s: %v", want.Pod, reason)
			result, reason := placement.Place([]config.Rule{{Kind: config.RuleProvided}},
				placement.Request{Identity: id, Namespace: placement.Namespace{Name: p.Namespace}}, queues)
			expect.That(t, reason.None(), "%s: %v", want.Pod, reason)
			got := want
			got.Queue, got.Application, got.User, got.Gang = result.Path, id.Application, id.User.Name, id.Gang.String()
			expect.Same(t, "", want, got)
		}
		slices.Sort(named)
		expect.Same(t, file+": wanted pods, each once", named, slices.Sorted(maps.Keys(pods)))
	}
}

func readPods(t *testing.T, file string) map[string]placement.Pod {
	t.Helper()
	text := expect.Get(os.ReadFile(filepath.Join(operators, file)))(t)
	out := map[string]placement.Pod{}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var manifest struct {
			Metadata placement.Pod
			Spec     struct{ SchedulerName string }
		}
		expect.OK(t, yaml.Unmarshal(document, &manifest))
		expect.Same(t, file+": scheduler", "yunikorn", manifest.Spec.SchedulerName)
		out[manifest.Metadata.Name] = manifest.Metadata
	}
	expect.Says(t, string(text), "Source") // where this is known from
	return out
}
