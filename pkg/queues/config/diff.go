package config

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ChangeKind says what about a queue, or the whole, is different.
type ChangeKind string

// The kinds of changes. Those of the whole have an empty path.
const (
	RulesChanged           ChangeKind = "placement rules"
	PreemptionChanged      ChangeKind = "preemption"
	QueueAdded             ChangeKind = "added"
	QueueRemoved           ChangeKind = "removed"
	TypeChanged            ChangeKind = "type"
	GuaranteedChanged      ChangeKind = "guaranteed"
	MaxChanged             ChangeKind = "max"
	MaxApplicationsChanged ChangeKind = "maxapplications"
	SubmitACLChanged       ChangeKind = "submitacl"
	AdminACLChanged        ChangeKind = "adminacl"
	PropertyChanged        ChangeKind = "property"
	LimitsChanged          ChangeKind = "limits"
	TemplateChanged        ChangeKind = "childtemplate"
)

// Change is one difference of two specifications.
type Change struct {
	// Path is the queue's; empty for rules and the preemption switch.
	Path string
	Kind ChangeKind
	// Key is the name of the property for PropertyChanged, empty otherwise.
	Key string
	// Old and New are the values as text; one of them is empty for an added or
	// removed queue, and where a property is on one side only.
	Old, New string
}

// String renders the change in one line, such as "root.a: max: vcore=4 -> vcore=8".
func (c Change) String() string {
	what := string(c.Kind)
	if c.Key != "" {
		what += " " + quoteIfNeeded(c.Key)
	}
	where := ""
	if c.Path != "" {
		where = c.Path + ": "
	}
	if c.Kind == QueueAdded || c.Kind == QueueRemoved {
		return where + what + " (" + c.Old + c.New + ")" // one of them is empty
	}
	return where + what + ": " + orUnset(c.Old) + " -> " + orUnset(c.New)
}

func orUnset(value string) string {
	if value == "" {
		return "(unset)"
	}
	return value
}

// Diff returns what is different in what the specifications do, sorted by path;
// empty exactly when their [Spec.Dump] is the same. A nil specification has
// nothing but an empty root. What a queue has inherited from a parent that
// changed in the same way is not listed again.
func Diff(before, after *Spec) []Change {
	before, after = orEmpty(before), orEmpty(after)
	var d differ
	d.add("", PreemptionChanged, "", onOff(before.PreemptionEnabled), onOff(after.PreemptionEnabled))
	d.add("", RulesChanged, "", rulesText(before.Rules), rulesText(after.Rules))
	d.queue(pair{before.Root, after.Root}, pair{})
	slices.SortFunc(d.changes, func(a, b Change) int {
		return cmp.Or(
			strings.Compare(a.Path, b.Path),
			strings.Compare(string(a.Kind), string(b.Kind)),
			strings.Compare(a.Key, b.Key),
		)
	})
	return d.changes
}

func orEmpty(s *Spec) *Spec {
	if s != nil {
		return s
	}
	return &Spec{
		Root:              &Queue{Name: RootName, Path: RootName, Policies: DefaultPolicies()},
		PreemptionEnabled: true,
	}
}

func rulesText(rules []Rule) string {
	var parts []string
	for i, rule := range rules {
		parts = append(parts, strconv.Itoa(i)+": "+rule.String())
	}
	return strings.Join(parts, "; ")
}

type differ struct {
	changes []Change
}

func (d *differ) add(path string, kind ChangeKind, key, before, after string) {
	if before != after {
		d.changes = append(d.changes, Change{path, kind, key, before, after})
	}
}

// pair is a queue before and after; one of them is nil where it is on one side only.
type pair struct {
	before, after *Queue
}

func (p pair) both() bool { return p.before != nil && p.after != nil }

func (d *differ) queue(q, parent pair) {
	switch {
	case q.before == nil:
		d.add(q.after.Path, QueueAdded, "", "", q.after.summary())
	case q.after == nil:
		d.add(q.before.Path, QueueRemoved, "", q.before.summary(), "")
	default:
		d.settings(q, parent)
	}
	for _, child := range children(q) {
		d.queue(child, q)
	}
}

// children pairs the children of both sides, in order of their names.
func children(q pair) []pair {
	byName := map[string]pair{}
	if q.before != nil {
		for _, c := range q.before.Children {
			byName[c.Name] = pair{before: c}
		}
	}
	if q.after != nil {
		for _, c := range q.after.Children {
			byName[c.Name] = pair{byName[c.Name].before, c}
		}
	}
	out := make([]pair, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, byName[name])
	}
	return out
}

func (d *differ) settings(q, parent pair) {
	a, b, path := q.before, q.after, q.after.Path
	d.add(path, TypeChanged, "", a.kind(), b.kind())
	d.add(path, GuaranteedChanged, "", guaranteeText(a.Guaranteed), guaranteeText(b.Guaranteed))
	d.add(path, MaxChanged, "", limitText(a.Max), limitText(b.Max))
	d.add(path, MaxApplicationsChanged, "", countText(a.MaxApplications), countText(b.MaxApplications))
	d.add(path, SubmitACLChanged, "", a.SubmitACL.String(), b.SubmitACL.String())
	d.add(path, AdminACLChanged, "", a.AdminACL.String(), b.AdminACL.String())
	d.add(path, LimitsChanged, "", limitsText(a.Limits), limitsText(b.Limits))
	d.properties(q, parent)
	before, after := a.Template.String(), b.Template.String()
	if !parent.both() || parent.before.Template.String() != before || parent.after.Template.String() != after {
		d.add(path, TemplateChanged, "", before, after)
	}
}

func limitsText(limits []Limit) string {
	parts := make([]string, len(limits))
	for i, l := range limits {
		parts[i] = l.String()
	}
	return strings.Join(parts, "; ")
}

func (d *differ) properties(q, parent pair) {
	keys := map[string]bool{}
	for key := range q.before.Properties {
		keys[key] = true
	}
	for key := range q.after.Properties {
		keys[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		before, after := propertyText(q.before, key), propertyText(q.after, key)
		if parent.both() && inherited(parent.before, key, before) && inherited(parent.after, key, after) {
			continue
		}
		d.add(q.after.Path, PropertyChanged, key, before, after)
	}
}

// propertyText is the quoted value of a property, empty where it is not set.
func propertyText(q *Queue, key string) string {
	value, ok := q.Properties[key]
	if !ok {
		return ""
	}
	return quoteIfNeeded(value)
}

// inherited tells whether a queue below q with this property text has what q hands down.
func inherited(q *Queue, key, value string) bool {
	own, ok := q.Properties[key]
	if !ok || !passedOn(key, own) {
		return value == ""
	}
	return value == quoteIfNeeded(own)
}

// summary tells an added or removed queue in short.
func (q *Queue) summary() string {
	return q.kind() + ", guaranteed " + guaranteeText(q.Guaranteed) + ", max " + limitText(q.Max)
}
