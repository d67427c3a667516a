package victims

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Outcome is what a decision comes to.
type Outcome string

// The outcomes. Hold: the asker fits once leaving pods are gone; its node is
// held and nobody goes. Preempt: the victims go. Refuse: nothing is done.
const (
	Hold    Outcome = "hold"
	Preempt Outcome = "preempt"
	Refuse  Outcome = "refuse"
)

// Victim is a pod that is to go.
type Victim struct {
	*Pod
	// Node is where it is.
	Node string
	// Queue is the path of its leaf.
	Queue string
	// Priority is its effective priority strictly below the fence root.
	Priority int64
}

// Change is what a decision does to one queue in one type, as law 2 judged it.
type Change struct {
	Queue string
	Type  string
	// Used is used before; on the asker's path with what is arriving.
	Used, Taken, Asked, Guaranteed resources.Amount
	// Ask is true for the queues of the asker's path.
	Ask bool
}

// Rejection counts the pods that a rule excluded.
type Rejection struct {
	Rule Rule
	Pods int
}

// Decision is the outcome of a plan, with the numbers it was judged by.
type Decision struct {
	Ask       *Ask
	Outcome   Outcome
	Node      string
	Victims   []Victim
	Contested []string
	Changes   []Change
	// Rejected are the pods looked at that could not be victims, by rule.
	Rejected []Rejection
	// Stopped is the rule that stopped the asker itself; empty when none did.
	Stopped Rule
	// OptedOut counts victims that had opted out: nothing lawful was possible
	// without them (law 1).
	OptedOut int
	// Violations counts disruptions beyond what PodDisruptionBudgets allow.
	Violations int64
	// Exhaustive is false when not every choice was weighed.
	Exhaustive bool
	// FitsCalls is how often the real filters were asked.
	FitsCalls int
	// Unfit are the nodes, by name, where they refuse even once all are gone that
	// may go. Until such a node changes, the asker need not try it again.
	Unfit []string
}

func (pl *planner) decision(o Outcome) Decision {
	d := Decision{Ask: pl.ask, Outcome: o, Exhaustive: pl.exhaustive, FitsCalls: pl.fits, Unfit: slices.Sorted(slices.Values(pl.unfit))}
	for why, pods := range pl.rejected {
		if pods > 0 {
			d.Rejected = append(d.Rejected, Rejection{ruleOf[why], pods})
		}
	}
	slices.SortFunc(d.Rejected, func(a, b Rejection) int { return cmp.Compare(a.Rule, b.Rule) })
	return d
}

// refuse is the decision that nothing is done. Where no rule stopped the asker
// itself, it is the one that came last before a plan: the filters, law 2 on
// whole sets, too few candidates, or the law that excluded most pods.
func (pl *planner) refuse(by Rule) Decision {
	d := pl.decision(Refuse)
	switch {
	case by != "":
		d.Stopped = by
	case pl.fits > 0:
		d.Stopped = RuleFilters
	case pl.blocked:
		d.Stopped = Law2
	case pl.tooFew || len(pl.later) > 0:
		d.Stopped = RuleTooLittle
	case len(d.Rejected) > 0:
		d.Stopped = slices.MaxFunc(d.Rejected, func(a, b Rejection) int {
			return cmp.Or(
				cmp.Compare(rankOf(telling(a.Rule)), rankOf(telling(b.Rule))),
				cmp.Compare(a.Pods, b.Pods), cmp.Compare(b.Rule, a.Rule))
		}).Rule
	}
	return d
}

// telling tells whether a rule says more than that some pods are not for preemption.
func telling(r Rule) bool {
	return slices.Contains([]Rule{Law2, Law4, Law5, Law6, Law7, RuleDisabled}, r)
}

func (pl *planner) accept(p *plan) Decision {
	d := pl.decision(Preempt)
	if len(p.victims) == 0 {
		d.Outcome = Hold
	}
	d.Node = p.node.Name
	d.OptedOut, d.Violations = p.harm.optedOut, p.harm.violations
	for _, t := range p.stance.contested {
		d.Contested = append(d.Contested, pl.world.Types[t])
	}
	for _, c := range p.victims {
		d.Victims = append(d.Victims, Victim{c.pod, c.node.Name, c.route.leaf.Path, c.priority})
	}
	slices.SortFunc(d.Victims, func(a, b Victim) int { return cmp.Compare(a.UID, b.UID) })
	d.Changes = pl.changes(p)
	return d
}

// changes lists what the victims take from the queues that guarantee it.
func (pl *planner) changes(p *plan) []Change {
	var out []Change
	for _, a := range pl.accounts {
		for t := range pl.world.Types {
			if taken := p.takenFrom(a, t); taken > 0 && a.named[t] {
				out = append(out, pl.change(a, t, taken))
			}
		}
	}
	slices.SortFunc(out, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Type, b.Type))
	})
	return out
}

// takenFrom is how much of a type the victims take from a queue.
func (p *plan) takenFrom(a *account, t int) int64 {
	taken := int64(0)
	for _, c := range p.victims {
		if slices.Contains(c.route.counts, a) {
			taken = plus(taken, c.request.at(t))
		}
	}
	return taken
}

func (pl *planner) change(a *account, t int, taken int64) Change {
	c := Change{Queue: a.queue.Path, Type: pl.world.Types[t], Used: resources.Amount(a.used[t]),
		Taken: resources.Amount(taken), Guaranteed: resources.Amount(a.guaranteed[t]), Ask: a.depth >= 0}
	if c.Ask {
		c.Used = resources.Amount(a.has(t))
		c.Asked = resources.Amount(pl.ask.Request.at(t))
	}
	return c
}

// String renders the decision in one line for people.
func (d Decision) String() string {
	who := d.Ask.Namespace + "/" + d.Ask.Name
	switch d.Outcome {
	case Hold:
		return fmt.Sprintf("%s: hold node %s, no victims: it fits once leaving pods are gone", who, d.Node)
	case Preempt:
		var names []string
		for _, v := range d.Victims {
			names = append(names, fmt.Sprintf("%s/%s of %s on %s", v.Namespace, v.Name, v.Queue, v.Node))
		}
		s := fmt.Sprintf("%s: preempt %s for node %s", who, strings.Join(names, ", "), d.Node)
		if d.OptedOut > 0 {
			s += fmt.Sprintf("; %d opted out and nothing else was possible", d.OptedOut)
		}
		return s
	}
	s := who + ": no preemption"
	if d.Stopped != "" {
		s += ": " + string(d.Stopped)
	}
	return s
}
