package daemonset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// String renders the decision in one line: the asker, and the sentence.
func (d Decision) String() string { return d.Ask.Namespace + "/" + d.Ask.Name + ": " + d.Sentence() }

// Sentence says what was decided, why, and, if people can help, what they can do.
func (d Decision) Sentence() string {
	switch d.Outcome {
	case planner.Hold:
		return fmt.Sprintf("node %s is held, %s", d.Node, d.Waiting())
	case planner.Preempt:
		var names []string
		for _, v := range d.Victims {
			names = append(names, fmt.Sprintf("%s/%s (%s)", v.Namespace, v.Name, v.Class))
		}
		return fmt.Sprintf("preempt %s for node %s, %s%s", strings.Join(names, ", "), d.Node, d.short(), d.harm())
	case NoHold:
		if d.Stopped == planner.RuleFilters {
			if d.Objections != "" {
				return fmt.Sprintf("node %s is not held: %s, %s%s (D1)", d.Node, d.Objections, d.withoutCandidates("also"), d.excluded())
			}
			return fmt.Sprintf("node %s is not held: its filters (taints, ports, volumes, affinity) refuse the pod, %s%s; remove what is in the way, or keep its DaemonSet off the node (D1)",
				d.Node, d.withoutCandidates("also"), d.excluded())
		}
		return fmt.Sprintf("node %s is not held: %s, %s%s; move other pods away, %sor keep its DaemonSet off the node (D1)",
			d.Node, d.short(), d.withoutCandidates("and would not fit even"), d.excluded(), d.more())
	}
	switch d.Stopped {
	case planner.RuleExtender:
		return d.Objections
	case RuleMax:
		return fmt.Sprintf("node %s is not held: with the pod queue %s would be over its max (D2); raise it, or wait until the queue uses less",
			d.Node, d.Ask.OverMax)
	}
	return fmt.Sprintf("node %s is not held: %s, and with preemptionPolicy Never no pod is preempted for it (D2)", d.Node, d.short())
}

// Waiting says what a hold without victims waits for. It is for outcome [planner.Hold].
func (d Decision) Waiting() string {
	switch d.Stopped {
	case RuleDelay:
		return fmt.Sprintf("pods are preempted in %v if there is no room before (preemptionStartDelay)", d.Wait.Round(time.Millisecond))
	case RuleNoVictims:
		var tried []string
		for _, t := range d.Tried {
			tried = append(tried, t.String())
		}
		return fmt.Sprintf("no pod is preempted: %s; nothing by %s%s; wait until pods end, or widen victimSelection, singleDeviationPercent or maxVictims (D6)",
			d.short(), strings.Join(tried, ", nor by "), d.excluded())
	}
	return "no victims: the pod fits once leaving pods are gone and those before it are placed"
}

// short says what is missing.
func (d Decision) short() string {
	var amounts []string
	for _, n := range d.Need {
		if n.Short > 0 {
			amounts = append(amounts, resources.Format(n.Type, n.Short)+" "+n.Type)
		}
	}
	if len(amounts) == 0 {
		return "the pod fits by amounts, but its filters refuse"
	}
	return "the pod is short of " + strings.Join(amounts, ", ")
}

// harm names the harm that people may ask about.
func (d Decision) harm() string {
	s := ""
	if d.OptedOut > 0 {
		s += fmt.Sprintf("; %d opted out and the others were not enough", d.OptedOut)
	}
	if d.Violations > 0 {
		s += fmt.Sprintf("; %d beyond what PodDisruptionBudgets allow", d.Violations)
	}
	return s
}

// excluded says why other pods may not be preempted (D8).
func (d Decision) excluded() string {
	if len(d.Rejected) == 0 {
		return ""
	}
	return "; others may not go (" + rejections(d.Rejected) + ")"
}

func rejections(list []planner.Rejection) string {
	var words []string
	for _, r := range list {
		words = append(words, fmt.Sprintf("%s: %d", r.Rule, r.Pods))
	}
	return strings.Join(words, ", ")
}

// String names the selection and what it rejected.
func (t Trial) String() string { return fmt.Sprintf("%s (%s)", t.Selection, rejections(t.Rejected)) }

// more says what makes more pods candidates.
func (d Decision) more() (s string) {
	if d.rejects(RulePriority) {
		s = "raise the pod's priority, "
	}
	if d.rejects(planner.Law2, planner.Law5, planner.Law7, planner.RuleDisabled) {
		s += "add namespace " + d.Ask.Namespace + " to daemonSetNamespaces (D2), "
	}
	return s
}

// rejects tells whether one of some rules excludes a pod.
func (d Decision) rejects(rules ...planner.Rule) bool {
	return slices.ContainsFunc(d.Rejected, func(r planner.Rejection) bool { return slices.Contains(rules, r.Rule) })
}

// withoutCandidates says, after a prefix, that it is not enough if all pods go that may be
// preempted.
func (d Decision) withoutCandidates(prefix string) string {
	switch d.Candidates {
	case 0:
		return "and no pod may go"
	case 1:
		return prefix + " without the 1 pod that may go"
	}
	return fmt.Sprintf("%s without the %d pods that may go", prefix, d.Candidates)
}

// VictimNote is the text for people on a victim: the asker, and why the victim is
// preempted.
func (d Decision) VictimNote(i int) string {
	v := d.Victims[i]
	why := "in the way there by more than its amounts"
	if v.ForRoom {
		var frees []string
		for _, e := range v.Frees {
			frees = append(frees, resources.Format(e.Name, e.Amount)+" "+e.Name)
		}
		why = "frees " + strings.Join(frees, ", ")
	}
	return fmt.Sprintf("preempted for %s/%s, which can run on node %s only: class %s, priority %d of at most %d (D4, D5), %s (D6)",
		d.Ask.Namespace, d.Ask.Name, d.Node, v.Class, v.Priority, d.Ask.Priority, why)
}
