package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// judged is what becomes of a document: accepted, with so many warnings, or refused with
// a text in the error.
type judged struct {
	name, body string
	refused    string
	warnings   int
}

// queuesForRules are the queues of the documents about placement rules.
const queuesForRules = `
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: leaf}
    - {name: group, parent: true, queues: [{name: inner}]}
`

// rules is a document with placement rules and the queues above.
func rulesDocument(rules string) string { return "  placementrules:\n" + rules + queuesForRules }

func filterDocument(filter string) string {
	return rulesDocument("  - {name: provided, filter: " + filter + "}\n")
}

// queueDocument is a document with one queue below root, given in flow style.
func queueDocument(queue string) string {
	return "  queues:\n  - name: root\n    queues:\n    - " + queue + "\n"
}

// TestJudgedAsYuniKornJudges has documents of placement rules, filters, limits and child
// templates with YuniKorn's verdict on each. What differs on purpose is in
// docs/migrate-from-yunikorn.md, and marked here.
func TestJudgedAsYuniKornJudges(t *testing.T) {
	for _, group := range []struct {
		what  string
		cases []judged
	}{{"filters", filterCases}, {"rules", ruleCases}, {"limits", limitCases}, {"templates", templateCases}} {
		for _, c := range group.cases {
			t.Run(group.what+"/"+c.name, func(t *testing.T) { c.check(t) })
		}
	}
}

func (c judged) check(t *testing.T) {
	document := "partitions:\n- name: default\n" + c.body
	spec, err := Parse([]byte(document))
	var invalid *InvalidError
	switch {
	case c.refused == "" && err != nil:
		t.Fatalf("refused:\n%v\nof\n%s", err, document)
	case c.refused == "" && len(spec.Warnings) != c.warnings:
		t.Fatalf("%d warnings, want %d: %v", len(spec.Warnings), c.warnings, spec.Warnings)
	case c.refused != "" && !errors.As(err, &invalid):
		t.Fatalf("accepted:\n%s", document)
	case c.refused != "" && !strings.Contains(err.Error(), c.refused):
		t.Fatalf("%v\nhas no %q", err, c.refused)
	case invalid != nil:
		for _, p := range invalid.Problems {
			if p.Line == 0 || p.Path == "" && p.Key == "" {
				t.Errorf("without line or path: %v", p)
			}
		}
	}
}

const notProper = "list is not a proper list or regexp"

var filterCases = []judged{
	{name: "none", body: filterDocument("{}")},
	{name: "type in any case", body: filterDocument("{type: DENY, users: [bob]}")},
	{name: "another type", body: filterDocument("{type: except}"), refused: `"except" is not a type`},
	{name: "one name", body: filterDocument("{users: [bob]}")},
	{name: "a mail address", body: filterDocument("{users: [bob@example.com]}")},
	{name: "one expression", body: filterDocument(`{users: ["^b.*"]}`)},
	{name: "an expression of alternatives", body: filterDocument(`{groups: ["9dev|9ops"]}`)},
	{name: "a name with a mark", body: filterDocument("{users: [user_inva!lid]}"), refused: "invalid rule filter user " + notProper},
	{name: "a group with a digit first", body: filterDocument("{groups: [99test]}"), refused: "invalid rule filter group " + notProper},
	{name: "a group with a space", body: filterDocument(`{groups: ["groupname "]}`), refused: "invalid rule filter group " + notProper},
	{name: "an expression that does not compile", body: filterDocument(`{users: ["[a-"]}`), refused: "invalid rule filter user " + notProper},
	{name: "an empty entry", body: filterDocument(`{users: [""], groups: [ok]}`), refused: "invalid rule filter user " + notProper},
	{name: "several names", body: filterDocument("{users: [bob, alice], groups: [dev]}")},
	{name: "an expression among names", body: filterDocument(`{users: [bob, "a.*"]}`), warnings: 1},
	{name: "bad names among names", body: filterDocument(`{users: [bob, user_inva!lid, ""], groups: [dev, 99test]}`), warnings: 3},
	{name: "no name among several", body: filterDocument(`{users: ["a b", "c d"]}`), warnings: 2},
	{name: "in a parent rule", body: rulesDocument("  - {name: user, create: true, parent: {name: fixed, value: group, filter: {users: [a!b]}}}\n"),
		refused: "invalid rule filter user " + notProper},
}

