package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// shown is the number of things of a kind that a sentence names.
const shown = 3

// Sentence says in one line, for people, what was decided and by which numbers, or what
// stopped the asker.
func (d Decision) Sentence() string {
	switch d.Outcome {
	case Wait:
		return fmt.Sprintf("waits for node %s without preemption: it fits there once pods that leave already are gone", d.Node)
	case Preempt:
		var names []string
		for _, v := range d.Victims {
			name := fmt.Sprintf("%s/%s of queue %s", v.Namespace, v.Name, v.Queue)
			if v.Node != d.Node {
				name += " on node " + v.Node
			}
			names = append(names, name)
		}
		slices.Sort(names)
		purpose := "for room on node"
		if !slices.ContainsFunc(d.Victims, func(v Victim) bool { return v.Node == d.Node }) {
			purpose = "to run on node"
		}
		s := fmt.Sprintf("preempts %s %s %s", list(names), purpose, d.Node)
		if c, ok := nearest(d.Asks, d.Queue, "", d.Contested); ok {
			s += fmt.Sprintf(": queue %s uses %s (law 4)", c.Queue, c.amounts())
		}
		if d.OptedOut > 0 {
			s += fmt.Sprintf("; %d opted out, but nothing else was possible (law 1)", d.OptedOut)
		}
		if len(d.OverMax) > 0 {
			s += "; " + d.MaxNote() + ", so that pods below it go (law 7)"
		}
		return s
	}
	s := d.refusal() + d.named()
	if !d.Exhaustive && !d.More {
		s += "; not every choice was weighed, so there may be one"
	}
	return s
}

// Kept counts the considered pods that may not be preempted, by rule; empty for none. It
// is for logs only, because the numbers change with every pod.
func (d Decision) Kept() string {
	var out []string
	for _, r := range d.Rejected {
		out = append(out, fmt.Sprintf("%d (%s)", r.Pods, r.Rule))
	}
	return strings.Join(out, ", ")
}

// refusal says which rule stopped the asker, with the queues and numbers.
func (d Decision) refusal() string {
	if d.GroupShortage != nil {
		return d.GroupShortage.sentence()
	}
	switch d.Stopped {
	case Law2:
		none := "no set of victims that is enough leaves every queue its guarantee (law 2)"
		if len(d.OverMax) > 0 {
			none += ": " + d.MaxNote()
		}
		return lines(d.Changes, none, "queue %s uses %s, and no set of victims that is enough leaves it that (law 2)")
	case Law3:
		return "the pods that could make room belong to the asker's own queue or application (law 3)"
	case Law4:
		format := "queue %s uses %s (law 4)"
		if len(d.Asks) > 0 && d.Asks[0].Used < d.Asks[0].Guaranteed {
			format = "queue %s uses %s, and the asker would carry it over that (law 4, strictGuarantee)"
		}
		return lines(d.Asks, "no queue of the asker guarantees "+d.contested()+" (law 4)", format)
	case Law5:
		return lines(d.Loses, "no pod that could make room uses what its queue has above its guarantee (law 5)",
			"queue %s uses only %s (law 5)")
	case Law6:
		if h := d.Higher; h != nil {
			return fmt.Sprintf("pods that could make room have a higher priority, of queue %s at least %d, the asker %d (law 6)",
				h.Queue, h.Below, h.AskBelow)
		}
	case Law7:
		return fmt.Sprintf("pods that could make room are outside the fence of queue %s (law 7)", d.Fence)
	case RuleTooLittle:
		if len(d.OverMax) > 0 {
			return "all pods that may go are not enough: " + d.MaxNote()
		}
		return "all pods that may go are not enough for " + d.contested() + " on any node"
	case RuleFilters:
		return "the filters refuse the nodes that preemption could make room on, whichever pods go" + d.unfit()
	case RuleLingering:
		return "the pods that could make room are being deleted already"
	case RuleRefused:
		return "the pods that could make room cannot be deleted"
	case RuleExtender:
		return d.Objections
	case RuleNoQueue:
		return "the asker's queue is gone"
	case RuleNeverPreempt:
		return "the asker has preemptionPolicy Never"
	case RuleDisabled:
		return "pods that could make room are in queues with preemption.policy disabled"
	case "":
		return "no node has pods that could make room"
	}
	return "no pod that could make room may go: " + string(d.Stopped)
}

