package web

import (
	"iter"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

const (
	// nodesAtOnce is how many nodes are on a page, holdsAtOnce how many holds.
	nodesAtOnce, holdsAtOnce = 50, 50
	// podsAtOnce is how many pods of a node are on its page.
	podsAtOnce = 250
)

// What nodes may be shown.
const (
	nodesHeld     = "held"
	nodesForeign  = "foreign"
	nodesClosed   = "closed"
	nodesOverfull = "overfull"
)

var nodeChoices = []choice{
	{Value: showAll, Label: "all nodes"},
	{Value: nodesHeld, Label: "held for a pod"},
	{Value: nodesForeign, Label: "with pods of other schedulers"},
	{Value: nodesClosed, Label: "that take no new pods"},
	{Value: nodesOverfull, Label: "with more on them than they hold"},
}

// nodesContent is what is on the page of nodes.
type nodesContent struct {
	Find  string
	Shows []choice
	// None is true where there is no node at all.
	None bool
	// Holds are those of all nodes.
	Holds      []holdRow
	HoldsPager pager
	Rows       []nodeRow
	Pager      pager
}

// nodeRow is a node of a list.
type nodeRow struct {
	Name, Address string
	Marks         marks
	Bars          []bar
	PodCount      string
	// Foreign counts pods of other schedulers, ForeignUse is what they request; empty for none.
	Foreign, ForeignUse string
	Holds               []holdRow
}

// holdRow is a node held for a pod.
type holdRow struct {
	Node, Queue          linked
	Namespace, Pod       string
	Since                moment
	Kind, State, Request string
	Taint                string // empty where other schedulers are not kept off
}

func nodesPage(r *request) (any, string) {
	show, choices := r.choose("show", nodeChoices)
	out := nodesContent{Find: r.text("find"), Shows: choices, None: len(r.Nodes) == 0}
	var found []*inventory.Node
	for _, n := range r.Nodes {
		if strings.Contains(n.Name, strings.ToLower(out.Find)) && r.showsNode(n, show) {
			found = append(found, n)
		}
	}
	out.Find = visible(out.Find)
	found, out.Pager = cut(r, "page", "node", found, nodesAtOnce)
	for _, n := range found {
		out.Rows = append(out.Rows, r.nodeRow(n))
	}
	holds, pager := cut(r, "holds", "hold", r.Holds.All(), holdsAtOnce)
	out.Holds, out.HoldsPager = r.holdRows(holds), pager
	return out, ""
}

func (r *request) showsNode(n *inventory.Node, show string) bool {
	switch show {
	case nodesHeld:
		return len(r.Holds.On(n.Name)) > 0
	case nodesForeign:
		return len(n.Foreign) > 0
	case nodesClosed:
		return !n.Schedulable
	case nodesOverfull:
		return n.Available().HasNegative()
	}
	return true
}

func (r *request) nodeRow(n *inventory.Node) nodeRow {
	row := nodeRow{Name: visible(n.Name), Address: link("node", "name", n.Name), Bars: nodeBars(n, false), PodCount: count(len(n.Allocations), "pod")}
	if len(n.Foreign) > 0 {
		row.Foreign, row.ForeignUse = count(len(n.Foreign), "pod"), amounts(withoutPods(n.Occupied))
	}
	row.Holds = r.holdRows(r.Holds.On(n.Name))
	row.Marks.add(!n.Schedulable, "alert", "takes no new pods", "the node is cordoned")
	row.Marks.add(n.Available().HasNegative(), "alert", "overfull", "its pods request more than it has")
	return row
}

// nodeBars are the types that are used on a node, CPU and memory at least; or all
// that it has.
func nodeBars(n *inventory.Node, all bool) []bar {
	show := []iter.Seq2[string, resources.Amount]{n.Allocated.All(), n.Occupied.All()}
	if all {
		show = append(show, n.Allocatable.All())
	}
	var bars []bar
	for _, name := range ranked(common, show...) {
		s := scale{name: name, used: n.Allocated.Get(name), occupied: n.Occupied.Get(name), limit: n.Allocatable.Get(name), limited: true}
		bars = append(bars, s.draw())
	}
	return bars
}

func (r *request) holdRows(holds []reservations.Hold) (rows []holdRow) {
	for i := range holds {
		rows = append(rows, r.holdRow(&holds[i]))
	}
	return rows
}

func (r *request) holdRow(h *reservations.Hold) holdRow {
	row := holdRow{
		Node: linkedNode(h.Node), Namespace: visible(h.Namespace), Pod: visible(h.Name),
		Since: at(h.Since), Kind: "it may run elsewhere until pods were made to leave", State: stateOf(h), Request: amounts(h.Request),
		Taint: visible(r.taint(h.Node)),
	}
	switch {
	case h.NodeBound:
		row.Kind = "it can run on this node only"
	case h.OnlyThisNode():
		row.Kind = "it is kept to this node"
	}
	if asker := r.InHolds[h.Asker]; asker != nil {
		row.Queue = linkedQueue(asker.Queue)
	}
	return row
}

// stateOf returns what a hold waits for, as what its pod does: "waits ...".
func stateOf(h *reservations.Hold) string {
	switch {
	case !h.Clear() && len(h.Chosen) > 0:
		return "waits for " + count(len(h.Awaited), "pod") + " to leave, " + count(len(h.Chosen), "pod") + " chosen to go for it"
	case !h.Clear():
		return "waits for " + count(len(h.Awaited), "pod") + " that " + isOrAre(len(h.Awaited)) + " leaving anyway"
	case h.Patient():
		return "waits: " + visible(h.Note)
	}
	return "has room there and is about to start"
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// nodeContent is what is on the page of one node.
type nodeContent struct {
	nodeRow
	Pods, Foreigners []*inventory.Pod
	// More and MoreForeigners are how many pods are not listed.
	More, MoreForeigners int
}

func nodePage(r *request) (any, string) {
	name := r.text("name")
	n := r.Node(name)
	if n == nil {
		return nil, "There is no node " + visible(name) + "."
	}
	out := nodeContent{nodeRow: r.nodeRow(n)}
	out.Bars = nodeBars(n, true)
	out.Pods, out.More = podRows(n.Allocations)
	out.Foreigners, out.MoreForeigners = podRows(n.Foreign)
	return out, ""
}

func podRows(pods []*inventory.Pod) (rows []*inventory.Pod, more int) {
	rows = pods[:min(len(pods), podsAtOnce)]
	return rows, len(pods) - len(rows)
}

func podMarks(p *inventory.Pod) (out marks) {
	out.add(p.Preempted, "alert", "preempted", "it has to leave for another pod")
	out.add(p.Deleting && !p.Preempted, "alert", "leaving", "it was deleted and is not gone yet")
	out.add(p.Originator, "quiet", "originator", "its application is lost without it")
	out.add(p.Static, "quiet", "static", "the node itself runs it; no scheduler can move it")
	return out
}
