package required

import (
	"cmp"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// Rules by which pods are no candidates, in addition to those of [victims].
const (
	RulePriority   victims.Rule = "higher priority than the asker's"
	RuleAlone      victims.Rule = "does not cover the need alone"
	RuleDeviation  victims.Rule = "deviates too much from the request"
	RuleMaxVictims victims.Rule = "more victims than maxVictims"
	RuleMax        victims.Rule = "over the max of a queue"
	RuleDelay      victims.Rule = "the hold is younger than preemptionStartDelay"
	RuleNoVictims  victims.Rule = "no selection found victims"
)

// candidate is a pod that may be preempted.
type candidate struct {
	*Pod
	class Class
	rank  int
	// share is the largest covered share of the need.
	share resources.Share
	// violates is true if a budget has no disruption left for the pod alone.
	violates bool
}

// excludes returns the rule by which a pod may not be preempted; empty for none (D4).
func excludes(p *Pod, ask *Ask, preemptForeign bool) victims.Rule {
	switch p.Protection {
	case victims.DaemonSet:
		return victims.RuleDaemonSet
	case victims.Static:
		return victims.RuleStatic
	case victims.Leaving:
		return victims.RuleLeaving
	case victims.Lingering:
		return victims.RuleLingering
	case victims.Binding:
		return victims.RuleBinding
	case victims.Foreign:
		if !p.Peer && !preemptForeign {
			return victims.RuleForeign
		}
	}
	if p.Priority > ask.Priority {
		return RulePriority
	}
	return ""
}

// gather lists the candidates in order, and counts the other pods by rule.
func gather(n *Node, ask *Ask, p *Params, b *balance) ([]candidate, []victims.Rejection) {
	candidates := make([]candidate, 0, len(n.Pods))
	var rejected []victims.Rejection
	for i := range n.Pods {
		pod := &n.Pods[i]
		if rule := excludes(pod, ask, p.PreemptForeign); rule != "" {
			rejected = count(rejected, rule, 1)
			continue
		}
		class := classOf(pod)
		candidates = append(candidates, candidate{
			Pod: pod, class: class, rank: p.ClassOrder.rank(pod, class),
			share: b.covers(pod.Request), violates: pod.Violates(n.Budgets),
		})
	}
	slices.SortFunc(candidates, func(a, b candidate) int { return compare(&a, &b) })
	return candidates, rejected
}

// count adds pods to the number of a rule; the list is sorted by rule.
func count(list []victims.Rejection, rule victims.Rule, pods int) []victims.Rejection {
	i, found := slices.BinarySearchFunc(list, rule, func(r victims.Rejection, rule victims.Rule) int { return cmp.Compare(r.Rule, rule) })
	if !found {
		list = slices.Insert(list, i, victims.Rejection{Rule: rule})
	}
	list[i].Pods += pods
	return list
}

// compare is the order of candidates, least harm first (D5):
//
//  1. class; among opted-out pods, originators last
//  2. lower priority
//  3. larger covered share of the need
//  4. younger
//  5. candidates that violate no budget
//  6. UID
func compare(a, b *candidate) int {
	if c := compareHarm(a, b); c != 0 {
		return c
	}
	return cmp.Or(rankOf(a.violates)-rankOf(b.violates), strings.Compare(a.UID, b.UID))
}

// compareHarm is compare without its tie-breaks.
func compareHarm(a, b *candidate) int {
	if c := cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Priority, b.Priority)); c != 0 {
		return c
	}
	return cmp.Or(b.share.Compare(a.share), b.Created.Compare(a.Created))
}

func rankOf(b bool) int {
	if b {
		return 1
	}
	return 0
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
		next, least := i, rankOf(order[i].Violates(allowed))
		for j := i + 1; j < len(order) && compareHarm(&order[i], &order[j]) == 0; j++ {
			v := rankOf(order[j].Violates(allowed))
			if v < least || v == least && order[j].UID < order[next].UID {
				next, least = j, v
			}
		}
		order[i], order[next] = order[next], order[i]
		order[i].Consume(allowed)
	}
	return order
}
