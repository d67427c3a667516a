package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// Readers tells what is in a store and why. No method changes what the store decides.
type Readers struct{ *core }

// Spec returns the current configuration.
func (s *Readers) Spec() *config.Spec {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Cache.Spec
}

// Gathered tells whether minMember members of a pod's PodGroup have a place. It is false
// for a pod that is not known or has no PodGroup.
func (s *Readers) Gathered(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.model.Pods[uid]
	return p != nil && p.PodGroup != nil && p.PodGroup.Complete()
}

// Key returns the sort key of an admitted pod, and false for every other pod.
// It takes no lock.
func (s *Readers) Key(uid types.UID) (Key, bool) { return s.model.Pending.Keys.Get(uid) }

// Key is the sort key of an admitted pod in the scheduler's queue.
type Key = pending.Key

// AnyNodeBound tells whether pods go first on any node. It takes no lock.
func (s *Readers) AnyNodeBound() bool { return s.model.Preemption.NodeBound.Any() }

// NodeBound returns the node-bound pods that wait for this node; nil for none. It takes no lock.
func (s *Readers) NodeBound(node string) *NodeBoundOn { return s.model.Preemption.NodeBound.On(node) }

// NodeBoundOn has the node-bound pods that wait for one node.
type NodeBoundOn = preemption.NodeBoundOn

// NodeBoundPod is one of them.
type NodeBoundPod = preemption.NodeBoundPod

// Preemption returns the options in force.
func (s *Readers) Preemption() PreemptionOptions {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Preemption.Options
}

// KeepsOff returns the asker for which other schedulers must be kept off a node: its
// first holder with chosen victims; empty for none. ready is false while this process
// does not lead and so does not know the holds.
func (s *Readers) KeepsOff(node string) (asker types.UID, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.model.Started || s.model.Standby {
		return "", false
	}
	for _, h := range s.model.Preemption.Ledger.On(node) {
		if len(h.Chosen) > 0 {
			return h.Asker, true
		}
	}
	return "", true
}

// Holds returns the holds by node. It takes no lock.
func (s *Readers) Holds() *reservations.View { return s.model.Preemption.Ledger.View() }

// Snapshot returns the state after the last completed event. It takes the lock only if
// the queues changed since the last call.
func (s *Readers) Snapshot() *queues.Snapshot {
	if snapshot, current := s.model.Cache.Published(); current {
		return snapshot
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Cache.Snapshot()
}

// Ready tells whether Start was called. It takes no lock.
func (s *Readers) Ready() bool { return s.ready.Load() }

// Returning tells whether pods came back by [Store.Gate] since the last TakeActivations.
// More may follow: one event, such as the end of a pod, makes the scheduler's queue move
// many pods, in no particular order.
func (s *Readers) Returning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Pending.Returning()
}

// NextDeadline returns when Tick next has work, and false if it has none.
func (s *Readers) NextDeadline() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.Out.LastDeadline = s.next()
	return s.model.Out.LastDeadline, !s.model.Out.LastDeadline.IsZero()
}

// OwnersUse returns the usage of users and groups, and the number of all users and groups
// with usage. It holds the lock during the lookups, so pass at most a few hundred.
func (s *Readers) OwnersUse(of []queues.Charged) (usage []queues.OwnerUsage, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Cache.Books.OwnersUse(of)
}
