package planner_test

import (
	"fmt"
	"slices"
	"strings"

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
