package forecast

import (
	"cmp"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// place is where askers and losers of a type meet: their lowest common ancestor.
type place struct {
	at   queues.ID
	kind string
}

// arrival is an asker as it comes to such a place, through one of its children.
type arrival struct {
	Asker
	through queues.ID
}

// gathering is the askers at a place.
type gathering struct {
	arrivals []arrival         // sorted as askers are
	through  map[queues.ID]int // how many come through each child
}

func losers(tree *queues.Snapshot) []Loser {
	gatherings := gatheringsOf(tree)
	var out []Loser
	for q := range tree.All() {
		if queues.PreemptionDisabled(tree, q) {
			continue
		}
		for name, used := range own(tree, q, (*queues.Queue).Used).All() {
			if l := lose(tree, q, name, used, gatherings); len(l.Askers) > 0 {
				out = append(out, l)
			}
		}
	}
	return sorted(out, (*Loser).id)
}

// lose tells what a queue may lose of a type it uses: as long as every queue on the way
// up is over its guarantee (laws 2 and 5), to askers from elsewhere.
func lose(tree *queues.Snapshot, loser *queues.Queue, kind string, used resources.Amount, gatherings map[place]*gathering) Loser {
	out := Loser{Queue: loser.Path, Type: kind}
	for q := loser; !q.IsRoot(); q = tree.Queue(q.Parent) {
		guaranteed, _ := q.Guaranteed.Get(kind)
		used = min(used, q.Used().Get(kind).Sub(guaranteed))
		if used <= 0 {
			break
		}
		first := len(out.Askers) == 0
		if g := gatherings[place{q.Parent, kind}]; g != nil {
			out.meet(g, q.ID)
		}
		if first && len(out.Askers) > 0 {
			out.AtMost = used // further up there is less to take
		}
	}
	return out
}

// meet adds the askers of a place that do not come through the loser's side.
func (l *Loser) meet(g *gathering, side queues.ID) {
	named := 0
	for _, a := range g.arrivals {
		if named == Named {
			break
		}
		if a.through != side {
			l.Askers = append(l.Askers, a.Asker)
			named++
		}
	}
	slices.SortFunc(l.Askers, compareAskers)
	kept := min(len(l.Askers), Named)
	l.More += len(l.Askers) - kept + len(g.arrivals) - g.through[side] - named
	l.Askers = l.Askers[:kept]
}

func compareAskers(a, b Asker) int {
	if a.Waits != b.Waits {
		if a.Waits {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.Queue, b.Queue)
}

func gatheringsOf(tree *queues.Snapshot) map[place]*gathering {
	out := map[place]*gathering{}
	for leaf := range tree.All() {
		if mayAsk(leaf) {
			climb(tree, leaf, out)
		}
	}
	for _, g := range out { // each by itself: order does not matter
		slices.SortFunc(g.arrivals, func(a, b arrival) int { return compareAskers(a.Asker, b.Asker) })
	}
	return out
}

// climb follows a leaf up the tree, as far as its fence lets it (law 7), and
// notes where it may ask for which types: where at least one queue of the way
// guarantees the type, and none of them has reached its guarantee (law 4).
func climb(tree *queues.Snapshot, leaf *queues.Queue, out map[place]*gathering) {
	short := map[string]bool{} // by type: true while all that guarantee it are under
	for q := leaf; !q.IsRoot(); q = tree.Queue(q.Parent) {
		for name, guaranteed := range q.Guaranteed.All() {
			under, seen := short[name]
			short[name] = (under || !seen) && q.Has().Get(name) < guaranteed
		}
		if q.IsFence() {
			return
		}
		for name, under := range short { // each type has a place of its own: order does not matter
			if under && !full(leaf, name) {
				arrive(out, place{q.Parent, name}, arrival{Asker{leaf.Path, leaf.Pending.Get(name) > 0}, q.ID})
			}
		}
	}
}

func arrive(all map[place]*gathering, at place, a arrival) {
	g := all[at]
	if g == nil {
		g = &gathering{through: map[queues.ID]int{}}
		all[at] = g
	}
	g.arrivals = append(g.arrivals, a)
	g.through[a.through]++
}

// mayAsk tells whether pods of a queue may ask now or later.
func mayAsk(q *queues.Queue) bool {
	return q.Leaf && (q.State == queues.Active || !q.Pending.IsZero())
}

// full tells whether the max of a leaf keeps its pods from asking: only its own pods
// could make room below that.
func full(leaf *queues.Queue, kind string) bool {
	most, limited := leaf.Max.Get(kind)
	return limited && leaf.Expected().Get(kind) >= most
}
