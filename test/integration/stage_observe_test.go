package integration

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// observed is the decision about an asker, read from the changes of pods since its
// creation. Every pod that was removed counts as a victim. Without such a change, its
// condition PodScheduled names the node on which it waits for leaving pods, or the rule
// by which it is refused.
func observed(asker string, seen []watch.Event) scenario.Outcome {
	out := scenario.Outcome{Asker: asker, Kind: planner.Refuse}
	for _, event := range seen {
		pod, ok := event.Object.(*corev1.Pod)
		switch {
		case !ok:
		case event.Type == watch.Deleted:
			out.Kind = planner.Preempt
			out.Victims = append(out.Victims, pod.Name)
		case pod.Name == asker:
			if held := conditionOf(pod, reservations.HeldCondition); held == nil || held.Status != corev1.ConditionTrue {
				continue
			} else if claim, err := reservations.ParseClaim(held.Message); err == nil {
				out.Node = claim.Node
			}
			if out.Kind == planner.Refuse {
				out.Kind = planner.Hold
			}
		}
	}
	slices.Sort(out.Victims)
	if out.Kind != planner.Refuse {
		return out
	}
	said := lastSaid(asker, seen)
	if _, node, waits := strings.Cut(said, string(reasons.WaitingForRoom)+": node "); waits {
		out.Kind = planner.Wait
		out.Node, _, _ = strings.Cut(node, " ")
		return out
	}
	out.Rule = refusedBy(said)
	return out
}

// rules are those that refuse an asker, and the sentences that name them.
var rules = []struct {
	rule planner.Rule
	says string
}{
	{planner.Law2, "(law 2"}, {planner.Law3, "(law 3"}, {planner.Law4, "(law 4"},
	{planner.Law5, "(law 5"}, {planner.Law6, "(law 6"}, {planner.Law7, "(law 7"},
	{planner.RuleDisabled, "preemption.policy disabled"},
	{planner.RuleTooLittle, "pods that may go are not enough"},
	{planner.RuleFilters, "the filters refuse"},
	{planner.RuleNoQueue, "queue is gone"},
	{planner.RuleDaemonSet, string(planner.RuleDaemonSet)},
	{planner.RuleStatic, string(planner.RuleStatic)},
	{planner.RuleLeaving, string(planner.RuleLeaving)},
	{planner.RuleBinding, string(planner.RuleBinding)},
	{planner.RuleForeign, string(planner.RuleForeign)},
	{planner.RuleNotNeeded, string(planner.RuleNotNeeded)},
}

// lastSaid is the last message of condition PodScheduled of a pod.
func lastSaid(asker string, seen []watch.Event) string {
	said := ""
	for _, event := range seen {
		if pod, ok := event.Object.(*corev1.Pod); ok && pod.Name == asker {
			if c := conditionOf(pod, corev1.PodScheduled); c != nil {
				said = c.Message
			}
		}
	}
	return said
}

// refusedBy is the rule that is named first; empty for none.
func refusedBy(said string) planner.Rule {
	if strings.Contains(said, string(reasons.PreemptionNever)) {
		return planner.RuleNeverPreempt
	}
	_, said, _ = strings.Cut(said, string(reasons.PreemptionRefused))
	first := planner.Rule("")
	for _, r := range rules {
		if at := strings.Index(said, r.says); at >= 0 {
			said, first = said[:at], r.rule
		}
	}
	return first
}

// claimCondition is the condition by which a waiting pod of a scenario holds its node.
func claimCondition(c reservations.Claim) corev1.PodCondition {
	return corev1.PodCondition{Type: reservations.HeldCondition, Status: corev1.ConditionTrue, Reason: "Held", Message: c.Message()}
}
