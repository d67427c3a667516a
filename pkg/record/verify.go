package record

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Verify judges a decision again, from its own victims and numbers only, and returns
// a sentence for each rule that it breaks. It is false where there is nothing to judge:
// no pod goes, or the decision is of an earlier process and has no numbers.
//
// It shares no code with the planner and with the judge before the deletes. It cannot
// judge what the numbers do not say: law 1, fences and policies of law 7, law 3 by
// application, and the filters.
func (d *Decision) Verify() (broken []string, judged bool) {
	if d.Outcome != planner.Preempt || d.TakenUp || len(d.Numbers) == 0 {
		return nil, false
	}
	j := &verifier{Decision: d}
	if d.Kind == NodeBound {
		j.nodeBound()
		return j.broken, true
	}
	for i := range d.Victims {
		j.victim(&d.Victims[i])
	}
	for i := range d.Numbers {
		j.number(&d.Numbers[i])
	}
	return j.broken, true
}

type verifier struct {
	*Decision
	broken []string
}

func (j *verifier) breaks(law, format string, args ...any) {
	j.broken = append(j.broken, "law "+law+": "+fmt.Sprintf(format, args...))
}

// victim judges the laws about one victim: 3, 6, 4 on the asker's side of the queue
// that both have in common, and 5 on the victim's side.
func (j *verifier) victim(v *Victim) {
	if queues.Within(v.Queue, j.Queue) || queues.Within(j.Queue, v.Queue) {
		j.breaks("3", "victim %s/%s is of queue %s, the pod of %s", v.Namespace, v.Name, v.Queue, j.Queue)
		return
	}
	if of(v.Effective) > of(v.AskerEffective) {
		j.breaks("6", "victim %s/%s has priority %d, the pod %d", v.Namespace, v.Name, of(v.Effective), of(v.AskerEffective))
	}
	if !slices.ContainsFunc(j.Numbers, func(n Number) bool { return n.Law == "4" && !queues.Within(v.Queue, n.Queue) }) {
		j.breaks("4", "no queue of the pod below the one that it shares with victim %s/%s guarantees anything contested", v.Namespace, v.Name)
	}
	for end := len(v.Queue); end >= 0 && !queues.Within(j.Queue, v.Queue[:end]); end = strings.LastIndexByte(v.Queue[:end], '.') {
		q := v.Queue[:end]
		if !slices.ContainsFunc(j.Numbers, func(n Number) bool {
			return n.Law == "5" && n.Queue == q && of(n.Used) > of(n.Guaranteed) && v.Requests[n.Resource] > 0
		}) {
			j.breaks("5", "queue %s of victim %s/%s is over its guarantee in nothing that the victim frees", q, v.Namespace, v.Name)
		}
	}
}

// number judges what a rule was asked about one type of one queue.
func (j *verifier) number(n *Number) {
	used, taken, asked, guaranteed := of(n.Used), of(n.Taken), of(n.Asked), of(n.Guaranteed)
	if freed := j.freed(n); n.Law != "4" && freed != taken {
		j.breaks(n.Law, "queue %s is judged as if its victims freed %d %s; they free %d", n.Queue, taken, n.Resource, freed)
	}
	switch after := used - taken + asked; n.Law {
	case "2":
		contested := slices.Contains(j.Contested, n.Resource)
		least := guaranteed
		if queues.Within(j.Queue, n.Queue) {
			least = min(guaranteed, used)
		} else if !contested && used < guaranteed {
			return // a shortage of a type that is not contested may move to another queue
		}
		if after < least {
			j.breaks("2", "queue %s falls from %d to %d %s, and %d is guaranteed", n.Queue, used, after, n.Resource, guaranteed)
		}
	case "4":
		if used >= guaranteed {
			j.breaks("4", "queue %s of the pod uses %d of %d guaranteed %s", n.Queue, used, guaranteed, n.Resource)
		}
	case "7":
		if after > of(n.Max) {
			j.breaks("7", "queue %s of the pod comes to %d %s, and its max is %d", n.Queue, after, n.Resource, of(n.Max))
		}
	}
}

// freed is what the victims below a queue free of a type.
func (j *verifier) freed(n *Number) (sum resources.Amount) {
	for i := range j.Victims {
		if v := &j.Victims[i]; queues.Within(v.Queue, n.Queue) {
			sum += v.Requests[n.Resource]
		}
	}
	return sum
}

// nodeBound judges that the victims free what the node is short of (D7).
func (j *verifier) nodeBound() {
	for i := range j.Numbers {
		n, freed := &j.Numbers[i], resources.Amount(0)
		for k := range j.Victims {
			freed += j.Victims[k].Requests[n.Resource]
		}
		if short := of(n.Short); freed < short {
			j.breaks("D7", "the node is short of %d %s; the victims free %d", short, n.Resource, freed)
		}
	}
}

func of[T ~int64](n *T) T { return ptr.Deref(n, 0) }
