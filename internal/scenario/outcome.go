package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/planner"
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

// ReadOutcome reads a decision about an asker in the format of the files.
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
