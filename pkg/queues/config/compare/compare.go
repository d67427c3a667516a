package compare

import (
	"maps"
	"math"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues/config/quantity"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
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

// String renders the difference as a sentence without the queue, such as "max
// vcore raised from 4 to 8".
func (d Difference) String() string {
	switch {
	case d.Setting == wholeQueue && d.Effect == Added:
		return "added: " + d.New
	case d.Setting == wholeQueue:
		return "removed: it was a " + d.Old
	case d.Old == "":
		return d.Setting + " set to " + d.New
	case d.New == "":
		return d.Setting + " removed, it was " + d.Old
	case d.Effect == Changed:
		return d.Setting + " changed from " + d.Old + " to " + d.New
	}
	return d.Setting + " " + string(d.Effect) + " from " + d.Old + " to " + d.New
}

const (
	wholeQueue = "queue"
	unlimited  = "unlimited"
	none       = "none"
)

// Specs returns what is different, in the order of [config.Diff], types by name;
// empty exactly when the two do the same. A nil specification has nothing but an
// empty root.
func Specs(before, after *config.Spec) []Difference {
	old, now := queuesOf(before), queuesOf(after)
	var out []Difference
	for _, c := range config.Diff(before, after) {
		switch a, b := old[c.Path], now[c.Path]; {
		case c.Kind == config.GuaranteedChanged && a != nil && b != nil:
			out = append(out, quotas(c.Path, "guaranteed", none, a.Guaranteed.Map(), b.Guaranteed.Map())...)
		case c.Kind == config.MaxChanged && a != nil && b != nil:
			out = append(out, quotas(c.Path, "max", unlimited, a.Max.Map(), b.Max.Map())...)
		default:
			out = append(out, whole(c))
		}
	}
	return out
}

func queuesOf(spec *config.Spec) map[string]*config.Queue {
	out := map[string]*config.Queue{}
	if spec == nil {
		return out
	}
	for q := range spec.Root.All() {
		out[q.Path] = q
	}
	return out
}

// whole is a change that is not about single types.
func whole(c config.Change) Difference {
	d := Difference{Queue: c.Path, Setting: string(c.Kind), Effect: Changed, Old: c.Old, New: c.New}
	switch {
	case c.Kind == config.QueueAdded:
		d.Setting, d.Effect = wholeQueue, Added
	case c.Kind == config.QueueRemoved:
		d.Setting, d.Effect = wholeQueue, Removed
	case c.Old == "":
		d.Effect = Added
	case c.New == "":
		d.Effect = Removed
	}
	if c.Key != "" {
		d.Setting += " " + c.Key
	}
	return d
}

// quotas are the changes of a guarantee or a max by type. More of it, or unset where that
// is the largest, is raised.
func quotas(path, setting, unset string, before, after map[string]resources.Amount) []Difference {
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
	var out []Difference
	for _, name := range names(before, after) {
		a, old := size(before, name)
		b, now := size(after, name)
		if old == now {
			continue
		}
		d := Difference{Queue: path, Setting: setting + " " + name, Effect: Raised, Old: old, New: now}
		if b < a {
			d.Effect = Lowered
		}
		out = append(out, d)
	}
	return out
}

func names(a, b map[string]resources.Amount) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}
