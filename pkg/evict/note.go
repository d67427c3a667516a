package evict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/paddock-scheduler/paddock/pkg/queues/store"
)

// askerNote says who goes for an asker: how many, what is to be known of the
// choice, then their names by queue, so that a cut loses names only.
func askerNote(w store.Work, going []store.Victim) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The pod holds node %s", w.Hold.Node)
	if len(going) == 0 {
		b.WriteString(" and starts there once pods that are leaving are gone.")
		return b.String()
	}
	fmt.Fprintf(&b, ". To make room %s.", plural(len(going), "pod leaves", "pods leave"))
	if d := w.Decision; d != nil && d.OptedOut > 0 {
		fmt.Fprintf(&b, " %s opted out of preemption; without them there was no way.", plural(d.OptedOut, "of them has", "of them have"))
	}
	if d := w.Decision; d != nil && d.Violations > 0 {
		fmt.Fprintf(&b, " %s beyond what PodDisruptionBudgets allow.", plural(int(d.Violations), "disruption is", "disruptions are"))
	}
	sorted := slices.Clone(going)
	slices.SortFunc(sorted, func(a, b store.Victim) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	for i, v := range sorted {
		if i == 0 || sorted[i-1].Queue != v.Queue {
			if i > 0 {
				b.WriteString(".")
			}
			fmt.Fprintf(&b, " Of queue %s:", v.Queue)
		} else {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, " %s/%s", v.Namespace, v.Name)
	}
	b.WriteString(".")
	return b.String()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// related makes an object of a pod that may be nil.
func related(pod *corev1.Pod) runtime.Object {
	if pod == nil {
		return nil
	}
	return pod
}
