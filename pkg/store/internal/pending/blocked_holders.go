package pending

import (
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// BlockedHolders has the pods that hold a node and that a quota refuses, with the queue of the
// quota. They are few: a scan is quick.
type BlockedHolders[P comparable] struct {
	at  map[P]queues.ID
	due map[P]struct{} // the queue has more room since
}

// NewBlockedHolders returns no pods.
func NewBlockedHolders[P comparable]() BlockedHolders[P] {
	return BlockedHolders[P]{at: map[P]queues.ID{}, due: map[P]struct{}{}}
}

// Set sets the verdict of the quotas on a pod.
func (x *BlockedHolders[P]) Set(p P, v queues.Verdict) {
	x.Remove(p)
	if !v.OK() {
		x.at[p] = v.At
	}
}

// Remove forgets a pod.
func (x *BlockedHolders[P]) Remove(p P) {
	delete(x.at, p)
	delete(x.due, p)
}

// Has tells whether a queue refused a pod.
func (x *BlockedHolders[P]) Has(at queues.ID) bool {
	for _, by := range x.at {
		if by == at {
			return true
		}
	}
	return false
}

// MoreRoom notes that a queue has more room.
func (x *BlockedHolders[P]) MoreRoom(at queues.ID) {
	for p, by := range x.at {
		if by == at {
			x.due[p] = struct{}{}
		}
	}
}

// All iterates over the pods, in no particular order.
func (x *BlockedHolders[P]) All() iter.Seq[P] { return maps.Keys(x.at) }

// Take returns the pods whose queue got more room since the last call; order is a strict
// total order.
func (x *BlockedHolders[P]) Take(order func(a, b P) int) []P {
	if len(x.due) == 0 {
		return nil // as after nearly every change
	}
	out := slices.SortedFunc(maps.Keys(x.due), order)
	clear(x.due)
	return out
}

// Check verifies that only refused pods are due.
func (x *BlockedHolders[P]) Check() error {
	for p := range x.due {
		if _, ok := x.at[p]; !ok {
			return errors.New("refused holders: one is due that no quota refuses")
		}
	}
	return nil
}
