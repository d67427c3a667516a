package compare

import (
	"maps"
	"slices"
	"strings"

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
			out = append(out, guarantees(c.Path, a.Guaranteed, b.Guaranteed)...)
		case c.Kind == config.MaxChanged && a != nil && b != nil:
			out = append(out, maxima(c.Path, a.Max, b.Max)...)
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

func guarantees(path string, before, after resources.Guarantee) []Difference {
	var out []Difference
	for _, name := range names(before.Map(), after.Map()) {
		a, had := before.Get(name)
		b, has := after.Get(name)
		if had == has && a == b {
			continue
		}
		d := Difference{Queue: path, Setting: "guaranteed " + name, Effect: Raised, Old: amount(name, a, had, none), New: amount(name, b, has, none)}
		if a > b || had && !has {
			d.Effect = Lowered
		}
		out = append(out, d)
	}
	return out
}

func maxima(path string, before, after resources.Limit) []Difference {
	var out []Difference
	for _, name := range names(before.Map(), after.Map()) {
		a, had := before.Get(name)
		b, has := after.Get(name)
		if had == has && a == b {
			continue
		}
		d := Difference{Queue: path, Setting: "max " + name, Effect: Raised, Old: amount(name, a, had, unlimited), New: amount(name, b, has, unlimited)}
		if !had || has && b < a {
			d.Effect = Lowered
		}
		out = append(out, d)
	}
	return out
}

func names(a, b map[string]resources.Amount) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.SortFunc(all, strings.Compare)
	return slices.Compact(all)
}

func amount(name string, a resources.Amount, set bool, unset string) string {
	if !set {
		return unset
	}
	return quantity.Format(name, a)
}
