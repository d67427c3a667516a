package order

import (
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// next is the first ask below a queue, and the state of the guarantees, in what the ask
// requests, of the queues on the path from this queue down to it.
type next struct {
	group *AskGroup // nil if no ask below the queue is in the order
	// below are the types of which a queue on the path is below its guarantee; reached
	// are those of which a queue uses its guarantee or more. A type may be in both.
	below, reached resources.Types
}

// findNext finds the next ask of a queue after its children have found theirs, and
// reports whether it changed.
func (x *Index) findNext(n *node) bool {
	x.visits++
	var now next
	// A queue that changed from leaf to parent finishes its own asks first.
	if group, ok := n.groups.First(); ok {
		now.group = group
	} else if child, ok := n.children.First(); ok {
		now = child.next
	}
	if now.group != nil {
		below, reached := n.settings.Guaranteed.Standing(n.stays, now.group.request, x.strict)
		now.below, now.reached = now.below|below, now.reached|reached
	}
	if now == n.next {
		return false
	}
	n.next = now
	n.key.BelowGuarantee = now.below&^now.reached != 0
	return true
}
