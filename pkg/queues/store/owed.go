package store

import (
	"fmt"
	"math"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// The scheduler waits for the verdicts of a cycle, and charging a pod is ten times the
// work of a verdict: its queue, all queues above, its place in three orders and its
// node change, and nothing of that is in a cache of the processor. So for most pods it
// is done by who takes the lock next for anything but a verdict, mostly the goroutine
// that takes activations. What they see is the same as if it had been done at once.
//
// The verdict needs no books either, for most pods: when a pod is let through, what is
// allocated and admitted is within all quotas with the pod. Pods that go from admitted to
// allocated, pods that go, and pods that are let through by such a verdict leave that
// so. What else grows is counted, and after that the books are looked at again.

// owed is a pod that was told that it may run on a node, and is not charged for it yet.
type owed struct {
	p    *pod
	node string
	now  time.Time
}

// clearance counts what may be in the way of pods that were let through: growth that
// no verdict on what is committed allowed, and changes of the tree.
func (s *Store) clearance() uint64 { return s.unjudged + s.draft.TreeGeneration() }

// isClear tells whether an admitted pod may run on any node, whatever it is charged with,
// as far as that can be told by the pod alone.
func (s *Store) isClear(p *pod) bool {
	return p != nil && p.state == admitted && !p.owes && p.cleared == s.clearance() && p.hopes == s.probing.hopes &&
		p.RequiredNode == "" && p.twins == nil && p.mates == nil && p.gang == nil && !p.asks.holds
}

// owe notes that an admitted pod goes to a node.
func (s *Store) owe(p *pod, node string, now time.Time) {
	p.owes = true
	s.owed = append(s.owed, owed{p, node, now})
	s.unshown.Store(true)
}

// lock takes the lock, and charges who is to be charged.
func (s *Store) lock() {
	s.lockOwing()
	s.pay(all)
}

// lockOwing takes the lock for who looks at nothing that may be owed.
func (s *Store) lockOwing() { s.mu.Lock() }

const (
	// bite is how many pods are charged while a verdict may have to wait.
	bite = 4
	all  = math.MaxInt
)

// payInBites charges who is to be charged, and lets others have the lock in between.
func (s *Store) payInBites() {
	for more := true; more; {
		s.lockOwing()
		s.pay(bite)
		more = len(s.owed) > 0
		s.mu.Unlock()
	}
}

// pay charges at most n, the first of those that are to be charged, each as of the
// moment when it was told that it may run.
func (s *Store) pay(n int) {
	n = min(n, len(s.owed))
	if n == 0 {
		return
	}
	for _, o := range s.owed[:n] {
		o.p.owes = false
		s.assume(o.p, o.node, o.now)
		s.rouse(o.now)
		s.unfilled, s.unfilledAt = true, o.now
		s.endChange(o.now)
	}
	rest := copy(s.owed, s.owed[n:])
	clear(s.owed[rest:])
	s.owed = s.owed[:rest]
}

// checkOwed verifies that nobody is owed, for who checks has the lock, and that pods
// that need no verdict would get one.
func (s *Store) checkOwed() []error {
	if len(s.owed) > 0 {
		return []error{fmt.Errorf("%d pods are not charged", len(s.owed))}
	}
	for _, p := range s.pods {
		if p.owes {
			return []error{fmt.Errorf("pod %s/%s is to be charged, and not listed", p.Namespace, p.Name)}
		}
		if !s.isClear(p) {
			continue
		}
		if v := s.judge(p.app, p.Request, queues.OnAllocated); !v.OK() {
			return []error{fmt.Errorf("pod %s/%s: taken as granted: %s", p.Namespace, p.Name, v.Reason)}
		}
	}
	return nil
}
