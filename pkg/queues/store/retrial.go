package store

import (
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/victims"
	"github.com/paddock-scheduler/paddock/pkg/victims/required"
	"github.com/paddock-scheduler/paddock/pkg/victims/retrial"
)

// queueCase is what was committed for an asker, and what there is now, for those
// who judge it again. It does not use what Commit judged it on. Nil where nobody
// reads the journal, or nobody is let go.
func (s *Store) queueCase(p *pod, h *reservations.Hold, left []*pod) *retrial.Case {
	if !s.journal.open || len(left) == 0 {
		return nil
	}
	c := &retrial.Case{Victims: s.accused(left)}
	names := []string{h.Node}
	for _, v := range c.Victims {
		names = append(names, v.Node)
	}
	slices.Sort(names)
	w := &victims.World{Budgets: s.disruptionsLeft(true)}
	for _, name := range slices.Compact(names) {
		if n := s.nodes[name]; n != nil && n.known {
			w.Nodes = append(w.Nodes, s.viewOf(n, p.UID))
		}
	}
	ask := s.askOf(p)
	w.Types, w.Queues = s.scenery.types, s.current()
	c.Queue = &retrial.Queue{Ask: ask, Node: h.Node, World: w, Params: victims.Params{StrictGuarantee: s.preemption.StrictGuarantee}}
	return c
}

// requiredCase is the same for an asker that requires a node, with the decision
// that was committed.
func (s *Store) requiredCase(p *pod, left []*pod, d *required.Decision, now time.Time) *retrial.Case {
	if !s.journal.open || len(left) == 0 {
		return nil
	}
	a := s.requirement(p, now)
	return &retrial.Case{
		Victims:  s.accused(left),
		Required: &retrial.Required{Ask: a.Ask, Queues: s.current(), Node: a.Node, Params: a.Params, Decision: *d},
	}
}

// accused are pods that are let go, as they are apart from that.
func (s *Store) accused(left []*pod) []retrial.Victim {
	out := make([]retrial.Victim, 0, len(left))
	for _, v := range left {
		view := s.podView(v)
		if view.Protection = s.ownProtection(v); v.Deleting {
			view.Protection = victims.Leaving
		}
		out = append(out, retrial.Victim{Pod: view, Node: v.Node})
	}
	return out
}
