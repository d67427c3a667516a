package daemonset

import (
	"cmp"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Rules by which pods are no candidates, in addition to those of package planner.
const (
	RulePriority   planner.Rule = "higher priority than the asker's"
	RuleAlone      planner.Rule = "does not cover the need alone"
	RuleDeviation  planner.Rule = "deviates too much from the request"
	RuleMaxVictims planner.Rule = "more victims than maxVictims"
	RuleMax        planner.Rule = "over the max of a queue"
	RuleDelay      planner.Rule = "the hold is younger than preemptionStartDelay"
	RuleNoVictims  planner.Rule = "no selection found victims"
)

// candidate is a pod that may be preempted.
type candidate struct {
	*planner.Pod
	class Class
	rank  int
	// share is the largest covered share of the need.
	share resources.Share
	// violates is true if a budget has no disruption left for the pod alone.
	violates bool
}

// excludes returns the rule by which a pod may not be preempted; empty for none (D4).
func excludes(p *planner.Pod, ask *Ask, preemptForeign bool) planner.Rule {
	switch {
	case p.Protection != planner.Unprotected && !(preemptForeign && p.Protection == planner.Foreign):
		return p.Protection.Rule()
	case p.Priority > ask.Priority:
		return RulePriority
	}
	return ""
}

// gather lists the candidates in order, and counts the other pods by rule. If guarantees bind
// the asker, a pod is a candidate only if it may go together with the candidates before it.
func gather(n *Node, ask *Ask, p *Params, b *balance) ([]candidate, []planner.Rejection) {
	candidates := make([]candidate, 0, len(n.Pods))
	var rejected []planner.Rejection
	order := p.classOrder(ask)
	for _, pod := range n.Pods {
		if rule := excludes(pod, ask, p.PreemptForeign); rule != "" {
			rejected = count(rejected, rule, 1)
			continue
		}
		class := ClassOf(pod)
		candidates = append(candidates, candidate{
			Pod: pod, class: class, rank: order.rank(pod, class),
			share: b.covers(pod.Request), violates: pod.Violates(n.Budgets),
		})
	}
	slices.SortFunc(candidates, func(a, b candidate) int { return compare(&a, &b) })
	g := newGuarantees(n, ask, p, b)
	candidates = slices.DeleteFunc(candidates, func(c candidate) bool {
		rule, err := g.add(c.Pod)
		if err != nil {
			rejected = count(rejected, rule, 1)
		}
		return err != nil
	})
	return candidates, rejected
}

// count adds pods to the number of a rule; the list is sorted by rule.
func count(list []planner.Rejection, rule planner.Rule, pods int) []planner.Rejection {
	i, found := slices.BinarySearchFunc(list, rule, func(r planner.Rejection, rule planner.Rule) int {
		return cmp.Compare(r.Rule, rule)
	})
	if !found {
		list = slices.Insert(list, i, planner.Rejection{Rule: rule})
	}
	list[i].Pods += pods
	return list
}

// compare is the order of candidates, least harm first (D5):
//
//  1. class; among opted-out pods, originators last
//  2. lower priority
//  3. candidates that are gone before a hold times out
//  4. larger covered share of the need
//  5. younger
//  6. candidates that violate no budget
//  7. UID
func compare(a, b *candidate) int {
	return cmp.Or(
		compareHarm(a, b),
		planner.Rank(a.violates)-planner.Rank(b.violates),
		strings.Compare(a.UID, b.UID),
	)
}

// compareHarm is compare without its tie-breaks.
func compareHarm(a, b *candidate) int {
	return cmp.Or(
		cmp.Compare(a.rank, b.rank),
		cmp.Compare(a.Priority, b.Priority),
		planner.Rank(a.Slow)-planner.Rank(b.Slow),
		b.share.Compare(a.share),
		b.Created.Compare(a.Created),
	)
}

// sequence is the order in which several candidates are preempted one after the other. It
// is the order of candidates, except that each uses disruptions of budgets that the
// following ones then lack.
func sequence(candidates []candidate, budgets []int64) []candidate {
	if !slices.ContainsFunc(candidates, func(c candidate) bool { return len(c.Budgets) > 0 }) {
		return candidates
	}
	order, allowed := slices.Clone(candidates), slices.Clone(budgets)
	for i := range order {
		next, least := i, planner.Rank(order[i].Violates(allowed))
		for j := i + 1; j < len(order) && compareHarm(&order[i], &order[j]) == 0; j++ {
			v := planner.Rank(order[j].Violates(allowed))
			if v < least || v == least && order[j].UID < order[next].UID {
				next, least = j, v
			}
		}
		order[i], order[next] = order[next], order[i]
		order[i].Consume(allowed)
	}
	return order
}
