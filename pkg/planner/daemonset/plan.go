package daemonset

import "github.com/paddock-scheduler/paddock/pkg/planner"

// Plan decides whether the node is held for an asker that can run on no other node, and
// which pods are preempted for it.
func Plan(n *Node, ask *Ask, p Params) Decision {
	pl := &planning{balance: weigh(n, ask.Request), node: n, ask: ask, params: &p}
	d := Decision{Ask: ask, Node: n.Name, Need: pl.needs()}
	pl.candidates, d.Rejected = gather(n, ask, &p, &pl.balance)
	d.Candidates = len(pl.candidates)
	switch {
	case ask.OverMax != "":
		d.Outcome, d.Stopped = planner.Refuse, RuleMax
	case !pl.short && pl.passes(nil):
		d.Outcome = planner.Hold
	case ask.Never:
		d.Outcome, d.Stopped = planner.Refuse, planner.RuleNeverPreempt
	default:
		if rule := pl.impossible(); rule != "" {
			d.Outcome, d.Stopped = NoHold, rule
			break
		}
		pl.preempt(&d)
	}
	d.FitsCalls = pl.calls
	return d
}

// impossible returns why the asker would not fit even without all candidates (D1); empty if
// it would. It is already known that no victims are not enough.
func (pl *planning) impossible() planner.Rule {
	switch {
	case !pl.metBy(pl.freed(pl.candidates)):
		return planner.RuleTooLittle
	case len(pl.candidates) == 0 || !pl.passes(pl.candidates):
		return planner.RuleFilters
	}
	return ""
}

// preempt holds the node, and chooses victims once the hold is old enough (D3).
func (pl *planning) preempt(d *Decision) {
	d.Outcome = planner.Hold
	if wait := pl.params.StartDelay - pl.ask.Held; wait > 0 {
		d.Stopped, d.Wait = RuleDelay, wait
		return
	}
	chosen, by, tried := pl.choose()
	d.Tried = tried
	if len(chosen) == 0 {
		d.Stopped = RuleNoVictims
		return
	}
	d.Outcome, d.Selection = planner.Preempt, by
	pl.record(d, chosen)
}
