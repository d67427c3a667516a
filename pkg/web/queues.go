package web

import (
	"iter"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

const (
	// levelsAtOnce is how many queues a page has below its queue. Levels that do not fit
	// are on pages of their own.
	levelsAtOnce = 200
	// queuesAtOnce is how many children of one queue, or found queues, are on a page.
	queuesAtOnce = 100
	// openAtOnce is up to how many queues a page shows all levels unfolded.
	openAtOnce = 60
	// typesAtOnce is how many types of resources a queue of a list has.
	typesAtOnce = 5
	// applicationsAtOnce is how many applications of a leaf are on its page.
	applicationsAtOnce = 50
)

// What queues may be shown.
const (
	showAll     = ""
	showWaiting = "waiting"
	showShort   = "short"
	showFull    = "full"
	showFences  = "fences"
)

var queueChoices = []choice{
	{Value: showAll, Label: "all queues, as a tree"},
	{Value: showWaiting, Label: "leaves with waiting pods"},
	{Value: showShort, Label: "under their guarantee while pods wait"},
	{Value: showFull, Label: "at their max"},
	{Value: showFences, Label: "fences"},
}

// queuesContent is what is on the page of queues.
type queuesContent struct {
	// Find and Shows are the filters of the list.
	Find  string
	Shows []choice
	// Path are the queues from root to the one that the page is about.
	Path []linked
	// Queue is that queue; nil where queues were searched for.
	Queue *queueDetail
	// Rows are the queues below it, or those found. Flat is true for the latter.
	Rows  []queueRow
	Flat  bool
	Pager pager
	// Alone is true where there is no queue but root.
	Alone bool
}

// linked is a queue or a node with the address of its page; empty for none.
type linked struct{ Name, Address string }

func linkedQueue(path string) linked { return linkedTo(path, "", "queue") }

func linkedNode(name string) linked { return linkedTo(name, "node", "name") }

func linkedTo(name, page, parameter string) linked {
	if name == "" {
		return linked{}
	}
	return linked{visible(name), link(page, parameter, name)}
}

// queueRow is a queue of a list.
type queueRow struct {
	Name, Address string
	Marks         marks
	// Fence is true where preemption does not cross the queue outwards.
	Fence bool
	Bars  []bar
	// More is how many types are not shown.
	More int
	// Running and Waiting are pods; Waiting is empty for none.
	Running, Waiting, WaitingAddress string
	// Rows are the queues below; Below counts those that are on another page.
	Rows  []queueRow
	Below int
	Open  bool
}

// mark is a label on a queue or a node.
type mark struct {
	Text string
	// Kind is its style: "fence", "alert", "quiet".
	Kind string
	// Help says what it means.
	Help string
}

type marks []mark

// add adds a mark, if it applies.
func (m *marks) add(applies bool, kind, text, help string) {
	if applies {
		*m = append(*m, mark{text, kind, help})
	}
}

func queuesPage(r *request) (any, string) {
	show, choices := r.choose("show", queueChoices)
	root := r.Queues.Root()
	out := queuesContent{Find: r.text("find"), Shows: choices, Flat: true, Alone: len(root.Children) == 0}
	if out.Find != "" || show != showAll {
		all := search(r.Queues, strings.ToLower(out.Find), show)
		found, pager := cut(r, "page", "queue", all, queuesAtOnce)
		for _, q := range found {
			out.Rows = append(out.Rows, rowOf(r.View, q, q.Path))
		}
		out.Find, out.Pager = visible(out.Find), pager
		return out, ""
	}
	out.Flat = false
	about := root
	if path := strings.ToLower(r.text("queue")); path != "" {
		q, ok := r.Queues.Find(path)
		if !ok {
			return nil, "There is no queue " + visible(path) + "."
		}
		about = q
	}
	for q := range r.Queues.Ancestors(about.ID) {
		out.Path = append(out.Path, linked{visible(q.Name), link("", "queue", q.Path)})
	}
	slices.Reverse(out.Path)
	out.Queue = detailOf(r, about)
	children, pager := cut(r, "page", "queue", about.Children, queuesAtOnce)
	out.Rows, out.Pager = levels(r.View, children), pager
	return out, ""
}

// search returns the queues that the page shows, by path.
func search(s *queues.Snapshot, find, show string) []*queues.Queue {
	var found []*queues.Queue
	for q := range s.All() {
		if strings.Contains(q.Path, find) && shows(q, show) {
			found = append(found, q)
		}
	}
	return found
}

func shows(q *queues.Queue, show string) bool {
	switch show {
	case showWaiting:
		return q.Leaf && !q.Pending.IsZero()
	case showShort:
		return short(q)
	case showFull:
		return full(q)
	case showFences:
		return q.IsFence()
	}
	return true
}

// short tells whether a queue is below its guarantee in a type that its waiting pods request.
func short(q *queues.Queue) bool {
	for name := range q.Guaranteed.Missing(q.Used()).All() {
		if q.Pending.Get(name) > 0 {
			return true
		}
	}
	return false
}

// full tells whether a queue is at its max in a type.
func full(q *queues.Queue) bool {
	if q.IsRoot() {
		return false
	}
	for name, most := range q.Max.All() {
		if used := q.Allocated.Get(name); used >= most && used > 0 {
			return true
		}
	}
	return false
}

// levels are queues with as many whole levels below them as fit on a page.
func levels(v *inventory.View, ids []queues.ID) []queueRow {
	depth, room := 1, levelsAtOnce-len(ids)
	for at := ids; len(at) > 0; depth++ {
		var next []queues.ID
		for _, id := range at {
			next = append(next, v.Queues.Queue(id).Children...)
		}
		if len(next) == 0 || len(next) > room {
			break
		}
		room -= len(next)
		at = next
	}
	return tree(v, ids, depth, levelsAtOnce-room <= openAtOnce)
}

// tree are queues with so many levels.
func tree(v *inventory.View, ids []queues.ID, depth int, open bool) []queueRow {
	rows := make([]queueRow, 0, len(ids))
	for _, id := range ids {
		q := v.Queues.Queue(id)
		row := rowOf(v, q, q.Name)
		if depth > 1 {
			row.Rows, row.Open = tree(v, q.Children, depth-1, open), open
		} else {
			row.Below = below(v.Queues, q)
		}
		rows = append(rows, row)
	}
	return rows
}

// below counts the queues below one.
func below(s *queues.Snapshot, q *queues.Queue) int {
	n := len(q.Children)
	for _, c := range q.Children {
		n += below(s, s.Queue(c))
	}
	return n
}

func rowOf(v *inventory.View, q *queues.Queue, name string) queueRow {
	row := queueRow{
		Name: visible(name), Address: link("", "queue", q.Path), Marks: marksOf(q), Fence: q.IsFence(),
		Running: count(int(q.Allocated.Get(resources.Pods)), "pod"),
	}
	if n := int(q.Pending.Get(resources.Pods)); n > 0 {
		row.Waiting, row.WaitingAddress = count(n, "pod"), link("waiting", "queue", q.Path)
	}
	row.Bars = barsOf(v, q)
	if len(row.Bars) > typesAtOnce {
		row.More, row.Bars = len(row.Bars)-typesAtOnce, row.Bars[:typesAtOnce]
	}
	return row
}

// marksOf returns the marks of a queue: first what is wrong, then what was configured.
func marksOf(q *queues.Queue) (out marks) {
	out.add(short(q), "alert", "under its guarantee", "pods wait for what the queue is guaranteed and does not have")
	out.add(full(q), "alert", "at its max", "the queue uses all it may of a resource")
	out.add(q.State == queues.Draining, "alert", "draining", "the queue left the configuration, takes nothing new, and goes once it is empty")
	out.add(q.IsFence(), "fence", "fence", "pods below preempt only pods below")
	disabled := !q.IsRoot() && q.Policies.Preemption == config.PreemptionDisabled
	out.add(disabled, "fence", "not preempted", "no pod below is preempted by a queue")
	out.add(q.Policies.PriorityFence, "fence", "priority fence", "priorities of pods below count below only")
	out.add(!q.Managed, "quiet", "dynamic", "the queue was made by a placement rule, and goes once it is empty")
	return out
}

// barsOf returns a bar for each type that a queue uses, waits for, guarantees or limits.
func barsOf(v *inventory.View, q *queues.Queue) []bar {
	var bars []bar
	limit := v.Queues.ShownMax(q)
	for _, name := range typesOf(v, q) {
		s := scale{
			name: name, used: q.Allocated.Get(name), waiting: q.Pending.Get(name),
			room: v.Queues.Capacity().Get(name),
		}
		s.guaranteed, s.promised = q.Guaranteed.Get(name)
		if most, limited := q.PathMax.Get(name); limited {
			s.room = most
		}
		s.limit, s.limited = limit.Get(name)
		bars = append(bars, s.draw())
	}
	return bars
}

// typesOf returns the types of the bars of a queue: CPU and memory, and other types with
// an amount. The number of pods has a bar only if it is limited or guaranteed; otherwise it
// is in the text.
func typesOf(v *inventory.View, q *queues.Queue) []string {
	show := []iter.Seq2[string, resources.Amount]{
		q.Guaranteed.All(), q.Max.All(), withoutPods(q.Allocated).All(), withoutPods(q.Pending).All(),
	}
	if q.IsRoot() {
		show = append(show, v.Queues.Capacity().All())
	}
	return ranked(common, show...)
}
