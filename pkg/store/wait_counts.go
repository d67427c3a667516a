package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// waitCounts counts the pending pods of queues, so that a count does not have to visit all
// pods. It is updated when a pod changes its state, or is given or refused a queue.
type waitCounts struct {
	total    [state.Count]int     // by state; without pods that have a node
	unplaced map[reasons.Code]int // pods without a queue, by reason
	leaves   map[queues.ID]*standing
}

// standing has the states of the pods of a leaf that may preempt: not those of
// DaemonSets, nor those that never preempt.
type standing struct {
	in [state.Count]int // by state
	// said is the result of the latest plan, or why none was made.
	said said
}

// tallied is the contribution of one pod to the counts.
type tallied struct {
	state    state.State
	code     reasons.Code // reason of a pod without a queue
	standing *standing    // nil if it does not count there
	in       bool
}

func newWaitCounts() waitCounts {
	return waitCounts{unplaced: map[reasons.Code]int{}, leaves: map[queues.ID]*standing{}}
}

// of returns the standing of a leaf that has applications or is about to have some.
func (c *waitCounts) of(leaf queues.ID) *standing {
	if c.leaves[leaf] == nil {
		c.leaves[leaf] = &standing{}
	}
	return c.leaves[leaf]
}

// tally updates the contribution of a pod.
func (s *Store) tally(p *pod) {
	now := tallyOf(p)
	if now == p.tallied {
		return
	}
	s.waitCounts.untally(p)
	p.tallied = now
	s.waitCounts.add(now, 1)
}

// tallyOf returns the contribution that a pod should have.
func tallyOf(p *pod) tallied {
	if p.Foreign || p.state.HasNode() {
		return tallied{}
	}
	t := tallied{state: p.state, in: true}
	switch {
	case p.state == state.NoQueue:
		t.code = p.reason.Code
	case p.app != nil && !p.NeverPreempts && p.RequiredNode == "":
		t.standing = p.app.standing
	}
	return t
}

// untally removes the contribution of a pod.
func (c *waitCounts) untally(p *pod) {
	if p.tallied.in {
		c.add(p.tallied, -1)
		p.tallied = tallied{}
	}
}

func (c *waitCounts) add(t tallied, n int) {
	if !t.in {
		return
	}
	c.total[t.state] += n
	if t.standing != nil {
		t.standing.in[t.state] += n
	}
	if t.state != state.NoQueue {
		return
	}
	if c.unplaced[t.code] += n; c.unplaced[t.code] == 0 {
		delete(c.unplaced, t.code)
	}
}

// Gated counts the pods of queues that are kept out of the scheduler's queue, by reason.
// Pods that back off are one number, whether they hold a node or not. The cost does not
// grow with the cluster.
func (s *Store) Gated() map[reasons.Code]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[reasons.Code]int{}
	add := func(code reasons.Code, n int) {
		if n > 0 {
			out[code] += n
		}
	}
	for code, n := range s.waitCounts.unplaced {
		if code == "" { // before Start
			code = s.notStarted().Code
		}
		add(code, n)
	}
	byClass := s.waitCounts.total[state.Queued] - s.index.Eligible()
	for code, n := range s.index.Refused() {
		add(code, n)
		byClass -= n
	}
	for g := range s.groups.All() {
		add(g.Code(), g.Blocked())
	}
	add(reasons.NoNodeFits, byClass)
	add(reasons.InOrder, s.index.Eligible())
	add(reasons.BackingOff, s.waitCounts.total[state.BackingOff])
	return out
}

// checkWaitCounts verifies the counts against all pods.
func (s *Store) checkWaitCounts() []error {
	want := newWaitCounts()
	var errs []error
	for _, p := range s.pods {
		t := tallyOf(p)
		if p.tallied != t {
			errs = append(errs, fmt.Errorf("pod %s/%s: counted as %+v, is %+v", p.Namespace, p.Name, p.tallied, t))
		}
		if t.standing != nil {
			t.standing = want.of(p.app.Leaf)
		}
		want.add(t, 1)
	}
	if want.total != s.waitCounts.total || !maps.Equal(want.unplaced, s.waitCounts.unplaced) {
		errs = append(errs, fmt.Errorf("census: counted %v and %v, found %v and %v", s.waitCounts.total, s.waitCounts.unplaced, want.total, want.unplaced))
	}
	leaves := s.apps.Leaves()
	for leaf, st := range s.waitCounts.leaves {
		if st.in != want.of(leaf).in {
			errs = append(errs, fmt.Errorf("census of queue %d: counted %v, found %v", leaf, st.in, want.of(leaf).in))
		}
		if !slices.Contains(leaves, leaf) {
			errs = append(errs, fmt.Errorf("census of queue %d, which has no applications", leaf))
		}
	}
	if len(want.leaves) > len(s.waitCounts.leaves) {
		errs = append(errs, errors.New("census: a queue is missing"))
	}
	return errs
}
