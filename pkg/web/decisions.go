package web

import (
	"cmp"
	"strings"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
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
	Ended                 []endedRow
	EndedPager            pager
	// Lost is how many steps were not recorded; empty for none.
	Lost string
}

// decisionRow is a decision.
type decisionRow struct {
	ID             string
	Time           moment
	Age            string
	Namespace, Pod string
	Queue, Node    linked
	// Outcome is the outcome in a word, Kind its style.
	Outcome, Kind string
	Code          reasons.Code
	Message       string
	// Again says how often it was made; empty for once.
	Again    string
	Victims  []victimRow
	Numbers  []numberRow
	Rejected []record.Rejection
	Stages   []stageRow
	Notes    []string
	Unlisted unlisted
}

// unlisted counts the victims and the numbers of a decision that the page does not show.
type unlisted struct{ Victims, Numbers int }

// victimRow is a victim.
type victimRow struct {
	Namespace, Pod string
	Queue, Node    linked
	Requests       string
	Priority       int32
	Note           string
	Marks          []mark
}

// numberRow has the amounts that one law compared, as text; empty for an amount that plays no
// part.
type numberRow struct {
	Law, Queue, Resource                               string
	Used, Taken, Asked, Guaranteed, Max, Free, Missing string
}

// stageRow is a stage of a decision.
type stageRow struct {
	Stage, Message string
	Time           moment
	Code           reasons.Code
}

// endedRow is a hold that is over.
type endedRow struct {
	Node, Queue    linked
	Namespace, Pod string
	Since, Ended   moment
	End, Message   string
	Code           reasons.Code
}

func (p *Pages) decisionsPage(r *request) (any, string) {
	out := decisionsContent{Queue: strings.ToLower(r.text("queue")), Namespace: r.text("namespace"), Pod: r.text("pod")}
	var show string
	show, out.Shows = r.choose("show", decisionChoices)
	query := record.Query{Namespace: out.Namespace, Pod: out.Pod, Queue: out.Queue}
	out.Filtered = query != record.Query{} || show != showAll
	var all []*record.Decision
	for _, d := range p.options.Record.Decisions(query) {
		if show == showAll || (show == showRefused) == (d.Outcome == planner.Refuse) {
			all = append(all, d)
		}
	}
	out.Pager = r.cut("page", "decision", len(all), decisionsAtOnce)
	for _, d := range all[out.Pager.from:out.Pager.to] {
		out.Rows = append(out.Rows, decisionOf(d, r.now))
	}
	ended := p.options.Record.Ended(query)
	out.EndedPager = r.cut("ended", "hold", len(ended), endedAtOnce)
	for i := range ended[out.EndedPager.from:out.EndedPager.to] {
		out.Ended = append(out.Ended, endedOf(&ended[out.EndedPager.from+i]))
	}
	if n := p.options.Record.Lost(); n > 0 {
		out.Lost = count(int(n), "step")
	}
	out.Queue, out.Namespace, out.Pod = visible(out.Queue), visible(out.Namespace), visible(out.Pod)
	return out, ""
}

