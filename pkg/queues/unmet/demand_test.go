package unmet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
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
  c
  d guaranteed.memory=1 guaranteed.vcore=1`
	for _, c := range []struct {
		name  string
		usage []string
		want  []string
	}{
		{"no pod waits", nil, nil},
		{"no pod waits for what is guaranteed", []string{"root.b pending=vcore=1"}, nil},
		{"no guarantee", []string{"root.c pending=vcore=1"}, nil},
		{"a leaf and its parent", []string{"root.a.x used=vcore=3 pending=vcore=1"}, []string{"root.a", "root.a.x"}},
		{"the leaf has its own, so it may not ask for its parent", []string{"root.a.x used=vcore=4 pending=vcore=1"}, nil},
		{"its sibling may", []string{"root.a.x used=vcore=4 pending=vcore=1", "root.a.y pending=vcore=1"}, []string{"root.a"}},
		{"the parent has its own: the leaf may ask its sibling", []string{"root.a.y used=vcore=10", "root.a.x pending=vcore=1"}, []string{"root.a.x"}},
		{"what plans take is not used", []string{"root.b used=memory=8 preempted=memory=1 pending=memory=1"}, []string{"root.b"}},
		{"what leaves by itself is used", []string{"root.b used=memory=8 leaving=memory=1 pending=memory=1"}, nil},
		{"each type for itself", []string{"root.d used=memory=1 pending=memory=1,vcore=1"}, []string{"root.d"}},
		{"exactly the guarantee", []string{"root.b used=memory=8 pending=memory=1"}, nil},
	} {
		expect.Same(t, c.name, c.want, names(Find(tree(t, settings, c.usage...), inOrder)))
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
