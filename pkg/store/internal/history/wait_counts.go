package history

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// Tally is what one pod adds to the counts of waiting pods. The zero Tally adds nothing.
type Tally struct {
	In    bool // otherwise the other fields are zero
	State state.State
	Code  reasons.Code // the reason of a pod without a queue
	// Leaf is the queue of a pod that may preempt: not of a node-bound pod, nor of one that never
	// preempts. It is queues.NoQueue for all others.
	Leaf queues.ID
}

// WaitCounts counts the pods of queues that have no node, so that a count does not have to
// visit all pods. Make one with NewWaitCounts.
type WaitCounts struct {
	total    [state.Count]int     // by state
	unplaced map[reasons.Code]int // pods without a queue, by reason
	leaves   map[queues.ID]*LeafCounts
}

// LeafCounts has the states of the pods of a leaf that may preempt.
type LeafCounts struct {
	In [state.Count]int
	// Refused is the result of the latest plan for a pod of the leaf, or why none was made.
	// It is out of date after Until.
	Refused reasons.Code
	Until   time.Time
}

// NewWaitCounts returns counts of no pods.
func NewWaitCounts() WaitCounts {
	return WaitCounts{unplaced: map[reasons.Code]int{}, leaves: map[queues.ID]*LeafCounts{}}
}

// leaf returns the counts of a leaf, to be changed.
func (c *WaitCounts) leaf(id queues.ID) *LeafCounts {
	if c.leaves[id] == nil {
		c.leaves[id] = &LeafCounts{}
	}
	return c.leaves[id]
}

// Close ends the counts of a leaf with its last application.
func (c *WaitCounts) Close(leaf queues.ID) { delete(c.leaves, leaf) }

// Update replaces what a pod adds.
func (c *WaitCounts) Update(t *Tally, now Tally) {
	if *t == now {
		return
	}
	c.add(*t, -1)
	*t = now
	c.add(now, 1)
}

// add adds a pod n times; -1 takes it out.
func (c *WaitCounts) add(t Tally, n int) {
	if !t.In {
		return
	}
	c.total[t.State] += n
	if t.Leaf != queues.NoQueue {
		c.leaf(t.Leaf).In[t.State] += n
	}
	if t.State != state.NoQueue {
		return
	}
	if c.unplaced[t.Code] += n; c.unplaced[t.Code] == 0 {
		delete(c.unplaced, t.Code)
	}
}

// Refuse sets the result of the latest plan for a pod of a leaf, and until when it holds.
func (c *WaitCounts) Refuse(leaf queues.ID, code reasons.Code, until time.Time) {
	x := c.leaf(leaf)
	x.Refused, x.Until = code, until
}

// Total is the number of pods in a state.
func (c *WaitCounts) Total(s state.State) int { return c.total[s] }

// Unplaced yields the numbers of pods without a queue by reason.
func (c *WaitCounts) Unplaced() iter.Seq2[reasons.Code, int] { return maps.All(c.unplaced) }

// Of returns the counts of a leaf.
func (c *WaitCounts) Of(leaf queues.ID) LeafCounts { return ptr.Deref(c.leaves[leaf], LeafCounts{}) }

// Check verifies the counts against what all pods add. leaves are those with applications.
func (c *WaitCounts) Check(pods iter.Seq[Tally], leaves []queues.ID) error {
	want := NewWaitCounts()
	for t := range pods {
		want.add(t, 1)
	}
	if want.total != c.total || !maps.Equal(want.unplaced, c.unplaced) {
		return fmt.Errorf("%v and %v are counted, there are %v and %v", c.total, c.unplaced, want.total, want.unplaced)
	}
	for _, leaf := range append(leaves, slices.Sorted(maps.Keys(c.leaves))...) {
		if got, w := c.Of(leaf), want.Of(leaf); w.In != got.In || !slices.Contains(leaves, leaf) {
			return fmt.Errorf("queue %d: %v are counted, there are %v", leaf, got.In, w.In)
		}
	}
	return nil
}
