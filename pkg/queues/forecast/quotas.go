package forecast

import (
	"cmp"
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

func overMax(tree *queues.Snapshot) []OverMax {
	var out []OverMax
	for q := range tree.All() {
		for name, most := range q.Max.All() {
			if used := q.Allocated.Get(name); used > most {
				out = append(out, OverMax{Queue: q.Path, Type: name, Allocated: used, Max: most})
			}
		}
	}
	return sorted(out, (*OverMax).id)
}

func stranded(tree *queues.Snapshot) []Stranded {
	var out []Stranded
	for q := range tree.All() {
		var allocated, pending resources.Vector
		s := Stranded{Queue: q.Path}
		switch parent := tree.Queue(q.Parent); {
		case q.State == queues.Draining:
			if parent != nil && parent.State == queues.Draining {
				continue
			}
			s.Cause, allocated, pending = WasRemoved, q.Allocated, q.Pending
		case !q.Leaf:
			s.Cause, allocated = BecameParent, own(tree, q, (*queues.Queue).Used)
			pending = own(tree, q, func(q *queues.Queue) resources.Vector { return q.Pending })
		}
		if !allocated.IsZero() || !pending.IsZero() {
			s.Allocated, s.Pending = allocated.Map(), pending.Map()
			out = append(out, s)
		}
	}
	return sorted(out, (*Stranded).id)
}

// demand is what is guaranteed of one type in a part of the tree.
type demand struct {
	total    resources.Amount
	promises []Promise // that make the total
}

func (d demand) add(e demand) demand {
	return demand{d.total.Add(e.total), append(d.promises, e.promises...)}
}

func unmet(tree *queues.Snapshot) []Unmet {
	var out []Unmet
	demands(tree, tree.Root(), &out)
	return sorted(out, (*Unmet).id)
}

// demands returns what is guaranteed to a queue, by type: its own guarantee, or,
// where it names none of the type, what the queues below it are guaranteed. On
// the way it finds what cannot be met. Queues that are removed ask nothing: they
// are about to go.
func demands(tree *queues.Snapshot, q *queues.Queue, out *[]Unmet) map[string]demand {
	asked := map[string]demand{}
	if q.State == queues.Draining {
		return asked
	}
	for _, c := range q.Children {
		for name, d := range demands(tree, tree.Queue(c), out) { // each type has its own sum: order does not matter
			asked[name] = asked[name].add(d)
		}
	}
	beyond(tree, q, asked, out)
	own := map[string]demand{}
	for name, amount := range q.Guaranteed.All() {
		own[name] = demand{amount, []Promise{{q.Path, amount}}}
	}
	beyond(tree, q, own, out)
	maps.Copy(asked, own)
	return asked
}

// beyond notes what is more than the queue can ever have.
func beyond(tree *queues.Snapshot, q *queues.Queue, asked map[string]demand, out *[]Unmet) {
	for name, d := range asked {
		there, bounded := q.Max.Get(name)
		if q.IsRoot() {
			there, bounded = tree.Capacity().Get(name), !tree.Capacity().IsZero()
		}
		if !bounded || d.total <= there || slices.ContainsFunc(*out, func(u Unmet) bool { return u.Queue == q.Path && u.Type == name }) {
			continue
		}
		slices.SortFunc(d.promises, func(a, b Promise) int {
			return cmp.Or(cmp.Compare(b.Guaranteed, a.Guaranteed), cmp.Compare(a.Queue, b.Queue))
		})
		named := min(len(d.promises), Named)
		*out = append(*out, Unmet{
			Queue: q.Path, Type: name, Guaranteed: d.total, There: there,
			Promises: slices.Clone(d.promises[:named]), More: len(d.promises) - named,
		})
	}
}