var ruleCases = []judged{
	{name: "no rules", body: "  queues: [{name: a}]\n"},
	{name: "a leaf", body: rulesDocument("  - {name: fixed, value: leaf}\n")},
	{name: "a leaf by its path", body: rulesDocument("  - {name: fixed, value: root.group.inner}\n")},
	{name: "a parent", body: rulesDocument("  - {name: fixed, value: group, create: true}\n"), refused: "applications go to leaf queues only"},
	{name: "missing", body: rulesDocument("  - {name: fixed, value: missing}\n"), refused: "does not exist and create is false"},
	{name: "missing and created", body: rulesDocument("  - {name: fixed, value: missing, create: true}\n")},
	{name: "below a leaf", body: rulesDocument("  - {name: fixed, value: leaf.a, create: true}\n"), refused: "root.leaf is a leaf"},
	{name: "below a leaf, not created", body: rulesDocument("  - {name: fixed, value: leaf.a}\n"), refused: "root.leaf is a leaf"},
	{name: "below a parent", body: rulesDocument("  - {name: user, create: true, parent: {name: fixed, value: group}}\n")},
	{name: "a leaf as parent", body: rulesDocument("  - {name: user, create: true, parent: {name: fixed, value: leaf}}\n"), refused: "root.leaf is a leaf"},
	{name: "a parent that is missing", body: rulesDocument("  - {name: tag, value: namespace, create: true, parent: {name: fixed, value: root.namespaces}}\n"), warnings: 1},
	{name: "a parent that is created", body: rulesDocument("  - {name: tag, value: namespace, create: true, parent: {name: fixed, value: root.namespaces, create: true}}\n")},
	{name: "a missing parent, nothing created", body: rulesDocument("  - {name: tag, value: namespace, parent: {name: fixed, value: root.namespaces}}\n"),
		refused: "does not exist and create is false"},
	{name: "a created parent below which nothing is created",
		body:    rulesDocument("  - {name: tag, value: namespace, parent: {name: fixed, value: root.namespaces, create: true}}\n"),
		refused: "does not exist and create is false"},
	{name: "a fixed chain with a missing parent", body: rulesDocument("  - {name: fixed, value: inner, create: true, parent: {name: fixed, value: missing}}\n"), warnings: 1},
	{name: "fixed below a dynamic part", body: rulesDocument("  - {name: fixed, value: any, create: true, parent: {name: user, create: true}}\n")},
	{name: "a full path with a parent", body: rulesDocument("  - {name: fixed, value: root.leaf, parent: {name: fixed, value: group}}\n"), refused: "must not have a parent"},
	{name: "a bad path", body: rulesDocument("  - {name: fixed, value: root.a..b, create: true}\n"), refused: "is not the path of a queue"},
	{name: "fixed without value", body: rulesDocument("  - {name: fixed}\n"), refused: "needs the name of a queue"},
	{name: "tag without value", body: rulesDocument("  - {name: tag}\n"), refused: "needs the name of a tag"},
	{name: "recovery", body: rulesDocument("  - {name: recovery}\n"), refused: "recovery is always there"},
	{name: "unknown", body: rulesDocument("  - {name: none}\n"), refused: "there is no rule"},
	{name: "of YuniKorn's own tests", body: rulesDocument("  - {name: test}\n"), refused: "there is no rule"},
	{name: "no identifier", body: rulesDocument("  - {name: \"@fixed\", value: leaf}\n"), refused: "cannot be the name of a rule"},
	{name: "no identifier, as parent", body: rulesDocument("  - {name: user, create: true, parent: {name: \"1tag\"}}\n"), refused: "cannot be the name of a rule"},
	{name: "name in any case", body: rulesDocument("  - {name: Provided}\n")},
	{name: "all at once", body: rulesDocument("  - {name: fixed}\n  - {name: user, filter: {users: [a!b]}}\n"), refused: notProper},
}

// limitsDocument is a queue of max vcore 10 and 5 applications with limits.
func limitsDocument(limits string) string {
	return queueDocument("{name: a, maxapplications: 5, resources: {max: {vcore: 10}}, limits: " + limits + "}")
}

