package search

import (
	"cmp"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// victim returns a pod as a decision shows it.
func (s *problem) victim(p *planner.Pod, n *planner.Node, r *pathToLCA) planner.Victim {
	return planner.Victim{
		Pod: p, Node: n.Name, Queue: r.leaf.Path, Common: s.path[r.lca].queue.Path,
		Priority: r.shift.apply(int64(p.Priority)),
		Below:    r.below.apply(int64(p.Priority)), AskBelow: s.shifts[r.lca].apply(int64(s.ask.Priority)),
	}
}

// noteHigher records a pod that law 6 protects if its priority exceeds the asker's by less than
// that of the pod recorded so far. Among equals it keeps the pod of the first node, and
// on one node that of the lowest UID.
func (s *problem) noteHigher(e *planner.Entry, r *pathToLCA, n *planner.Node) {
	by := r.below.apply(int64(e.Priority)) - s.shifts[r.lca].apply(int64(s.ask.Priority))
	if h := s.higher; h != nil {
		if least := h.Below - h.AskBelow; by > least || by == least && (h.Node != n.Name || h.UID <= e.Pod.UID) {
			return
		}
	}
	v := s.victim(e.Pod, n, r)
	s.higher = &v
}

// change returns what is taken from a queue and requested for it.
func (s *problem) change(a *account, t int, taken int64) planner.Change {
	c := planner.Change{
		Queue:      a.queue.Path,
		Type:       s.snapshot.Types[t],
		Used:       resources.Amount(a.used[t]),
		Taken:      resources.Amount(taken),
		Guaranteed: resources.Amount(a.guaranteed[t]),
		Ask:        a.depth >= 0,
	}
	if c.Ask {
		c.Used = resources.Amount(a.expected[t])
		c.Asked = resources.Amount(s.ask.Request.At(t))
	}
	return c
}

// standing returns the usage and guarantee of the asker's queue, if they decide whether
// it may preempt (law 4).
func (s *problem) standing(a *account, t int) planner.Change {
	c := s.change(a, t, 0)
	c.Used = resources.Amount(a.has[t])
	return c
}

// sorted orders changes by queue and type.
func sorted(list []planner.Change) []planner.Change {
	slices.SortFunc(list, func(a, b planner.Change) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Type, b.Type))
	})
	return list
}

// changes lists what the victims take from the queues that guarantee it (law 2).
func (pl *planning) changes(p *plan) []planner.Change {
	var out []planner.Change
	for _, a := range pl.accounts {
		for t := range pl.snapshot.Types {
			if taken := p.takenFrom(a, t); taken > 0 && a.named[t] {
				out = append(out, pl.change(a, t, taken))
			}
		}
	}
	return sorted(out)
}

// takenFrom returns how much of a type the victims take from a queue.
func (p *plan) takenFrom(a *account, t int) int64 {
	taken := int64(0)
	for _, c := range p.victims {
		if slices.Contains(c.path.counts, a) {
			taken = planner.Plus(taken, c.request.At(t))
		}
	}
	return taken
}

// asks lists the queues below their guarantee for which the asker may preempt: those of
// its side of any victim, in the contested types (law 4).
func (pl *planning) asks(p *plan) []planner.Change {
	lowest := len(pl.path)
	for _, c := range p.victims {
		lowest = min(lowest, c.path.lca+1)
	}
	var out []planner.Change
	for _, a := range pl.path[lowest:] {
		for _, t := range p.view.contested {
			if a.named[t] {
				out = append(out, pl.standing(a, t))
			}
		}
	}
	return sorted(out)
}

// loses lists the queues over their guarantee that lose victims, in the contested types
// that these use (law 5).
func (pl *planning) loses(p *plan) []planner.Change {
	var out []planner.Change
	for _, a := range pl.accounts {
		for _, t := range p.view.contested {
			if a.depth >= 0 || a.used[t] <= a.guaranteed[t] {
				continue
			}
			if taken := p.takenFrom(a, t); taken > 0 {
				out = append(out, pl.change(a, t, taken))
			}
		}
	}
	return sorted(out)
}