func decisionOf(d *record.Decision, now time.Time) decisionRow {
	row := decisionRow{
		ID: visible(d.ID), Time: at(d.Last), Age: age(now, d.Last), Namespace: visible(d.Asker.Namespace), Pod: visible(d.Asker.Name),
		Queue: linkedQueue(d.Queue), Node: linkedNode(d.Node), Code: d.Reason, Message: sentence(visible(d.Message)), Notes: notesOf(d),
	}
	switch d.Outcome {
	case planner.Preempt:
		row.Outcome, row.Kind = "preempts "+count(max(len(d.Victims), 1), "pod"), "alert"
		if d.TakenUp {
			row.Outcome = "taken up after a restart"
		}
	case planner.Hold:
		row.Outcome, row.Kind = "node held, no victims", "fence"
	default:
		row.Outcome, row.Kind = "refused", "quiet"
	}
	if d.Times > 1 {
		row.Again = thousands(int64(d.Times)) + " times since " + at(d.Time).UTC
	}
	for i := range d.Victims[:min(len(d.Victims), partsAtOnce)] {
		row.Victims = append(row.Victims, victimOf(&d.Victims[i]))
	}
	row.Unlisted.Victims = len(d.Victims) - len(row.Victims)
	for _, n := range d.Numbers[:min(len(d.Numbers), partsAtOnce)] {
		row.Numbers = append(row.Numbers, numberOf(&n))
	}
	row.Unlisted.Numbers = len(d.Numbers) - len(row.Numbers)
	for _, x := range d.Rejected {
		row.Rejected = append(row.Rejected, record.Rejection{Rule: visible(x.Rule), Pods: x.Pods})
	}
	for _, s := range d.Stages {
		row.Stages = append(row.Stages, stageRow{visible(s.Stage), visible(s.Message), at(s.Time), s.Reason})
	}
	return row
}

func victimOf(v *record.Victim) victimRow {
	row := victimRow{
		Namespace: visible(v.Namespace), Pod: visible(v.Name), Queue: linkedQueue(v.Queue), Node: linkedNode(v.Node),
		Requests: requested(v.Requests), Priority: v.Priority, Note: visible(v.Note),
	}
	if v.OptedOut {
		row.Marks = append(row.Marks, mark{"opted out", "alert", "it asked not to be preempted, and there was no lawful way without it"})
	}
	if v.Originator {
		row.Marks = append(row.Marks, mark{"originator", "alert", "its application is lost without it"})
	}
	return row
}

// requested writes amounts by type.
func requested(m map[string]int64) string {
	var entries []resources.Entry
	for name, amount := range m {
		if name != resources.Pods {
			entries = append(entries, resources.Entry{Name: name, Amount: resources.Amount(amount)})
		}
	}
	return amounts(resources.VectorOf(entries...))
}

// laws are short descriptions of the laws.
var laws = map[string]string{
	"2":  "law 2: no queue falls below its guarantee",
	"4":  "law 4: the preemptor's queue is below its guarantee",
	"5":  "law 5: the victim's queue is over its guarantee",
	"7":  "law 7: room under the max",
	"D7": "rule D7: what the node lacks",
}

func numberOf(n *record.Number) numberRow {
	write := func(a *int64) string {
		if a == nil {
			return ""
		}
		return number(n.Resource, resources.Amount(*a))
	}
	row := numberRow{
		Law: cmp.Or(laws[n.Law], visible(n.Law)), Queue: visible(n.Queue), Resource: visible(n.Resource),
		Used: write(n.Used), Taken: write(n.Taken), Asked: write(n.Asked), Guaranteed: write(n.Guaranteed), Max: write(n.Max),
		Free: write(n.Free), Missing: write(n.Short),
	}
	if u := unit(n.Resource); u != "" {
		row.Resource += " (" + u + ")"
	}
	return row
}

// notesOf returns the notes on a decision.
func notesOf(d *record.Decision) []string {
	var out []string
	add := func(yes bool, text string) {
		if yes {
			out = append(out, text)
		}
	}
	add(d.Kind == record.Required, "The pod can run on this node only, so rules D1 to D8 apply.")
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
		add(true, "Nodes that refuse the pod whoever goes: "+strings.Join(names, ", ")+more+".")
	}
	add(len(d.Contested) > 0, "The pod lacks "+visible(strings.Join(d.Contested, ", "))+".")
	return out
}

func endedOf(h *record.EndedHold) endedRow {
	return endedRow{
		Node: linkedNode(h.Node), Namespace: visible(h.Namespace), Pod: visible(h.Name),
		Queue: linkedQueue(h.Queue), Since: at(h.Since), Ended: at(h.At), End: visible(string(h.End)),
		Message: sentence(visible(h.Reason.Text)), Code: h.Reason.Code,
	}
}
