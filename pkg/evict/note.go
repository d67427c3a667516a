package evict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// tellAsker writes an event on the asker that names its victims, or says why there are
// none, or why its hold has ended. It writes none if the asker was bound.
func (e *Executor) tellAsker(w *output.Work, going []output.Victim) {
	switch {
	case w.Ended == reservations.Bound:
	case !w.Reason.None():
		e.tell(w, corev1.EventTypeWarning, w.Reason.Code, w.Reason.Advice())
	default:
		e.tell(w, corev1.EventTypeNormal, reasons.OfHold(len(going), w.Hold.Note), reasons.Note(askerNote(w, going)))
	}
}

// tell writes an event on an asker, unless it is gone.
func (e *Executor) tell(w *output.Work, kind string, reason reasons.Code, text string) {
	if pod, err := e.findAsker(w.Ref); err == nil {
		e.Recorder(pod.Spec.SchedulerName).Eventf(pod, nil, kind, string(reason), "Preempting", "%s", text)
	}
}

// askerNote describes the victims of an asker: their number, remarks about the choice,
// then their names by queue, so that truncation loses names only.
func askerNote(w *output.Work, going []output.Victim) string {
	var b strings.Builder
	if len(going) == 0 && w.Hold.Note != "" {
		return fmt.Sprintf("The pod can run on node %s only, which is held for it: %s.", w.Hold.Node, w.Hold.Note)
	}
	fmt.Fprintf(&b, "The pod holds node %s", w.Hold.Node)
	if w.Hold.NodeBound {
		b.WriteString(", the only one it can run on")
	}
	if len(going) == 0 {
		b.WriteString(" and starts there once pods that are leaving are gone.")
		return b.String()
	}
	fmt.Fprintf(&b, ". To make room %s.", plural(len(going), "pod leaves", "pods leave"))
	optedOut, violations := harm(w)
	if optedOut > 0 {
		fmt.Fprintf(&b, " %s opted out of preemption; without them there was no way.", plural(optedOut, "of them has", "of them have"))
	}
	if violations > 0 {
		fmt.Fprintf(&b, " %s beyond what PodDisruptionBudgets allow.", plural(violations, "disruption is", "disruptions are"))
	}
	if d := w.Decision; d != nil && len(d.OverMax) > 0 {
		fmt.Fprintf(&b, " No queue is to exceed its max (law 7): %s.", d.MaxNote())
	}
	b.WriteString(byQueue(going))
	return b.String()
}

// byQueue lists pods by their queues.
func byQueue(going []output.Victim) string {
	var b strings.Builder
	sorted := slices.Clone(going)
	slices.SortFunc(sorted, func(a, b output.Victim) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	for i, v := range sorted {
		if i == 0 || sorted[i-1].Queue != v.Queue {
			if i > 0 {
				b.WriteString(".")
			}
			if v.Queue == "" {
				b.WriteString(" Of no queue:")
			} else {
				fmt.Fprintf(&b, " Of queue %s:", v.Queue)
			}
		} else {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, " %s/%s", v.Namespace, v.Name)
	}
	b.WriteString(".")
	return b.String()
}

// harm counts the victims that opted out of preemption, and the disruptions beyond what
// budgets allow.
func harm(w *output.Work) (optedOut, violations int) {
	switch {
	case w.Decision != nil:
		return w.Decision.OptedOut, int(w.Decision.Violations)
	case w.NodeBoundDecision != nil:
		return w.NodeBoundDecision.OptedOut, int(w.NodeBoundDecision.Violations)
	}
	return 0, 0
}

// ofQueue names the queue of a victim, if it has one.
func ofQueue(v output.Victim) string {
	if v.Queue == "" {
		return ""
	}
	return " of queue " + v.Queue
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func ref(r objects.Ref) klog.ObjectRef { return klog.KRef(r.Namespace, r.Name) }
