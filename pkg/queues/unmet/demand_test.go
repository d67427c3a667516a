package unmet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// tree is queues with what is used and waited for: "root.a used=vcore=2 preempted=vcore=1 pending=vcore=3".
func tree(tb testing.TB, settings string, usage ...string) *queues.Snapshot {
	tb.Helper()
	d := queues.NewDraftFrom(queuestest.MustTree(tb, settings))
	for _, line := range usage {
		words := strings.Fields(line)
		q, ok := d.Find(words[0])
		if !ok {
			tb.Fatalf("no queue %s", words[0])
		}
		d.Update(q.ID, func(u *queues.Usage) {
			for _, word := range words[1:] {
				what, amounts, _ := strings.Cut(word, "=")
				v := queuestest.Vector(strings.ReplaceAll(amounts, ",", " "))
				switch what {
				case "used":
					u.Allocated = u.Allocated.Add(v)
				case "preempted":
					u.Leaving, u.Preempted = u.Leaving.Add(v), u.Preempted.Add(v)
				case "leaving":
					u.Leaving = u.Leaving.Add(v)
				case "pending":
					u.Pending = u.Pending.Add(v)
				}
			}
		})
	}
	return d.Publish(nil)
}

// inOrder is for leaves where all pods wait for their turn.
func inOrder(leaves []*queues.Queue) []reasons.Code {
	return slices.Repeat([]reasons.Code{reasons.InOrder}, len(leaves))
}

func names(found []Demand) []string {
	var out []string
	for _, d := range found {
		out = append(out, d.Queue)
	}
	return out
}

func TestFind(t *testing.T) {
	const settings = `root
  a parent guaranteed.vcore=10
    x guaranteed.vcore=4
    y
  b guaranteed.memory=8
  c`
	for _, c := range []struct {
		name  string
		usage []string
		want  []string
	}{
		{"nobody waits", nil, nil},
		{"nobody waits for what is guaranteed", []string{"root.b pending=vcore=1"}, nil},
		{"no guarantee", []string{"root.c pending=vcore=1"}, nil},
		{"a leaf and its parent", []string{"root.a.x used=vcore=3 pending=vcore=1"}, []string{"root.a", "root.a.x"}},
		{"the leaf has its own, so it may not ask for its parent", []string{"root.a.x used=vcore=4 pending=vcore=1"}, nil},
		{"its sibling may", []string{"root.a.x used=vcore=4 pending=vcore=1", "root.a.y pending=vcore=1"}, []string{"root.a"}},
		{"the parent has its own: the leaf may ask its sibling", []string{"root.a.y used=vcore=10", "root.a.x pending=vcore=1"}, []string{"root.a.x"}},
		{"what plans take is not used", []string{"root.b used=memory=8 preempted=memory=1 pending=memory=1"}, []string{"root.b"}},
		{"what leaves by itself is used", []string{"root.b used=memory=8 leaving=memory=1 pending=memory=1"}, nil},
		{"exactly the guarantee", []string{"root.b used=memory=8 pending=memory=1"}, nil},
	} {
		expect.Same(t, c.name+"", c.want, names(Find(tree(t, settings, c.usage...), inOrder)))
	}
}

func TestReasons(t *testing.T) {
	const settings = `root
  a parent guaranteed.vcore=10
    x
    y
    z`
	s := tree(t, settings, "root.a.x pending=vcore=1", "root.a.y pending=vcore=1", "root.a.z pending=vcore=1")
	for _, c := range []struct {
		codes []reasons.Code
		want  []Demand
	}{
		{[]reasons.Code{"", "", ""}, nil},
		{[]reasons.Code{reasons.PreemptionRefused, "", reasons.PreemptionPaced}, []Demand{{"root.a", reasons.PreemptionPaced}}},
		{[]reasons.Code{reasons.PreemptionPaced, "", reasons.PreemptionRefused}, []Demand{{"root.a", reasons.PreemptionPaced}}},
		{[]reasons.Code{reasons.PreemptionDelayed, reasons.MakingRoom, reasons.InOrder}, []Demand{{"root.a", reasons.MakingRoom}}},
	} {
		expect.Same(t, fmt.Sprintf("%v", c.codes), c.want, Find(s, func([]*queues.Queue) []reasons.Code { return c.codes }))
	}
	known := map[reasons.Code]bool{}
	for _, code := range byNearness {
		if _, is := reasons.Explain(code); !is || known[code] {
			t.Errorf("%s is no reason, or twice there", code)
		}
		known[code] = true
	}
}

