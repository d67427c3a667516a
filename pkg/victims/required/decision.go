package required

import (
	"slices"
	"strings"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// Outcomes, beside those of [victims]. Fits: there is room as things are, nothing
// is done. [victims.Hold]: the node is held and nobody goes yet, see
// Decision.Stopped. [victims.Preempt]: the node is held and the victims go.
// NoHold: the asker would not fit even if all went that may; nothing is done
// until the node's pods or the asker change. [victims.Refuse]: nothing is done.
const (
	Fits   victims.Outcome = "fits"
	NoHold victims.Outcome = "no hold"
)

// Need is what the asker needs of one type: Short = Request - Free, at least 0 (D7).
type Need struct {
	Type string
	// Free is negative where the node is overcommitted.
	Request, Free, Short resources.Amount
}

// Victim is a pod that is to go.
type Victim struct {
	*Pod
	Class Class
	// Frees is what it uses of the types that are needed, sorted by name.
	Frees []resources.Entry
	// ForRoom is true where the others do not cover the need. Where it is false
	// the real filters refuse while the pod is there.
	ForRoom bool
}

// Decision is the outcome of a plan, with the numbers it was judged by.
type Decision struct {
	Ask     *Ask
	Node    string
	Outcome victims.Outcome
	// Need has the types that are requested, sorted by name.
	Need []Need
	// Victims are in the order in which they were chosen, least harm first.
	Victims []Victim
	// Selection is the one that chose them.
	Selection Selection
	// Stopped is why nobody goes. It is empty with [Fits], with [victims.Preempt],
	// and with [victims.Hold] when the asker fits once leaving pods are gone.
	Stopped victims.Rule
	// Wait is how long it is until pods may go, where Stopped is RuleDelay.
	Wait time.Duration
	// Tried are the selections that found nothing, in turn.
	Tried []Trial
	// Candidates counts the pods that may go. Rejected are the others, by rule.
	Candidates int
	Rejected   []victims.Rejection
	// OptedOut counts victims that had opted out.
	OptedOut int
	// Violations counts victims beyond what PodDisruptionBudgets allow.
	Violations int64
	// FitsCalls is how often the real filters were asked.
	FitsCalls int
	// Objections is what extenders of the scheduler said against the node, for people.
	Objections string
}

// needs lists what is requested.
func (pl *planner) needs() []Need {
	var out []Need
	for t, name := range pl.node.Types {
		if want := at(pl.ask.Request, t); want > 0 {
			out = append(out, Need{name, resources.Amount(want), resources.Amount(pl.free[t]), resources.Amount(pl.need[t])})
		}
	}
	slices.SortFunc(out, func(a, b Need) int { return strings.Compare(a.Type, b.Type) })
	return out
}

// record writes the victims down.
func (pl *planner) record(d *Decision, chosen []candidate) {
	freed, allowed := make(victims.Amounts, len(pl.need)), slices.Clone(pl.node.Budgets)
	for i := range chosen {
		pl.add(freed, &chosen[i], 1)
	}
	d.Victims = make([]Victim, 0, len(chosen))
	for i := range chosen {
		c := &chosen[i]
		v := Victim{Pod: c.Pod, Class: c.class, Frees: pl.frees(c)}
		pl.add(freed, c, -1)
		v.ForRoom = !pl.metBy(freed)
		pl.add(freed, c, 1)
		if c.Consume(allowed) {
			d.Violations++
		}
		if c.OptedOut {
			d.OptedOut++
		}
		d.Victims = append(d.Victims, v)
	}
}

func (pl *planner) frees(c *candidate) []resources.Entry {
	out := make([]resources.Entry, 0, len(pl.need))
	for t, name := range pl.node.Types {
		if amount := at(c.Request, t); amount > 0 && pl.need[t] > 0 {
			out = append(out, resources.Entry{Name: name, Amount: resources.Amount(amount)})
		}
	}
	slices.SortFunc(out, func(a, b resources.Entry) int { return strings.Compare(a.Name, b.Name) })
	return out
}