// excesses lists the queues over their max, and what a plan frees there; nil means no
// plan.
func (pl *planning) excesses(p *plan) []planner.Excess {
	var out []planner.Excess
	for _, g := range pl.over {
		a := pl.path[g.depth]
		most, _ := a.queue.Max.Get(pl.snapshot.Types[g.typ])
		x := planner.Excess{
			Queue: a.queue.Path,
			Type:  pl.snapshot.Types[g.typ],
			Used:  resources.Amount(a.expected[g.typ]),
			Asked: resources.Amount(pl.ask.Request.At(g.typ)),
			Max:   most,
		}
		if p != nil {
			x.Taken = resources.Amount(p.takenFrom(a, g.typ))
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b planner.Excess) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Type, b.Type))
	})
	return out
}

// explain sets what stopped the asker: the queues, with their numbers, and those in which
// a change could lift the refusal.
func (pl *planning) explain(d *planner.Decision) {
	if len(pl.path) == 0 {
		return
	}
	d.OverMax = pl.excesses(nil)
	for t, name := range pl.snapshot.Types {
		if slices.ContainsFunc(pl.views, func(cv *contestedView) bool { return cv.isContested[t] }) {
			d.Contested = append(d.Contested, name)
		}
	}
	switch d.Stopped {
	case planner.Law2:
		d.Changes = pl.stopped((*contestedView).protecting)
	case planner.Law4:
		d.Asks = pl.stopped((*contestedView).reached)
	case planner.Law5:
		d.Loses = pl.stopped((*contestedView).notOver)
	case planner.Law6:
		d.Higher = pl.higher
	}
	d.GroupShortage = pl.groupShortage(d)
	for _, c := range d.Asks {
		d.Named = append(d.Named, c.Queue)
	}
	for _, x := range d.OverMax {
		d.Named = append(d.Named, x.Queue)
	}
	if len(d.Named) == 0 {
		d.Named = []string{d.Fence}
	}
	slices.Sort(d.Named)
	d.Named = slices.Compact(d.Named)
}

// stopped lists what blocks an asker in any view, each item once.
func (pl *planning) stopped(by func(*contestedView) []planner.Change) []planner.Change {
	var out []planner.Change
	for _, cv := range pl.views {
		out = append(out, by(cv)...)
	}
	return slices.Compact(sorted(out))
}

// reached lists the queues for which the asker may not preempt, because they are not below
// their guarantee of a contested type (law 4).
func (cv *contestedView) reached() (out []planner.Change) {
	lowest := len(cv.path)
	for _, lv := range cv.leafVerdicts {
		if lv != nil && lv.surveyed && lv.all == byLaw4 {
			lowest = min(lowest, lv.path.lca+1)
		}
	}
	for _, a := range cv.path[lowest:] {
		for _, t := range cv.contested {
			if a.named[t] && !cv.underGuarantee(a, t) {
				out = append(out, cv.standing(a, t))
			}
		}
	}
	return out
}

// notOver lists the queues that lose nothing, because they are over their guarantee in no
// contested type (law 5).
func (cv *contestedView) notOver() (out []planner.Change) {
	for _, lv := range cv.leafVerdicts {
		if lv == nil || !lv.surveyed || lv.all != byLaw5 {
			continue
		}
		for _, a := range lv.path.side {
			if !slices.ContainsFunc(cv.contested, a.isOver) {
				for _, t := range cv.contested {
					out = append(out, cv.change(a, t, 0))
				}
			}
		}
	}
	return out
}

// protecting lists the queues that would have fallen below their guarantee (law 2).
func (cv *contestedView) protecting() (out []planner.Change) {
	for _, lv := range cv.leafVerdicts {
		if lv == nil || lv.all != mayGo {
			continue
		}
		for _, a := range lv.path.counts {
			for t, tight := range lv.tight {
				a.tight[t] = a.tight[t] || tight && cv.takableFrom(a)[t] == lv.room[t]
			}
		}
	}
	for _, a := range cv.accounts {
		for t, tight := range a.tight {
			if tight && a.named[t] {
				out = append(out, cv.change(a, t, 0))
			}
		}
	}
	return out
}
