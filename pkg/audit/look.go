package audit

import (
	"context"
	"fmt"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/output"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/internal/loop"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// look compares everything and returns the differences.
func (d *Drift) look(ctx context.Context) map[name]difference {
	l := &look{drift: d, ctx: ctx, found: map[name]difference{}}
	l.pods()
	l.nodes()
	l.quotas()
	return l.found
}

// look is one comparison under way.
type look struct {
	drift    *Drift
	ctx      context.Context
	found    map[name]difference
	compared int
	hurry    bool // without pauses
}

// goesOn pauses after every slice, and returns false once the context has ended.
func (l *look) goesOn() bool {
	if l.compared++; l.compared%slice == 0 && !l.hurry && !loop.Pause(l.ctx, l.drift.Clock, slicePause) {
		return false
	}
	return l.ctx.Err() == nil
}

func (l *look) differs(kind Kind, id, what, version, text string) {
	if text != "" {
		l.found[name{kind, id}] = difference{what: what, version: version, text: text}
	}
}

// pods compares all pods. A pod that agreed and did not change on either side is not compared
// again. That saves most of the work, because most pods do not change between two looks.
func (l *look) pods() {
	known := map[types.UID]*inventory.Pod{}
	for _, p := range l.drift.Inventory.Pods() {
		known[p.UID] = p
	}
	for _, pod := range l.drift.Truth.Pods() {
		p := known[pod.UID]
		delete(known, pod.UID)
		switch {
		case !l.goesOn():
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
		if l.goesOn() {
			l.differs(Node, n.Name, n.Name, n.ResourceVersion, nodeDiffers(v.Node(n.Name), informer.Allocatable(n), !n.Spec.Unschedulable))
		}
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
		if sum := sums[q.ID].Allocated; l.goesOn() && !q.Allocated.Equal(sum) {
			// The text has only the difference, which stays the same while pods come and go.
			l.differs(Quota, q.Path, q.Path, "", fmt.Sprintf("what it is charged with, less what its pods use, is %v, not 0", q.Allocated.Sub(sum)))
		}
	}
}
