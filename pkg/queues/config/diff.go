package config

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues/config/quantity"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Effect says what happened to a setting.
type Effect string

// The effects. A quota that is set for the first time is Lowered for a max (it
// was unlimited) and Raised for a guarantee (it was none), and the other way
// round where it is taken away.
const (
	Added   Effect = "added"
	Removed Effect = "removed"
	Raised  Effect = "raised"
	Lowered Effect = "lowered"
	Changed Effect = "changed"
)

// Difference is one thing that is different.
type Difference struct {
	// Queue is the full path; empty for what is about the whole partition.
	Queue string `json:"queue,omitempty"`
	// Setting names what is different: "queue" for a queue as a whole, "max
	// vcore", "property preemption.delay", "placement rules" and so on.
	Setting string `json:"setting"`
	Effect  Effect `json:"effect"`
	// Old and New are the values as people write them; empty where there is none.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
}

// String renders the difference as a sentence, such as "root.a: max vcore raised from 4
// to 8".
func (d Difference) String() string {
	what := d.Setting + " " + string(d.Effect) + " from " + d.Old + " to " + d.New
	switch {
	case d.Setting == wholeQueue && d.Effect == Added:
		what = "added: " + d.New
	case d.Setting == wholeQueue:
		what = "removed: it was a " + d.Old
	case d.Old == "":
		what = d.Setting + " set to " + d.New
	case d.New == "":
		what = d.Setting + " removed, it was " + d.Old
	}
	if d.Queue != "" {
		what = d.Queue + ": " + what
	}
	return what
}

const (
	wholeQueue = "queue"
	unlimited  = "unlimited"
	none       = "none"
)

// Diff returns what is different in what the specifications do, sorted by path;
// empty exactly when they do the same. What a queue has inherited from a parent that
// changed in the same way is not listed again.
func Diff(before, after *Spec) []Difference {
	var d differ
	d.add("", "preemption", onOff(before.PreemptionEnabled), onOff(after.PreemptionEnabled))
	d.add("", "placement rules", rulesText(before.Rules), rulesText(after.Rules))
	d.queue(pair{before.Root, after.Root}, pair{})
	slices.SortFunc(d.found, func(a, b Difference) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), strings.Compare(a.Setting, b.Setting))
	})
	return d.found
}

func rulesText(rules []Rule) string {
	var parts []string
	for i, rule := range rules {
		parts = append(parts, strconv.Itoa(i)+": "+rule.String())
	}
	return strings.Join(parts, "; ")
}

type differ struct {
	found []Difference
}

func (d *differ) add(queue, setting, before, after string) {
	effect := Changed
	switch {
	case before == after:
		return
	case before == "":
		effect = Added
	case after == "":
		effect = Removed
	}
	d.found = append(d.found, Difference{queue, setting, effect, before, after})
}

// quotas adds the changes of a guarantee or a max by type. More of it, or unset where that
// is the largest, is raised.
func (d *differ) quotas(queue, setting, unset string, before, after map[string]resources.Amount) {
	size := func(m map[string]resources.Amount, name string) (size resources.Amount, text string) {
		a, set := m[name]
		switch {
		case set:
			return a, quantity.Format(name, a)
		case unset == unlimited:
			return math.MaxInt64, unset
		}
		return -1, unset
	}
	all := map[string]resources.Amount{}
	maps.Copy(all, before)
	maps.Copy(all, after)
	for name := range all {
		a, old := size(before, name)
		b, now := size(after, name)
		effect := Raised
		if b < a {
			effect = Lowered
		}
		if old != now {
			d.found = append(d.found, Difference{queue, setting + " " + name, effect, old, now})
		}
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
		d.add(q.after.Path, wholeQueue, "", q.after.summary())
	case q.after == nil:
		d.add(q.before.Path, wholeQueue, q.before.summary(), "")
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
	d.add(path, "type", a.kind(), b.kind())
	d.quotas(path, "guaranteed", none, a.Guaranteed.Map(), b.Guaranteed.Map())
	d.quotas(path, "max", unlimited, a.Max.Map(), b.Max.Map())
	d.add(path, "maxapplications", countText(a.MaxApplications), countText(b.MaxApplications))
	d.add(path, "submitacl", a.SubmitACL.String(), b.SubmitACL.String())
	d.add(path, "adminacl", a.AdminACL.String(), b.AdminACL.String())
	d.add(path, "limits", limitsText(a.Limits), limitsText(b.Limits))
	d.properties(q, parent)
	before, after := a.Template.String(), b.Template.String()
	if !parent.both() || parent.before.Template.String() != before || parent.after.Template.String() != after {
		d.add(path, "childtemplate", before, after)
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
	keys := map[string]string{}
	maps.Copy(keys, q.before.Properties)
	maps.Copy(keys, q.after.Properties)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		before, after := propertyText(q.before, key), propertyText(q.after, key)
		if parent.both() && inherited(parent.before, key, before) && inherited(parent.after, key, after) {
			continue
		}
		d.add(q.after.Path, "property "+key, before, after)
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