// named names pods that are being deleted and count for no plan, because they may take
// too long to stop, or have taken too long; and pods whose deletion was refused.
func (d Decision) named() (out string) {
	for _, r := range d.Rejected {
		switch {
		case len(r.Named) == 0:
		case r.Rule == RuleLingering:
			out += "; pods that may take longer than reservationTimeout to stop, or did, do not count as leaving: " + list(r.Named) +
				"; wait until they are gone, delete them again with a shorter grace period, or remove what keeps them: a finalizer, or a node that does not answer"
		case r.Rule == RuleRefused:
			out += "; the API server refused to delete pods, which are not chosen for a while: " + list(r.Named)
		}
	}
	return out
}

// unfit names the nodes that the filters reject.
func (d Decision) unfit() string {
	s := ""
	if len(d.Unfit) > 0 {
		s = ": " + list(d.Unfit)
	}
	if d.Objections != "" {
		s += "; " + d.Objections
	}
	if d.More {
		s += "; other nodes are looked at next"
	}
	return s
}

// lines renders the numbers of the first queue and the count of the others. Without
// queues it renders the alternative text.
func lines(of []Change, otherwise, format string) string {
	if len(of) == 0 {
		return otherwise
	}
	s := fmt.Sprintf(format, of[0].Queue, of[0].amounts())
	if more := len(of) - 1; more > 0 {
		s += fmt.Sprintf("; and %d more like it", more)
	}
	return s
}

// amounts renders the usage before and the guarantee.
func (c Change) amounts() string {
	return fmt.Sprintf("%s of %s guaranteed %s", resources.Format(c.Type, c.Used), resources.Format(c.Type, c.Guaranteed), c.Type)
}

func (d Decision) contested() string {
	if len(d.Contested) == 0 {
		return "what it requests"
	}
	return strings.Join(slices.Sorted(slices.Values(d.Contested)), ", ")
}

// MaxNote names the queues that would exceed their max, so that pods below them are
// preempted on any node (law 7, P3); empty if no max is exceeded.
func (d Decision) MaxNote() string {
	var out []string
	for _, x := range d.OverMax {
		out = append(out, fmt.Sprintf("queue %s uses %s of max %s %s, and the asker requests %s", x.Queue,
			resources.Format(x.Type, x.Used), resources.Format(x.Type, x.Max), x.Type, resources.Format(x.Type, x.Asked)))
	}
	return list(out)
}

// list names the first items and counts the rest.
func list(names []string) string {
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

// VictimNote says in one line, for people, why the i-th victim is preempted: for which
// asker, and by which numbers of both queues.
func (d Decision) VictimNote(i int) string {
	v := &d.Victims[i]
	s := fmt.Sprintf("preempted for %s of queue %s", d.Ask.name(), d.Queue)
	if c, ok := nearest(d.Asks, d.Queue, v.Common, d.Contested); ok {
		which := "which is"
		if c.Queue != d.Queue {
			which = "in queue " + c.Queue + " that is"
		}
		s += fmt.Sprintf(", %s below its guarantee (%s, law 4)", which, c.short())
	}
	s += ", on node " + d.Node
	if c, ok := nearest(d.Loses, v.Queue, v.Common, v.Uses); ok {
		s += fmt.Sprintf("; queue %s uses more than its guarantee (%s, law 5)", c.Queue, c.short())
	}
	if x, ok := d.overMaxOf(v); ok {
		s += fmt.Sprintf("; both are below queue %s, which uses %s of max %s %s (law 7)", x.Queue,
			resources.Format(x.Type, x.Used), resources.Format(x.Type, x.Max), x.Type)
	}
	if v.OptedOut {
		s += "; it opted out, but nothing else was possible (law 1)"
	}
	return s
}

// overMaxOf returns the queue over its max below which a victim frees usage: the nearest
// to the victim's leaf.
func (d Decision) overMaxOf(v *Victim) (Excess, bool) {
	var best Excess
	for _, x := range d.OverMax {
		if queues.Within(v.Queue, x.Queue) && len(x.Queue) > len(best.Queue) && slices.Contains(v.Uses, x.Type) {
			best = x
		}
	}
	return best, best.Queue != ""
}

// nearest returns the change of one of the types in the queue nearest to a leaf, among
// those of its path below the common queue.
func nearest(of []Change, leaf, common string, types []string) (Change, bool) {
	var best Change
	for _, c := range of {
		if queues.Within(leaf, c.Queue) && len(c.Queue) > max(len(common), len(best.Queue)) && slices.Contains(types, c.Type) {
			best = c
		}
	}
	return best, best.Queue != ""
}

// short renders the type, the usage before and the guarantee.
func (c Change) short() string {
	return fmt.Sprintf("%s %s of %s", c.Type, resources.Format(c.Type, c.Used), resources.Format(c.Type, c.Guaranteed))
}

// name is namespace and name.
func (a *Ask) name() string { return a.Namespace + "/" + a.Name }