var limitCases = []judged{
	{name: "a user", body: limitsDocument("[{limit: one, users: [bob], maxresources: {vcore: 5}}]")},
	{name: "applications only", body: limitsDocument("[{users: [bob], maxapplications: 2}]")},
	{name: "nobody", body: limitsDocument("[{maxapplications: 2}]"), refused: "users"},
	{name: "nothing", body: limitsDocument("[{users: [bob]}]"), refused: "limit"},
	{name: "zero resources", body: limitsDocument("[{users: [bob], maxresources: {vcore: 0}}]"), refused: "above 0"},
	{name: "a bad user", body: limitsDocument("[{users: [user_inva!lid], maxapplications: 2}]"), refused: "is not"},
	{name: "a bad group", body: limitsDocument("[{groups: [99test], maxapplications: 2}]"), refused: "is not"},
	{name: "twice", body: limitsDocument("[{users: [bob], maxapplications: 2}, {users: [bob], maxapplications: 1}]"), refused: "bob"},
	{name: "the wildcard last", body: limitsDocument(`[{users: [bob], maxapplications: 2}, {users: ["*"], maxapplications: 1}]`)},
	{name: "the wildcard first", body: limitsDocument(`[{users: ["*"], maxapplications: 2}, {users: [bob], maxapplications: 1}]`), refused: "bob"},
	{name: "a group twice", body: limitsDocument("[{groups: [dev], maxapplications: 2}, {groups: [dev], maxapplications: 1}]"), refused: "dev"},
	{name: "a group after the wildcard", body: limitsDocument(`[{groups: [ops], maxapplications: 2}, {groups: ["*"], maxapplications: 2}, {groups: [dev], maxapplications: 1}]`), refused: "dev"},
	{name: "more applications than the wildcard above", body: queueDocument(`{name: a, parent: true, limits: [{users: ["*"], maxapplications: 2}], ` +
		"queues: [{name: b, limits: [{users: [bob], maxapplications: 3}]}]}"), refused: "bob"},
	{name: "only the wildcard of groups", body: limitsDocument(`[{groups: ["*"], maxapplications: 2}]`), refused: "group"},
	{name: "more than the max", body: limitsDocument("[{users: [bob], maxresources: {vcore: 11}}]"), refused: "max"},
	{name: "another type than the max", body: limitsDocument("[{users: [bob], maxresources: {memory: 11}}]")},
	{name: "more applications than the queue", body: limitsDocument("[{users: [bob], maxapplications: 6}]"), refused: "maxapplications"},
	{name: "more than above", body: queueDocument("{name: a, parent: true, limits: [{users: [bob], maxresources: {vcore: 5}}], " +
		"queues: [{name: b, limits: [{users: [bob], maxresources: {vcore: 6}}]}]}"), refused: "bob"},
	{name: "more than the wildcard above", body: queueDocument(`{name: a, parent: true, limits: [{users: ["*"], maxresources: {vcore: 5}}], ` +
		"queues: [{name: b, limits: [{users: [bob], maxresources: {vcore: 6}}]}]}"), refused: "bob"},
	{name: "unbounded applications below a bound", body: queueDocument("{name: a, parent: true, limits: [{users: [bob], maxapplications: 2}], " +
		"queues: [{name: b, limits: [{users: [bob], maxresources: {vcore: 4}}]}]}"), refused: "bob"},
	{name: "more applications than above", body: queueDocument("{name: a, parent: true, limits: [{groups: [dev], maxapplications: 2}], " +
		"queues: [{name: b, limits: [{groups: [dev], maxapplications: 3}]}]}"), refused: "dev"},
	{name: "at root without a max", body: "  queues:\n  - {name: root, limits: [{users: [bob], maxresources: {vcore: 1000000}}]}\n"},
	{name: "less than above", body: queueDocument("{name: a, parent: true, limits: [{users: [bob], maxresources: {vcore: 5}}], " +
		"queues: [{name: b, limits: [{users: [bob], maxresources: {vcore: 4}}]}]}")},
	{name: "of the partition and of root, equal", body: "  limits: [{users: [bob], maxapplications: 2}]\n  queues:\n  - {name: root, limits: [{users: [bob], maxapplications: 2}]}\n"},
	{name: "of the partition and of root, different", body: "  limits: [{users: [bob], maxapplications: 2}]\n  queues:\n  - {name: root, limits: [{users: [bob], maxapplications: 3}]}\n",
		refused: "limits"},
}

// templateDocument is a parent with a child template.
func templateDocument(template string) string {
	return queueDocument("{name: a, parent: true, childtemplate: " + template + "}")
}

var templateCases = []judged{
	{name: "empty", body: templateDocument("{}")},
	{name: "all of it", body: templateDocument("{maxapplications: 10, properties: {application.sort.policy: fair, preemption.policy: disabled}, resources: {guaranteed: {vcore: 1}, max: {vcore: 2}}}")},
	{name: "guaranteed above max", body: templateDocument("{resources: {guaranteed: {vcore: 3}, max: {vcore: 2}}}"), warnings: 1},
	{name: "a bad quantity", body: templateDocument("{resources: {max: {vcore: -1}}}"), refused: "vcore"},
	{name: "an unknown key", body: templateDocument("{limits: []}"), refused: "limits"},
	{name: "at root", body: "  queues:\n  - {name: root, childtemplate: {maxapplications: 3}}\n"},
	{name: "a property that means nothing", body: templateDocument("{properties: {application.sort.policy: lottery}}"), warnings: 1},
	{name: "of a leaf", body: queueDocument("{name: a, childtemplate: {maxapplications: 3}}"), warnings: 1},
}

// TestFilterKeepsWhatIsAName has what is left of the lists.
func TestFilterKeepsWhatIsAName(t *testing.T) {
	for filter, want := range map[string]string{
		`{users: [bob, "a.*"], groups: [99test, dev]}`: "allow users=bob groups=dev",
		`{type: deny, users: ["a b", "c d"]}`:          "deny (a list without names)",
		`{users: ["^b.*"]}`:                            `allow users=~"^b.*"`,
		`{users: [bob$]}`:                              "allow users=bob$",
	} {
		spec := expect.Get(Parse([]byte("partitions:\n- name: default\n" + filterDocument(filter))))(t)
		expect.Same(t, filter, want, fmt.Sprint(spec.Rules[0].Filter))
		if spec.Rules[0].Filter.Empty() {
			t.Errorf("%s is empty, so it would allow all users", filter)
		}
	}
}
