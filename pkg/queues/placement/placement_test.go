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
	"unicode/utf8"

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
	return show(placeIn(f.rules, req, f.tree))
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
		if !s.Refusal.None() {
			fmt.Fprintf(&b, "  %s [%s]: %s: %s\n", s.Rule, s.Queue, s.Refusal.Code, s.Refusal.Text)
		}
	}
	return b.String()
}

func (f *fixture) quota() string {
	q, errs := placement.NamespaceQuota(f.namespace.Annotations)
	q = cmp.Or(q, &config.Quota{})
	out := fmt.Sprintf("set=%t max=(%v) guaranteed=(%v) applications=%d\n",
		!q.Max.IsUnlimited() || !q.Guaranteed.IsNone(), q.Max, q.Guaranteed, q.MaxApplications)
	for _, err := range errs {
		out += "error: " + err.Error() + "\n"
	}
	return out
}

// tree is queues by path, with their access lists.
type tree map[string]queue

type queue struct {
	Leaf, Draining bool
	Submit, Admin  config.ACL
}

// draft returns the tree as Place gets it.
func (tr tree) draft() *queues.Draft {
	root := tr["root"]
	d := queues.NewDraft(queues.Settings{Settings: config.Settings{Name: "root", Path: "root", SubmitACL: root.Submit, AdminACL: root.Admin}})
	for _, path := range slices.Sorted(maps.Keys(tr)) {
		end := strings.LastIndexByte(path, '.')
		if end < 0 {
			continue
		}
		parent, _ := d.Find(path[:end])
		q := tr[path]
		own := config.Settings{Name: path[end+1:], Path: path, Leaf: q.Leaf, SubmitACL: q.Submit, AdminACL: q.Admin}
		s := queues.Settings{Settings: own, Parent: parent.ID}
		if q.Draining {
			s.State = queues.Draining
		}
		d.Add(s)
	}
	return d
}

// placeIn is Place in such a tree.
func placeIn(rules []config.Rule, req placement.Request, tr tree) (placement.Result, reasons.Reason) {
	return placement.Place(rules, req, tr.draft())
}

