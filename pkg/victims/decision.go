package victims

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues"
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
}

func (pl *planner) decision(o Outcome) Decision {
	d := Decision{Ask: pl.ask, Outcome: o, Exhaustive: pl.exhaustive, FitsCalls: pl.fits}
	for _, rule := range slices.Sorted(maps.Keys(pl.rejected)) {
		d.Rejected = append(d.Rejected, Rejection{rule, pl.rejected[rule]})
	}
	return d
}

func (pl *planner) refuse(by Rule) Decision {
	d := pl.decision(Refuse)
	d.Stopped = by
	if by == "" && len(d.Rejected) > 0 {
		d.Stopped = slices.MaxFunc(d.Rejected, func(a, b Rejection) int {
			return cmp.Or(cmp.Compare(a.Pods, b.Pods), cmp.Compare(b.Rule, a.Rule))
		}).Rule
	}
	return d
}

func (pl *planner) accept(o *option) Decision {
	d := pl.decision(Preempt)
	if len(o.victims) == 0 {
		d.Outcome = Hold
	}
	d.Node = o.node.Name
	d.OptedOut, d.Violations = o.harm.optedOut, o.harm.violations
	for _, t := range o.exam.contested {
		d.Contested = append(d.Contested, pl.world.Types[t])
	}
	for _, c := range o.victims {
		v := Victim{Pod: c.pod, Node: o.node.Name, Queue: c.route.leaf.Path, Priority: c.priority}
		if !c.onNode {
			v.Node = pl.far[c.pod]
		}
		d.Victims = append(d.Victims, v)
	}
	slices.SortFunc(d.Victims, func(a, b Victim) int { return cmp.Compare(a.UID, b.UID) })
	d.Changes = pl.changes(o)
	return d
}

// changes lists what the victims take from the queues that guarantee it.
func (pl *planner) changes(o *option) []Change {
	taken := map[queues.ID][]int64{}
	for _, c := range o.victims {
		for _, a := range c.route.counts {
			if taken[a.queue.ID] == nil {
				taken[a.queue.ID] = make([]int64, len(pl.world.Types))
			}
			for t, amount := range c.pod.Request {
				taken[a.queue.ID][t] += amount
			}
		}
	}
	var out []Change
	for _, a := range pl.accounts {
		for t, amount := range taken[a.queue.ID] {
			if amount == 0 || !a.named[t] {
				continue
			}
			_, onPath := pl.depth[a.queue.ID]
			c := Change{Queue: a.queue.Path, Type: pl.world.Types[t], Used: resources.Amount(a.used[t]),
				Taken: resources.Amount(amount), Guaranteed: resources.Amount(a.guaranteed[t]), Ask: onPath}
			if onPath {
				c.Used += resources.Amount(a.arriving[t])
				c.Asked = resources.Amount(pl.ask.Request.at(t))
			}
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Type, b.Type))
	})
	return out
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
