package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// outcomeOf reduces a decision to its visible part.
func outcomeOf(d *planner.Decision) scenario.Outcome {
	o := scenario.Outcome{Asker: d.Ask.Name, Kind: d.Outcome, Node: d.Node, Rule: d.Stopped}
	for _, v := range d.Victims {
		o.Victims = append(o.Victims, v.Name)
	}
	slices.Sort(o.Victims)
	return o
}

// printed returns a decision in the format of the files.
func printed(d *planner.Decision) string {
	var b strings.Builder
	switch d.Outcome {
	case planner.Wait:
		fmt.Fprintf(&b, "wait for %s\n", d.Node)
	case planner.Refuse:
		fmt.Fprintf(&b, "refused: %s\n", d.Stopped)
		for _, r := range d.Rejected {
			fmt.Fprintf(&b, "  %d of %s\n", r.Pods, r.Rule)
		}
	case planner.Preempt:
		fmt.Fprintf(&b, "preempt for %s on %s, short of %s\n", d.Ask.Name, d.Node, strings.Join(d.Contested, " "))
		for _, v := range d.Victims {
			fmt.Fprintf(&b, "  victim %s of %s", v.Name, v.Queue)
			if v.Node != d.Node {
				fmt.Fprintf(&b, " on %s", v.Node)
			}
			b.WriteByte('\n')
		}
		if d.OptedOut > 0 {
			fmt.Fprintf(&b, "  opted out: %d\n", d.OptedOut)
		}
		if d.Violations > 0 {
			fmt.Fprintf(&b, "  budgets violated: %d\n", d.Violations)
		}
		for _, c := range d.Changes {
			fmt.Fprintf(&b, "  %s\n", change(c))
		}
	}
	return b.String()
}

func change(c planner.Change) string {
	amounts := resources.Format(c.Type, c.Used) + " - " + resources.Format(c.Type, c.Taken)
	if c.Ask {
		amounts += " + " + resources.Format(c.Type, c.Asked)
	}
	return fmt.Sprintf("%s %s %s, guaranteed %s", c.Queue, c.Type, amounts, resources.Format(c.Type, c.Guaranteed))
}

func TestOutcomesAreReadAsPrinted(t *testing.T) {
	ask := &planner.Ask{Name: "p1"}
	victim := func(name, node string) planner.Victim {
		return planner.Victim{Pod: &planner.Pod{Name: name}, Node: node, Queue: "root.q"}
	}
	for _, d := range []planner.Decision{
		{Ask: ask, Outcome: planner.Wait, Node: "n1"},
		{Ask: ask, Outcome: planner.Refuse, Stopped: planner.RuleTooLittle, Rejected: []planner.Rejection{{Rule: planner.Law3, Pods: 1}}},
		{Ask: ask, Outcome: planner.Refuse},
		{
			Ask: ask, Outcome: planner.Preempt, Node: "n1", Victims: []planner.Victim{victim("b", "n2"), victim("a", "n1")},
			Contested: []string{resources.CPU, resources.Pods}, OptedOut: 1, Violations: 2,
			Changes: []planner.Change{{Queue: "root.q", Type: resources.CPU, Used: 2000, Taken: 1000, Ask: true, Asked: 500}},
		},
	} {
		text := printed(&d)
		got, err := scenario.ReadOutcome("p1", text)
		if diff := cmp.Diff(outcomeOf(&d), got); diff != "" || err != nil {
			t.Errorf("%v %s\n%s", err, diff, text)
		}
	}
	for _, text := range []string{"", "preempt for p2 on n1, short of vcore\n  victim a of root.q\n", "preempt for p1 on n1, short of vcore\n"} {
		if o, err := scenario.ReadOutcome("p1", text); err == nil {
			t.Errorf("%q is read as %v", text, o)
		}
	}
}
