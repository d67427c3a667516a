package record

import (
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// taken is a lawful decision: root.a, which uses 2 of 4 guaranteed vcore, takes 2 of
// the 4 that root.b.c uses. The node is short of vcore.
func taken() *Decision {
	n := func(v resources.Amount) *resources.Amount { return &v }
	return &Decision{
		Kind: Queue, Outcome: planner.Preempt, Queue: "root.a", Contested: []string{"vcore"},
		Victims: []Victim{{Ref: objects.Ref{Namespace: "ns", Name: "v"}, Queue: "root.b.c", Requests: map[string]resources.Amount{"vcore": 2}, Effective: new(int64), AskerEffective: new(int64)}},
		Numbers: []Number{
			{Law: "2", Queue: "root", Resource: "vcore", Used: n(6), Taken: n(2), Asked: n(2), Guaranteed: n(6)},
			{Law: "2", Queue: "root.b.c", Resource: "vcore", Used: n(4), Taken: n(2), Asked: n(0), Guaranteed: n(1)},
			{Law: "4", Queue: "root.a", Resource: "vcore", Used: n(2), Taken: n(0), Asked: n(2), Guaranteed: n(4)},
			{Law: "5", Queue: "root.b", Resource: "vcore", Used: n(4), Taken: n(2), Asked: n(0), Guaranteed: n(0)},
			{Law: "5", Queue: "root.b.c", Resource: "vcore", Used: n(4), Taken: n(2), Asked: n(0), Guaranteed: n(1)},
			{Law: "7", Queue: "root.a", Resource: "vcore", Used: n(2), Taken: n(0), Asked: n(2), Max: n(4)},
		},
	}
}

// TestVerify: a lawful decision stands, and each law that is broken is named. That the
// decisions of the planner stand is a test of package planner.
func TestVerify(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Decision)
		want   string // "" for lawful, "not judged"
	}{
		{"as it was made", func(*Decision) {}, ""},
		{"below the guarantee", func(d *Decision) { *d.Numbers[1].Guaranteed = 3 }, "law 2: queue root.b.c falls from 4 to 2 vcore, and 3 is guaranteed"},
		{"a common queue falls", func(d *Decision) { *d.Numbers[0].Asked = 1 }, "law 2: queue root falls from 6 to 5"},
		{"a shortage that moves", func(d *Decision) { *d.Numbers[1].Guaranteed, d.Contested = 5, nil }, ""},
		{"more goes than was judged", func(d *Decision) { d.Victims[0].Requests["vcore"] = 3 }, "law 2: queue root.b.c is judged as if its victims freed 2 vcore; they free 3"},
		{"of the same queue", func(d *Decision) { d.Victims[0].Queue = "root.a" }, "law 3: victim ns/v is of queue root.a"},
		{"of a queue above", func(d *Decision) { d.Victims[0].Queue = "root" }, "law 3:"},
		{"not below its guarantee", func(d *Decision) { *d.Numbers[2].Used = 4 }, "law 4: queue root.a of the pod uses 4 of 4"},
		{"nothing is guaranteed", func(d *Decision) { d.Numbers = append(d.Numbers[:2:2], d.Numbers[3:]...) }, "law 4: no queue of the pod"},
		{"a queue is not over its guarantee", func(d *Decision) { *d.Numbers[3].Guaranteed = 4 }, "law 5: queue root.b of victim ns/v"},
		{"a victim that frees nothing", func(d *Decision) { d.Victims[0].Requests = nil }, "law 5: queue root.b.c of victim ns/v"},
		{"a victim of no queue", func(d *Decision) { d.Victims[0].Queue = "" }, "law 5: queue  of victim ns/v"},
		{"a victim of another tree", func(d *Decision) { d.Victims[0].Queue = "top.b" }, "law 5: queue top of victim ns/v"},
		{"of higher priority", func(d *Decision) { *d.Victims[0].Effective = 1 }, "law 6: victim ns/v has priority 1, the pod 0"},
		{"over its max", func(d *Decision) { *d.Numbers[5].Max = 3 }, "law 7: queue root.a of the pod comes to 4 vcore, and its max is 3"},
		{"on its only node", func(d *Decision) {
			d.Kind, d.Numbers = NodeBound, []Number{{Law: "D7", Resource: "vcore", Short: d.Numbers[0].Taken}}
		}, ""},
		{"not enough there", func(d *Decision) {
			d.Kind, d.Numbers = NodeBound, []Number{{Law: "D7", Resource: "vcore", Short: d.Numbers[1].Used}}
		}, "law D7: the node is short of 4 vcore; the victims free 2"},
		{"no pod goes", func(d *Decision) { d.Outcome = planner.Refuse }, "not judged"},
		{"of an earlier process", func(d *Decision) { d.TakenUp = true }, "not judged"},
		{"without numbers", func(d *Decision) { d.Numbers = nil }, "not judged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := taken()
			c.change(d)
			broken, judged := d.Verify()
			got := strings.Join(broken, "\n")
			if !judged {
				got = "not judged"
			}
			expect.That(t, (c.want != "" || got == "") && strings.Contains(got, c.want),
				"got %q, want %q", got, c.want)
		})
	}
}