// random is a snapshot of some queues, their quotas and usage.
func random(tb testing.TB, r *rand.Rand) *queues.Snapshot {
	amounts := func() string { return fmt.Sprintf("vcore=%d,memory=%d", r.IntN(4), r.IntN(4)) }
	guarantee := func() string {
		var out string
		for _, name := range []string{"vcore", "memory"} {
			if r.IntN(2) == 0 {
				out += fmt.Sprintf(" guaranteed.%s=%d", name, r.IntN(9))
			}
		}
		return out
	}
	settings, usage := "root", []string{}
	for i := range 1 + r.IntN(3) {
		settings += fmt.Sprintf("\n  p%d parent%s", i, guarantee())
		for j := range 1 + r.IntN(3) {
			settings += fmt.Sprintf("\n    l%d%s", j, guarantee())
			usage = append(usage, fmt.Sprintf("root.p%d.l%d used=%s preempted=%s pending=%s", i, j, amounts(), amounts(), amounts()))
		}
	}
	return tree(tb, settings, usage...)
}

// defined is the definition, word by word: for each queue, type and leaf.
func defined(s *queues.Snapshot) map[string]bool {
	out := map[string]bool{}
	for q := range s.All() {
		for name, guaranteed := range q.Guaranteed.All() {
			for leaf := range s.All() {
				if !q.IsRoot() && leaf.Leaf && strings.HasPrefix(leaf.Path+".", q.Path+".") && leaf.Pending.Get(name) > 0 &&
					q.Kept().Get(name) < guaranteed && allUnder(s, leaf, q, name) {
					out[q.Path] = true
				}
			}
		}
	}
	return out
}

// allUnder tells whether all queues from a leaf up to one of its path are under
// their guarantee, where they have one.
func allUnder(s *queues.Snapshot, leaf, top *queues.Queue, name string) bool {
	for q := range s.Ancestors(leaf.ID) {
		if g, is := q.Guaranteed.Get(name); is && q.Kept().Get(name) >= g {
			return false
		}
		if q.ID == top.ID {
			break
		}
	}
	return true
}

// differs looks for a snapshot where a way to find demand is not the definition.
func differs(tb testing.TB, find func(*queues.Snapshot) []string) string {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 500 {
		s := random(tb, r)
		if want, got := slices.Sorted(maps.Keys(defined(s))), slices.Sorted(slices.Values(find(s))); !slices.Equal(want, got) {
			return fmt.Sprintf("case %d: %v, want %v in\n%s%s", i, got, want, queuestest.ShowSettings(s), queuestest.ShowUsage(s))
		}
	}
	return ""
}

func TestFindIsTheDefinition(t *testing.T) {
	if d := differs(t, func(s *queues.Snapshot) []string { return names(Find(s, inOrder)) }); d != "" {
		t.Error(d)
	}
}

// planted is Find with a bug: what counts as used, when a queue is under its
// guarantee, and whether to go on above one that is not.
func planted(used func(*queues.Queue) resources.Vector, over func(used, guaranteed resources.Amount) bool, goOn bool) func(*queues.Snapshot) []string {
	return func(s *queues.Snapshot) []string {
		found := map[string]bool{}
		for leaf := range s.All() {
			if !leaf.Leaf {
				continue
			}
			for name, pending := range leaf.Pending.All() {
				for q := range s.Ancestors(leaf.ID) {
					g, is := q.Guaranteed.Get(name)
					switch {
					case q.IsRoot(), !is, pending <= 0:
					case !over(used(q).Get(name), g):
						found[q.Path] = true
					case !goOn:
						pending = 0
					}
				}
			}
		}
		return slices.Collect(maps.Keys(found))
	}
}

func TestPlantedBugsAreFound(t *testing.T) {
	atLeast := func(used, guaranteed resources.Amount) bool { return used >= guaranteed }
	more := func(used, guaranteed resources.Amount) bool { return used > guaranteed }
	allocated := func(q *queues.Queue) resources.Vector { return q.Allocated }
	if d := differs(t, planted((*queues.Queue).Kept, atLeast, false)); d != "" {
		t.Errorf("without a bug: %s", d)
	}
	for name, bug := range map[string]func(*queues.Snapshot) []string{
		"preempted pods count as used":                  planted(allocated, atLeast, false),
		"a queue with all it is guaranteed is under it": planted((*queues.Queue).Kept, more, false),
		"a queue that has its own asks for its parent":  planted((*queues.Queue).Kept, atLeast, true),
	} {
		if differs(t, bug) == "" {
			t.Errorf("not found: %s", name)
		}
	}
}
