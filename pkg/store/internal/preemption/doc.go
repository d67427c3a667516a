// Package preemption has the state that decides for which pods room is made, and when.
//
// It is a component of package store: it has no lock, goroutine or clock, and a pod is
// known here by its UID. The store calls it under its lock and does what it returns.
//
//	Asker      the record of a pod that may have room made for it
//	Queue      when stuck pods get a plan
//	Limiter    how often plans are made, and how many pods they disrupt
//	Losses     holds that a preemptor lost, and the pause after them
//	Refusals   pods that a kubelet may have refused although room was made for them
//	Watches    the queues and nodes that a refusal named
//	Snapshot   the nodes as plans see them
//	Sweep      the nodes that the filters refused in earlier plans
//	Holds      the nodes that are held for preemptors
//	NodeBound  pods that can run on one node only: those that were not tried there, and
//	           those that wait for a change of it
package preemption

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Latest returns the later of two times.
func Latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Preemption has all state of the component. Each part has its own Check.
type Preemption struct {
	Options
	Limiter   Limiter
	Watches   Watches
	Snapshot  Snapshot
	NodeBound *NodeBound
	Refusals  Refusals
	Holds     *Holds
	// InPermit has the pods that wait in a Permit plugin and may be victims of the last
	// preemptor that was planned for.
	InPermit map[types.UID]bool
}

// New returns the component with default options and without pods.
func New() *Preemption {
	return &Preemption{Options: DefaultOptions(), Limiter: NewLimiter(PerNode, Turns), Watches: NewWatches(), NodeBound: NewNodeBound(), Holds: newHolds()}
}

// Check verifies all parts.
func (p *Preemption) Check() error {
	return errors.Join(p.Limiter.Check(), p.Watches.Check(), p.Snapshot.Check(), p.NodeBound.Check(), p.Refusals.Check(), p.Holds.Check())
}
