package web

import (
	"cmp"
	"strings"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

const (
	// decisionsAtOnce is how many decisions are on a page, endedAtOnce how many holds
	// that are over.
	decisionsAtOnce, endedAtOnce = 25, 25
	// partsAtOnce is how many victims, numbers or nodes of a decision are listed.
	partsAtOnce = 100
)

// Which decisions are shown.
const (
	showMade    = "made"
	showRefused = "refuse"
)

var decisionChoices = []choice{
	{Value: showAll, Label: "all"},
	{Value: showMade, Label: "for which a node was held"},
	{Value: showRefused, Label: "refused"},
}

// decisionsContent is what is on the page of decisions.
type decisionsContent struct {
	Queue, Namespace, Pod string
	Shows                 []choice
	Filtered              bool
	Rows                  []decisionRow
	Pager                 pager
	Ended                 []record.EndedHold
	EndedPager            pager
	// Lost is how many steps were not recorded; empty for none.
	Lost string
}

// decisionRow is a decision.
type decisionRow struct {
	*record.Decision
	Age string
	// Says is the outcome in a word, Style its style.
	Says, Style string
	// Again says how often it was made; empty for once.
	Again string
	// Victims and Numbers are the first of those of the decision.
	Victims  []record.Victim
	Numbers  []record.Number
	Notes    []string
	Unlisted unlisted
}

// unlisted counts the victims and the numbers of a decision that the page does not show.
type unlisted struct{ Victims, Numbers int }

func (p *Pages) decisionsPage(r *request) (any, string) {
	show, choices := r.choose("show", decisionChoices)
	out := decisionsContent{
		Queue: strings.ToLower(r.text("queue")), Namespace: r.text("namespace"), Pod: r.text("pod"), Shows: choices,
	}
	query := record.Query{Namespace: out.Namespace, Pod: out.Pod, Queue: out.Queue}
	out.Filtered = query != record.Query{} || show != showAll
	var all []*record.Decision
	for _, d := range p.options.Record.Decisions(query) {
		if show == showAll || (show == showRefused) == (d.Outcome == planner.Refuse) {
			all = append(all, d)
		}
	}
	all, out.Pager = cut(r, "page", "decision", all, decisionsAtOnce)
	for _, d := range all {
		out.Rows = append(out.Rows, decisionOf(d, r.now))
	}
	out.Ended, out.EndedPager = cut(r, "ended", "hold", p.options.Record.Ended(query), endedAtOnce)
	if n := p.options.Record.Lost(); n > 0 {
		out.Lost = count(int(n), "step")
	}
	out.Queue, out.Namespace, out.Pod = visible(out.Queue), visible(out.Namespace), visible(out.Pod)
	return out, ""
}

func decisionOf(d *record.Decision, now time.Time) decisionRow {
	row := decisionRow{
		Decision: d, Age: age(now, d.Last), Notes: notesOf(d),
		Victims: d.Victims[:min(len(d.Victims), partsAtOnce)], Numbers: d.Numbers[:min(len(d.Numbers), partsAtOnce)],
	}
	row.Unlisted = unlisted{len(d.Victims) - len(row.Victims), len(d.Numbers) - len(row.Numbers)}
	switch d.Outcome {
	case planner.Preempt:
		row.Says, row.Style = "preempts "+count(max(len(d.Victims), 1), "pod"), "alert"
		if d.TakenUp {
			row.Says = "taken up after a restart"
		}
	case planner.Hold:
		row.Says, row.Style = "node held, no victims", "fence"
	default:
		row.Says, row.Style = "refused", "quiet"
	}
	if d.Times > 1 {
		row.Again = thousands(int64(d.Times)) + " times since " + at(d.Time).UTC
	}
	return row
}

func victimMarks(v *record.Victim) (out marks) {
	out.add(v.OptedOut, "alert", "opted out", "it opted out of preemption, and there was no lawful plan without it")
	out.add(v.Originator, "alert", "originator", "its application is lost without it")
	return out
}

// requested writes amounts by type.
func requested(m map[string]resources.Amount) string {
	return amounts(withoutPods(resources.VectorFrom(m)))
}

// laws are short descriptions of the laws.
var laws = map[string]string{
	"2":  "law 2: no queue falls below its guarantee",
	"4":  "law 4: the asker's queue is below its guarantee",
	"5":  "law 5: the victim's queue is over its guarantee",
	"7":  "law 7: room under the max",
	"D7": "rule D7: what the node lacks",
}

func law(name string) string { return cmp.Or(laws[name], visible(name)) }

// amount writes an amount of a type; empty for one that plays no part.
func amount(of string, a *resources.Amount) string {
	if a == nil {
		return ""
	}
	return number(of, *a)
}

// notesOf returns the notes on a decision.
func notesOf(d *record.Decision) []string {
	var out []string
	add := func(yes bool, text string) {
		if yes {
			out = append(out, text)
		}
	}
	add(d.Kind == record.NodeBound, "The pod can run on this node only, so rules D1 to D8 apply.")
	add(d.OptedOut > 0, count(d.OptedOut, "victim")+" had opted out of preemption; there was no lawful way without.")
	add(d.Violations > 0, count(int(d.Violations), "disruption")+" beyond what PodDisruptionBudgets allow.")
	add(d.Incomplete, "Not every choice was weighed.")
	if n := len(d.Unfit); n > 0 {
		names := make([]string, 0, n)
		for _, name := range d.Unfit[:min(n, 10)] {
			names = append(names, visible(name))
		}
		more := ""
		if n > len(names) {
			more = " and " + thousands(int64(n-len(names))) + " more"
		}
		add(true, "Nodes that reject the pod even without other pods: "+strings.Join(names, ", ")+more+".")
	}
	add(len(d.Contested) > 0, "The pod lacks "+visible(strings.Join(d.Contested, ", "))+".")
	return out
}
