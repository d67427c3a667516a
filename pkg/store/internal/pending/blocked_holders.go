package pending

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// BlockedHolders has the pods that hold a node and that a quota refuses, by the queue of the quota.
type BlockedHolders[P comparable] struct {
	at  map[P]queues.ID
	by  map[queues.ID]map[P]struct{}
	due map[P]struct{} // the queue has more room since
}

// NewBlockedHolders returns no pods.
func NewBlockedHolders[P comparable]() BlockedHolders[P] {
	return BlockedHolders[P]{at: map[P]queues.ID{}, by: map[queues.ID]map[P]struct{}{}, due: map[P]struct{}{}}
}

// Set sets the verdict of the quotas on a pod.
func (x *BlockedHolders[P]) Set(p P, v queues.Verdict) {
	x.Remove(p)
	if v.OK() {
		return
	}
	if x.by[v.At] == nil {
		x.by[v.At] = map[P]struct{}{}
	}
	x.at[p], x.by[v.At][p] = v.At, struct{}{}
}

// Remove forgets a pod.
func (x *BlockedHolders[P]) Remove(p P) {
	at, refused := x.at[p]
	if !refused {
		return
	}
	delete(x.at, p)
	delete(x.due, p)
	delete(x.by[at], p)
	if len(x.by[at]) == 0 {
		delete(x.by, at)
	}
}

// Has tells whether a queue refused a pod.
func (x *BlockedHolders[P]) Has(at queues.ID) bool { return len(x.by[at]) > 0 }

// MoreRoom notes that a queue has more room.
func (x *BlockedHolders[P]) MoreRoom(at queues.ID) { maps.Copy(x.due, x.by[at]) }

// All iterates over the pods, in no particular order.
func (x *BlockedHolders[P]) All() iter.Seq[P] { return maps.Keys(x.at) }

// Take returns the pods whose queue got more room since the last call; order is a strict
// total order.
func (x *BlockedHolders[P]) Take(order func(a, b P) int) []P {
	if len(x.due) == 0 {
		return nil
	}
	out := slices.SortedFunc(maps.Keys(x.due), order)
	clear(x.due)
	return out
}

// Check verifies that the pods are listed both ways.
func (x *BlockedHolders[P]) Check() error {
	listed := 0
	for _, pods := range x.by {
		listed += len(pods)
	}
	for p, at := range x.at {
		if _, ok := x.by[at][p]; ok {
			listed--
		}
	}
	if listed != 0 {
		return fmt.Errorf("refused holders: %d more are listed by queue", listed)
	}
	for p := range x.due {
		if _, ok := x.at[p]; !ok {
			return errors.New("refused holders: one is due that no quota refuses")
		}
	}
	return nil
}
