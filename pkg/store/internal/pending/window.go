package pending

import (
	"fmt"
	"iter"
	"maps"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// Window has the pods that are let through the gate, and bounds their number. With a
// large window the scheduler's queue may differ more from the live order; with a small one
// the scheduler waits for the store more often. So the window doubles while all its pods
// are placed, and shrinks to its smallest size when one is not.
type Window[P comparable] struct {
	smallest, largest int
	size              int             // slots
	inARow            int             // pods placed in a row since the size changed
	pods              map[P]queues.ID // with their leaves
}

// newWindow returns an empty window of the smallest size.
func newWindow[P comparable](smallest, largest int) Window[P] {
	return Window[P]{smallest: smallest, largest: largest, size: smallest, pods: map[P]queues.ID{}}
}

// Enter gives a slot to a pod of a leaf that has none.
func (w *Window[P]) Enter(p P, leaf queues.ID) { w.pods[p] = leaf }

// Leave takes the slot of a pod back. It does nothing for a pod without a slot.
func (w *Window[P]) Leave(p P) { delete(w.pods, p) }

// Pods iterates over the pods with a slot and their leaves, in no particular order.
func (w *Window[P]) Pods() iter.Seq2[P, queues.ID] { return maps.All(w.pods) }

// Leaves iterates over the leaf of each pod with a slot, in no particular order.
func (w *Window[P]) Leaves() iter.Seq[queues.ID] { return maps.Values(w.pods) }

// Taken is the number of slots in use.
func (w *Window[P]) Taken() int { return len(w.pods) }

// Slots is how many slots there are. One leaf may have them all.
func (w *Window[P]) Slots() int { return w.size }

// Placed notes that a pod was placed. After as many in a row as the window has slots, the
// window doubles.
func (w *Window[P]) Placed() {
	if w.inARow++; w.inARow >= w.size {
		w.size, w.inARow = min(2*w.size, w.largest), 0
	}
}

// Failed notes that a pod was not placed: no node took it, or it went back for others.
func (w *Window[P]) Failed() { w.size, w.inARow = w.smallest, 0 }

// Check verifies the size, and that exactly the given pods, each of its leaf, have a slot.
func (w *Window[P]) Check(admitted map[P]queues.ID) error {
	switch {
	case w.size < w.smallest || w.size > w.largest || w.inARow >= w.size:
		return fmt.Errorf("window: %d slots of %d to %d, %d placed in a row", w.size, w.smallest, w.largest, w.inARow)
	case !maps.Equal(w.pods, admitted):
		return fmt.Errorf("window: %d slots taken, %d pods admitted", len(w.pods), len(admitted))
	}
	return nil
}
