package search

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
)

// decision returns a decision with all but the node, the victims and the numbers.
func (pl *planning) decision(o planner.Outcome) planner.Decision {
	d := planner.Decision{Ask: pl.ask, Outcome: o, Exhaustive: pl.exhaustive, FilterResults: pl.FilterResults}
	d.More, d.Unfit = d.More && o == planner.Refuse, slices.Sorted(slices.Values(d.Unfit))
	if len(pl.path) > 0 {
		d.Queue, d.Fence = pl.path[len(pl.path)-1].queue.Path, pl.path[pl.fence].queue.Path
	}
	for why, pods := range pl.rejected {
		if pods > 0 {
			by, rule := planner.Protection(why), ruleOf[why]
			if by <= planner.TooSlow {
				rule = by.Rule()
			}
			d.Rejected = append(d.Rejected, planner.Rejection{Rule: rule, Pods: pods})
			if o == planner.Refuse && (by == planner.Lingering || by == planner.Refused) {
				d.Rejected[len(d.Rejected)-1].Named = pl.protected(by)
			}
		}
	}
	slices.SortFunc(d.Rejected, func(a, b planner.Rejection) int { return cmp.Compare(a.Rule, b.Rule) })
	return d
}

// protected names the pods that no plan counts as leaving, because they may stay for
// longer than a hold lasts, or those of which a deletion was refused.
func (pl *planning) protected(by planner.Protection) []string {
	var out []string
	for _, n := range pl.snapshot.Nodes {
		for _, p := range n.Pods {
			if p.Protection != by {
				continue
			}
			why := p.Refusal
			if by == planner.Lingering {
				why = fmt.Sprintf("grace period %v", p.Grace)
			}
			out = append(out, fmt.Sprintf("%s/%s on node %s (%s)", p.Namespace, p.Name, n.Name, why))
		}
	}
	slices.Sort(out)
	return out
}

// refuse is the decision that no plan was found. If no rule stopped the asker itself, it
// gives the rule that came last before a plan: the filters, law 2 on whole sets, too few
// candidates, or the law that excluded most pods.
func (pl *planning) refuse(by planner.Rule) planner.Decision {
	d := pl.decision(planner.Refuse)
	switch {
	case by != "":
		d.Stopped = by
	case pl.FitsCalls > 0:
		d.Stopped = planner.RuleFilters
	case pl.blocked:
		d.Stopped = planner.Law2
	case pl.tooFew || len(pl.later) > 0:
		d.Stopped = planner.RuleTooLittle
	case len(d.Rejected) > 0:
		d.Stopped = slices.MaxFunc(d.Rejected, func(a, b planner.Rejection) int {
			return cmp.Or(
				cmp.Compare(planner.Rank(telling(a.Rule)), planner.Rank(telling(b.Rule))),
				cmp.Compare(a.Pods, b.Pods), cmp.Compare(b.Rule, a.Rule))
		}).Rule
	}
	pl.explain(&d)
	return d
}

// telling reports whether a rule says more than that some pods are never preempted.
func telling(r planner.Rule) bool {
	switch r {
	case planner.Law2, planner.Law4, planner.Law5, planner.Law6, planner.Law7, planner.RuleDisabled:
		return true
	}
	return false
}

// accept is the decision for a plan.
func (pl *planning) accept(p *plan) planner.Decision {
	d := pl.decision(planner.Preempt)
	if len(p.victims) == 0 {
		d.Outcome = planner.Wait
	}
	d.Node = p.node.Name
	d.OptedOut, d.Violations = p.harm.optedOut, p.harm.violations
	for _, t := range p.view.contested {
		d.Contested = append(d.Contested, pl.snapshot.Types[t])
	}
	for _, c := range p.victims {
		v := pl.victim(c.Pod, c.node, c.path)
		for _, t := range p.view.contested {
			if c.request.At(t) > 0 {
				v.Uses = append(v.Uses, pl.snapshot.Types[t])
			}
		}
		d.Victims = append(d.Victims, v)
	}
	slices.SortFunc(d.Victims, func(a, b planner.Victim) int { return cmp.Compare(a.UID, b.UID) })
	d.Changes, d.Asks, d.Loses, d.OverMax = pl.changes(p), pl.asks(p), pl.loses(p), pl.excesses(p)
	return d
}
