package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Outcome is the decision about an asker, as far as it is visible from outside.
type Outcome struct {
	Asker string
	Kind  planner.Outcome
	// Node is where the asker must run; empty when refused.
	Node string
	// Victims are names, sorted.
	Victims []string
	// Rule is why it was refused; empty otherwise, and if no rule refused it.
	Rule planner.Rule
}

// String returns one line.
func (o Outcome) String() string {
	switch o.Kind {
	case planner.Refuse:
		return fmt.Sprintf("%s is refused: %s", o.Asker, o.Rule)
	case planner.Wait:
		return fmt.Sprintf("%s waits for %s", o.Asker, o.Node)
	}
	return fmt.Sprintf("%s preempts %s on %s", o.Asker, strings.Join(o.Victims, ", "), o.Node)
}

// OutcomeOf reduces a decision to its visible part.
func OutcomeOf(d *planner.Decision) Outcome {
	o := Outcome{Asker: d.Ask.Name, Kind: d.Outcome, Node: d.Node, Rule: d.Stopped}
	for _, v := range d.Victims {
		o.Victims = append(o.Victims, v.Name)
	}
	slices.Sort(o.Victims)
	return o
}

// Print prints a decision in the format of the files.
func Print(d *planner.Decision) string {
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

// ReadOutcome reads the output of Print.
func ReadOutcome(asker, text string) (Outcome, error) {
	o := Outcome{Asker: asker}
	first, rest, _ := strings.Cut(text, "\n")
	if node, ok := strings.CutPrefix(first, "wait for "); ok {
		o.Kind, o.Node = planner.Wait, node
		return o, nil
	}
	if rule, ok := strings.CutPrefix(first, "refused:"); ok {
		o.Kind, o.Rule = planner.Refuse, planner.Rule(strings.TrimSpace(rule))
		return o, nil
	}
	where, ok := strings.CutPrefix(first, "preempt for "+asker+" on ")
	if !ok {
		return o, fmt.Errorf("%q is no decision about %s", first, asker)
	}
	o.Kind = planner.Preempt
	o.Node, _, _ = strings.Cut(where, ",")
	for _, text := range strings.Split(rest, "\n") {
		if words := strings.Fields(text); len(words) > 1 && words[0] == "victim" {
			o.Victims = append(o.Victims, words[1])
		}
	}
	slices.Sort(o.Victims)
	if len(o.Victims) == 0 {
		return o, fmt.Errorf("%q has no victims", first)
	}
	return o, nil
}
