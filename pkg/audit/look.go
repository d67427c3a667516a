package audit

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// look is a comparison and what it has found.
type look struct {
	drift *Drift
	found map[name]difference
}

// look compares the pods.
func (d *Drift) look() *look {
	l := &look{drift: d, found: map[name]difference{}}
	l.pods()
	return l
}

func (l *look) differs(kind Kind, id, what, version, text string) {
	if text != "" {
		l.found[name{kind, id}] = difference{what: what, version: version, text: text}
	}
}

// pods compares all pods. A pod that agreed and did not change on either side is not compared
// again. That saves most of the work, because most pods do not change between two looks.
func (l *look) pods() {
	known := l.drift.Inventory.Pods()
	for _, pod := range l.drift.Truth.Pods() {
		p := known[pod.UID]
		delete(known, pod.UID)
		switch {
		case p != nil:
			if !p.Agrees(pod) && l.sameAs(p.PodRecord, pod) {
				p.Agree(pod)
			}
		case !informer.Ended(pod): // of one that has ended the store needs nothing
			l.sameAs(nil, pod)
		}
	}
	for uid, p := range known {
		l.differs(Pod, string(uid), p.Namespace+"/"+p.Name, "", "it is gone, and the store has it still")
	}
}

// sameAs tells whether the store's record of a pod, nil for none, equals the listed pod. It
// notes the difference.
func (l *look) sameAs(record *output.PodRecord, listed *corev1.Pod) bool {
	var said *objects.Pod
	if pod, told := l.drift.Truth.Read(listed); told {
		said = &pod
	}
	text := output.Differs(record, said)
	l.differs(Pod, string(listed.UID), listed.Namespace+"/"+listed.Name, listed.ResourceVersion, text)
	return text == ""
}

func (l *look) nodes() {
	listed, v := l.drift.Truth.Nodes(), l.drift.Inventory.View()
	seen := make(map[string]bool, len(listed))
	for _, n := range listed {
		seen[n.Name] = true
		l.differs(Node, n.Name, n.Name, n.ResourceVersion, nodeDiffers(v.Node(n.Name), informer.Allocatable(n), !n.Spec.Unschedulable))
	}
	for _, n := range v.Nodes {
		if !seen[n.Name] {
			l.differs(Node, n.Name, n.Name, "", "it is gone, and the store has it still")
		}
	}
}

func nodeDiffers(n *inventory.Node, allocatable resources.Vector, schedulable bool) string {
	switch {
	case n == nil:
		return "the store does not know it"
	case !n.Allocatable.Equal(allocatable):
		return fmt.Sprintf("it offers %v, the store says %v", allocatable, n.Allocatable)
	case n.Schedulable != schedulable:
		return fmt.Sprintf("schedulable is %t, the store says %t", schedulable, n.Schedulable)
	}
	return ""
}

// quotas compares the charge of every queue with the sum of its pods, both of one view.
func (l *look) quotas() {
	v := l.drift.Inventory.View()
	sums := sumsOf(v)
	for q := range v.Queues.All() {
		if sum := sums[q.ID].Allocated; !q.Allocated.Equal(sum) {
			// The text has only the difference, which stays the same while pods come and go.
			l.differs(Quota, q.Path, q.Path, "", fmt.Sprintf("what it is charged with, less what its pods use, is %v, not 0", q.Allocated.Sub(sum)))
		}
	}
}
