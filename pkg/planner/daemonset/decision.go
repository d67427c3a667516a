package daemonset

import (
	"slices"
	"strings"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// NoHold is an outcome in addition to those of package planner: the asker would not fit even
// without all pods that may be preempted; nothing is done until the node's pods or the asker
// change. [planner.Hold]: the node is held and no pod is preempted yet, see Decision.Stopped.
// [planner.Preempt]: the node is held and the victims are preempted. [planner.Refuse]:
// nothing is done.
const NoHold planner.Outcome = "no hold"

// Need is what the asker needs of one type: Short = Request - Free, at least 0 (D7).
type Need struct {
	Type string
	// Free is negative if the node is overcommitted.
	Request, Free, Short resources.Amount
}

// Victim is a pod chosen to be preempted.
type Victim struct {
	*planner.Pod
	Class Class
	// Frees is its usage of the types that are needed, sorted by name.
	Frees []resources.Entry
	// ForRoom is true if the other victims do not cover the need. If it is false, the
	// real filters reject the asker while the pod is there.
	ForRoom bool
}

// Decision is the outcome of a plan, with the numbers by which it was judged.
type Decision struct {
	Ask     *Ask
	Node    string
	Outcome planner.Outcome
	// Need has the requested types, sorted by name.
	Need []Need
	// Victims are in the order in which they were chosen, least harm first.
	Victims []Victim
	// Selection is the selection that chose them.
	Selection Selection
	// Stopped is the reason for which no pod is preempted. It is empty with
	// [planner.Preempt], and with [planner.Hold] if the asker fits now or once leaving pods
	// are gone.
	Stopped planner.Rule
	// Wait is the time until pods may be preempted, if Stopped is RuleDelay.
	Wait time.Duration
	// Tried are the selections that found no victims, in turn.
	Tried []Trial
	// Candidates counts the pods that may be preempted. Rejected counts the others, by
	// rule.
	Candidates int
	Rejected   []planner.Rejection
	// OptedOut counts the victims that had opted out.
	OptedOut int
	// Violations counts the victims beyond what PodDisruptionBudgets allow.
	Violations int64
	// FitsCalls is the number of calls of the real filters.
	FitsCalls int
	// Objections is what extenders of the scheduler objected to the node, for people.
	Objections string
}

// RejectedByUsage tells whether a rejection may end without a change on the node: it depends
// on the usage or policies of queues, or on time.
func (d *Decision) RejectedByUsage() bool {
	return slices.ContainsFunc(d.Rejected, func(r planner.Rejection) bool {
		switch r.Rule {
		case planner.Law2, planner.Law5, planner.Law7, planner.RuleDisabled, planner.RuleTooSlow:
			return true
		}
		return false
	})
}

// needs lists the requested types.
func (pl *planning) needs() []Need {
	var out []Need
	for t, name := range pl.node.Types {
		if want := pl.ask.Request.At(t); want > 0 {
			out = append(out, Need{name, resources.Amount(want), resources.Amount(pl.free[t]), resources.Amount(pl.need[t])})
		}
	}
	slices.SortFunc(out, func(a, b Need) int { return strings.Compare(a.Type, b.Type) })
	return out
}

// record writes the victims to the decision.
func (pl *planning) record(d *Decision, chosen []candidate) {
	freed, allowed := pl.freed(chosen), slices.Clone(pl.node.Budgets)
	d.Victims = make([]Victim, 0, len(chosen))
	for i := range chosen {
		c := &chosen[i]
		v := Victim{Pod: c.Pod, Class: c.class, Frees: pl.frees(c)}
		freed.Add(c.Request, -1)
		v.ForRoom = !pl.metBy(freed)
		freed.Add(c.Request, 1)
		if c.Consume(allowed) {
			d.Violations++
		}
		if c.OptedOut {
			d.OptedOut++
		}
		d.Victims = append(d.Victims, v)
	}
}

func (pl *planning) frees(c *candidate) []resources.Entry {
	out := make([]resources.Entry, 0, len(pl.need))
	for t, name := range pl.node.Types {
		if amount := c.Request.At(t); amount > 0 && pl.need[t] > 0 {
			out = append(out, resources.Entry{Name: name, Amount: resources.Amount(amount)})
		}
	}
	slices.SortFunc(out, func(a, b resources.Entry) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Chosen returns the victims as pods; empty for none.
func (d *Decision) Chosen() []*planner.Pod {
	out := make([]*planner.Pod, len(d.Victims))
	for i := range d.Victims {
		out[i] = d.Victims[i].Pod
	}
	return out
}