func (tr tree) MaySubmit(path, user string, groups []string) bool {
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

const operators = "testdata/operators"

func TestOperators(t *testing.T) {
	leaf := queue{Leaf: true}
	tr := tree{
		"root": {Submit: config.ACL{Everybody: true}}, "root.spark": {},
		"root.spark.etl": leaf, "root.ray": leaf, "root.flink": leaf,
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
			result, reason := placeIn([]config.Rule{{Kind: config.RuleProvided}},
				placement.Request{Identity: id, Namespace: placement.Namespace{Name: p.Namespace}}, tr)
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

// FuzzIdentify feeds hostile metadata: nothing panics, every pod gets an
// application and a user, and a refusal has a code and a sentence. What comes
// out is placed, too, because queue and user are just as hostile there.
func FuzzIdentify(f *testing.F) {
	f.Add("ns", "uid", "", "", `{"user":"a","groups":["g"]}`, "[]", "gangSchedulingStyle=Hard", false, "", uint8(0))
	f.Add("", "", "x-uniqueautogen", "root.a.b", `{"user":""}`, `[{"name":"g"}]`, "gangSchedulingStyle", true, "root.a", uint8(7))
	f.Add("\xff", "\xff", "\xff", "ROOT.\xff", "\xff", "\xff", "\xff = \xff", true, "\xff", uint8(11))
	f.Add("ns", "u", "app", "root.@recovery@.x", `{"user":"a.b","groups":[null]}`, "null", "", false, "root.@recovery@", uint8(2))
	f.Add("ns", "u", "app", "root....", `{"user":"İ","groups":{}}`, "{}", "gangSchedulingStyle=hard gangSchedulingStyle=Soft", false, "..", uint8(13))
	tr := tree{"root": {Submit: config.ACL{Everybody: true}}, "root.a": {Leaf: true}}
	rules := []config.Rule{
		{Kind: config.RuleProvided, Create: true, Parent: &config.Rule{Kind: config.RuleUser, Create: true}},
		{Kind: config.RuleTag, Value: "namespace", Create: true},
	}
	f.Fuzz(func(t *testing.T, namespace, uid, app, queueName, userInfo, groups, parameters string, unique bool, parent string, where uint8) {
		pod := placement.Pod{
			Namespace: namespace, UID: uid, Labels: map[string]string{},
			Annotations: map[string]string{
				placement.KeyUserInfo: userInfo, placement.KeyTaskGroups: groups, placement.KeyPolicyParameters: parameters,
			},
		}
		// A queue and an application may be named in several places each.
		type place struct {
			in  map[string]string
			key string
		}
		queue := []place{
			{pod.Labels, placement.KeyLegacyQueue}, {pod.Labels, placement.KeyQueue}, {pod.Annotations, placement.KeyQueue},
		}[where%3]
		application := []place{
			{pod.Labels, placement.KeyApplicationID}, {pod.Labels, placement.KeyLegacyApplicationID},
			{pod.Labels, placement.KeySparkSelector}, {pod.Annotations, placement.KeyApplicationID},
		}[where/3%4]
		queue.in[queue.key], application.in[application.key] = queueName, app
		id, reason := placement.Identify(pod, unique)
		sameQueue := id.Queue == queueName || len(queueName) > 6630 && len(id.Queue) <= 6633
		expect.That(t, id.Application != "" && id.User.Name != "" && sameQueue, "incomplete identity %+v", id)
		expect.That(t, app != "" || len(id.Application) <= 63, "%q is too long", id.Application)
		refused, hard := reason.Code == reasons.HardGangUnsupported, id.Gang == placement.GangHard
		expect.That(t, refused == hard || reason.Code == reasons.InvalidUserInfo, "gang %v: %v", id.Gang, reason)
		checkReason(t, reason)
		home := placement.Namespace{Name: namespace, Annotations: map[string]string{placement.KeyParentQueue: parent}}
		for _, running := range []bool{false, true} {
			req := placement.Request{Identity: id, Namespace: home, Running: running}
			result, reason := placeIn(rules, req, tr)
			checkReason(t, reason)
			for name, law := range laws {
				err := law(placeIn, problem{rules: rules, req: req, tree: tr})
				expect.That(t, err == nil, "law %q, result %+v: %v", name, result, err)
			}
		}
	})
}

// FuzzNamespaceQuota feeds hostile annotations: nothing panics, amounts are
// never negative, and an annotation that gives nothing has an error.
func FuzzNamespaceQuota(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "null", `{"cpu":"1"}`, `{"cpu":1e3,"memory":"1Ei"}`, `{"cpu":"1e-999999999"}`, `{"cpu":"9E"}`,
		`{"memory":"99999999999999999999999999999999999999Ei"}`, `{"cpu":"-0"}`, `{"cpu":"0.0000000001n"}`, `{"\u0000":"1"}`, `[{}]`,
		`{"cpu":{"cpu":1}}`, "\xff", `{"cpu":"1"}{}`, "18446744073709551616", `{"memory":"9223372036854775807"}`,
	} {
		f.Add(seed, seed, "1")
		f.Add("", "", seed)
	}
	f.Fuzz(func(t *testing.T, limit, guaranteed, single string) {
		quota, errs := placement.NamespaceQuota(map[string]string{
			placement.KeyNamespaceMax: limit, placement.KeyNamespaceGuaranteed: guaranteed,
			placement.KeyNamespaceMaxCPU: single, placement.KeyNamespaceMaxMemory: single, placement.KeyNamespaceMaxApps: single,
		})
		none := quota == nil
		quota = cmp.Or(quota, &config.Quota{})
		limits := !quota.Max.IsUnlimited() || !quota.Guaranteed.IsNone()
		for name, amount := range quota.Max.All() {
			expect.That(t, amount >= 0 && name != "" && name != "cpu", "max of %q is %d", name, amount)
		}
		for name, amount := range quota.Guaranteed.All() {
			expect.That(t, amount >= 0 && name != "" && name != "cpu", "guarantee of %q is %d", name, amount)
		}
		expect.That(t, none != (limits || quota.MaxApplications > 0), "no quota is %t with %+v", none, quota)
		expect.That(t, limit == "" || guaranteed == "" || limits || len(errs) >= 2,
			"two annotations without effect, but errors are %v", errs)
		for _, err := range errs {
			expect.That(t, err.Error() != "" && utf8.ValidString(err.Error()), "%q is no text", err)
		}
	})
}

func checkReason(t *testing.T, reason reasons.Reason) {
	t.Helper()
	_, known := reasons.Explain(reason.Code)
	expect.That(t, known == !reason.None(), "code %q is not in the table", reason.Code)
	expect.That(t, utf8.ValidString(reason.Text) && len(reason.Text) <= 4000,
		"sentence of %d bytes is too long or no text: %q", len(reason.Text), reason.Text)
	expect.That(t, reason.None() || strings.HasSuffix(reason.Text, "."), "%q has no period", reason.Text)
}
