package pending

import "fmt"

// ClassLimit bounds how many members of equivalence classes (pods that found no node
// before) are admitted at a time: one, doubled with each one that is placed. Room for them
// is scarce, and each result can change the order: if the first one finds no node, its
// class need not be tried, and another queue is next. A window full of them would be tried
// in vain, or take room out of order.
type ClassLimit struct {
	limit, largest int
	taken          int
	reopened       uint64
}

// NewClassLimit returns the limit of one pod. It grows up to largest.
func NewClassLimit(largest int) ClassLimit { return ClassLimit{limit: 1, largest: largest} }

// Full tells whether no further member may be admitted. All pods behind it in the order
// wait, too.
func (l *ClassLimit) Full() bool { return l.taken >= l.limit }

// Admitted notes that n members were admitted; n is negative if they are admitted no more.
func (l *ClassLimit) Admitted(n int) { l.taken += n }

// Placed notes that a member found a node.
func (l *ClassLimit) Placed() { l.limit = min(2*l.limit, l.largest) }

// Failed notes that a member found no node.
func (l *ClassLimit) Failed() { l.limit = 1 }

// NoteReopened notes that a failed class returned to the order.
func (l *ClassLimit) NoteReopened() { l.reopened++ }

// Reopened is how often a failed class returned to the order.
func (l *ClassLimit) Reopened() uint64 { return l.reopened }

// Check verifies the number of admitted members.
func (l *ClassLimit) Check(admitted int) error {
	if l.taken != admitted || l.limit < 1 || l.limit > l.largest {
		return fmt.Errorf("class limit: %d pods counted, there are %d; the limit is %d of at most %d", l.taken, admitted, l.limit, l.largest)
	}
	return nil
}
