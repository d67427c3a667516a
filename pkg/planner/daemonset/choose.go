package daemonset

import (
	"cmp"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Trial is a selection that found no victims. It counts the rejected pods by rule; for
// RuleMaxVictims the number is that of the victims needed.
type Trial struct {
	Selection Selection
	Rejected  []planner.Rejection
}

// planning is the state of one plan.
type planning struct {
	balance
	node   *Node
	ask    *Ask
	params *Params
	// candidates are sorted.
	candidates []candidate
	calls      int // of Fits so far
}

// passes reports whether the real filters accept without the pods.
func (pl *planning) passes(without []candidate) bool {
	if pl.params.Fits == nil {
		return true
	}
	pl.calls++
	pods := make([]*planner.Pod, len(without))
	for i := range without {
		pods[i] = without[i].Pod
	}
	return pl.params.Fits(pods) == planner.Passes
}

// choose tries the selections in turn. It returns no victims if none found any. Its
// caller has checked that all candidates together are enough, and that no victims are not
// enough.
func (pl *planning) choose() (chosen []candidate, by Selection, tried []Trial) {
	selections := pl.params.Selection
	if len(selections) == 0 {
		selections = []Selection{Multiple}
	}
	if !pl.short {
		// The need is met, and only the filters refuse: one victim is tried first.
		others := slices.DeleteFunc(slices.Clone(selections), func(s Selection) bool { return s == Single })
		selections = append([]Selection{Single}, others...)
	}
	for _, s := range selections {
		trial := Trial{Selection: s}
		switch {
		case s == Multiple:
			chosen = pl.multiple(&trial)
		case pl.short:
			chosen = pl.single(&trial)
		default:
			chosen = pl.first(&trial, pl.candidates)
		}
		if len(chosen) > 0 {
			return chosen, s, tried
		}
		tried = append(tried, trial)
	}
	return nil, "", tried
}

// single chooses the one victim that covers the need and deviates least from the request,
// in the first class that has any.
func (pl *planning) single(trial *Trial) []candidate {
	yard := yardstick(pl.node, pl.ask.Request)
	off := func(c candidate) resources.Share { return deviation(c.Request.At(yard), pl.ask.Request.At(yard)) }
	var matches []candidate
	for _, c := range pl.candidates {
		if !pl.metBy(c.Request) {
			trial.Rejected = count(trial.Rejected, RuleAlone, 1)
			continue
		}
		if pl.params.tooFar(off(c)) {
			trial.Rejected = count(trial.Rejected, RuleDeviation, 1)
			continue
		}
		matches = append(matches, c)
	}
	slices.SortStableFunc(matches, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), off(a).Compare(off(b)))
	})
	return pl.first(trial, matches)
}

// tooFar reports whether a deviation is larger than a single victim may have.
func (p *Params) tooFar(off resources.Share) bool {
	most := p.SingleDeviationPercent
	return most != nil && off.Compare(resources.ShareOf(resources.Amount(*most), 100)) > 0
}

// first chooses the first of the candidates without which the filters pass.
func (pl *planning) first(trial *Trial, of []candidate) []candidate {
	for i := range of {
		if pl.passes(of[i : i+1]) {
			return of[i : i+1]
		}
		trial.Rejected = count(trial.Rejected, planner.RuleFilters, 1)
	}
	return nil
}

// multiple takes all candidates, which are known to be enough, and removes those that are not
// needed, the most harmful first: all after the need is met and the filters pass, then others.
func (pl *planning) multiple(trial *Trial) []candidate {
	chosen := pl.spare(sequence(pl.candidates, pl.node.Budgets))
	if most := pl.params.MaxVictims; most != nil && len(chosen) > int(*most) {
		trial.Rejected = count(trial.Rejected, RuleMaxVictims, len(chosen))
		return nil
	}
	return chosen
}

// freed is what candidates free together.
func (pl *planning) freed(by []candidate) planner.Amounts {
	freed := make(planner.Amounts, len(pl.need))
	for i := range by {
		freed.Add(by[i].Request, 1)
	}
	return freed
}

// spare removes victims that are not needed, and returns the rest: at least one.
func (pl *planning) spare(taken []candidate) []candidate {
	freed := pl.freed(taken)
	count := func(c *candidate, sign int64) { freed.Add(c.Request, sign) }
	return planner.Spare(taken, count, func() bool { return pl.metBy(freed) }, func(rest []candidate) bool {
		return len(rest) > 0 && pl.passes(rest)
	})
}
