package placement_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// TestPlacement runs the files of testdata. Each file is a script of its own: a
// tree, rules, a namespace and a pod, set by commands and kept until the next
// command of the same name.
//
//	tree
//	root
//	  team submit=alice,bob/devs
//	    batch leaf draining admin=carol
//	----
//
// sets the queues, one a line, children indented by two spaces. Flags: leaf,
// draining, submit= and admin= with users, then, after a slash, groups; "*" is all users.
// Without flags a queue is a parent.
//
//	rules
//	- {name: provided, create: true}
//	- {name: tag, value: namespace, filter: {type: deny, users: [bob]}, parent: {name: user}}
//	----
//
// sets the placement rules, written as in queues.yaml; an empty list is allowed.
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
// places the pod, with parts of its identity replaced, and prints the result
// and every step that failed.
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
		switch d.Cmd {
		case "tree":
			f.tree = parseTree(t, d)
			return ""
		case "rules":
			f.rules = parseRules(t, d)
			return ""
		case "namespace":
			f.namespace = placement.Namespace{}
			decode(t, d, &f.namespace)
			return ""
		case "pod":
			var manifest struct{ Metadata placement.Pod }
			decode(t, d, &manifest)
			f.pod = manifest.Metadata
			return ""
		case "identify":
			return f.identify(d)
		case "place":
			return f.place(t, d)
		case "quota":
			return f.quota()
		}
		d.Fatalf(t, "unknown command %q", d.Cmd)
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
	result, reason := placement.Place(f.rules, req, f.tree)
	return show(result, reason)
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

func decode(t *testing.T, d *datadriven.TestData, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(d.Input), into); err != nil {
		d.Fatalf(t, "%v", err)
	}
}

// tree is a Tree for tests: queues by path, with their access lists.
type tree map[string]queue

type queue struct {
	placement.QueueInfo
	submit, admin config.ACL
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
		if q := tr[path]; q.submit.Allows(user, groups) || q.admin.Allows(user, groups) {
			return true
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return false
		}
		path = path[:i]
	}
}

func parseTree(t *testing.T, d *datadriven.TestData) tree {
	t.Helper()
	out := tree{}
	var path []string
	for line := range strings.Lines(d.Input) {
		fields := strings.Fields(line)
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		if depth > len(path) {
			d.Fatalf(t, "line %q is indented too far", line)
		}
		path = append(path[:depth], fields[0])
		var q queue
		for _, flag := range fields[1:] {
			switch name, value, _ := strings.Cut(flag, "="); name {
			case "leaf":
				q.Leaf = true
			case "draining":
				q.Draining = true
			case "submit":
				q.submit = parseACL(value)
			case "admin":
				q.admin = parseACL(value)
			default:
				d.Fatalf(t, "unknown flag %q", flag)
			}
		}
		out[strings.Join(path, ".")] = q
	}
	return out
}

func parseACL(text string) config.ACL {
	if text == "*" {
		return config.ACL{Everybody: true}
	}
	users, groups, _ := strings.Cut(text, "/")
	notEmpty := func(list string) []string {
		return slices.DeleteFunc(strings.Split(list, ","), func(s string) bool { return s == "" })
	}
	return config.ACL{Users: notEmpty(users), Groups: notEmpty(groups)}
}

// yamlRule is a placement rule as queues.yaml has it.
type yamlRule struct {
	Name   string
	Create bool
	Value  string
	Filter struct {
		Type          string
		Users, Groups []string
	}
	Parent *yamlRule
}

func parseRules(t *testing.T, d *datadriven.TestData) []config.Rule {
	t.Helper()
	var list []yamlRule
	decode(t, d, &list)
	var out []config.Rule
	for _, r := range list {
		out = append(out, *r.rule())
	}
	return out
}

func (r *yamlRule) rule() *config.Rule {
	if r == nil {
		return nil
	}
	out := &config.Rule{Kind: config.RuleKind(r.Name), Create: r.Create, Value: r.Value, Parent: r.Parent.rule()}
	out.Filter.Deny = r.Filter.Type == "deny"
	out.Filter.Users, out.Filter.UserExp = namesOrExpression(r.Filter.Users)
	out.Filter.Groups, out.Filter.GroupExp = namesOrExpression(r.Filter.Groups)
	return out
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9:#/_.@-]+$`)

func namesOrExpression(list []string) ([]string, *regexp.Regexp) {
	if len(list) == 1 && !plainName.MatchString(list[0]) {
		return nil, regexp.MustCompile(list[0])
	}
	return list, nil
}
