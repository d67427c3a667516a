// Package state has the states of a pod in the store, and the table of the transitions
// between them.
package state

import (
	"fmt"

	"github.com/paddock-scheduler/paddock/pkg/internal/transitions"
)

// State is the state of a pod.
type State uint8

// The states, in the order of a pod's way to its node.
const (
	// NoQueue: no queue takes the pod, it has scheduling gates, or the store has not started.
	NoQueue State = iota
	// Queued: the gate of the pod is closed. It is in the order, unless a quota blocks its group
	// of equal pods or its equivalence class found no node.
	Queued
	// GroupBlocked: the pod is out of the order because its PodGroup cannot start.
	GroupBlocked
	// Admitted: the pod has a slot of the window and may pass the gate.
	Admitted
	// Scheduling: the pod passed the gate and has its slot until its cycle ends.
	Scheduling
	// Unschedulable: a cycle failed, or a node is held for the pod. An event brings it back.
	Unschedulable
	// BackingOff: the pod comes back by itself at a time.
	BackingOff
	// Assumed: the pod is charged as allocated on a node, and its bind is not seen yet.
	Assumed
	// Bound: the pod is on a node.
	Bound

	// Count is the number of states.
	Count
)

var names = [Count]string{"NoQueue", "Queued", "GroupBlocked", "Admitted", "Scheduling", "Unschedulable", "BackingOff", "Assumed", "Bound"}

func (s State) String() string { return names[s] }

// HasSlot tells whether the pod has a slot of the window.
func (s State) HasSlot() bool { return s == Admitted || s == Scheduling }

// HasNode tells whether the pod is charged as allocated.
func (s State) HasNode() bool { return s == Assumed || s == Bound }

// WaitsForNode tells whether the pod is out of the order because no node took it, or a
// node is held for it. It comes back by an event or at a time.
func (s State) WaitsForNode() bool { return s == Unschedulable || s == BackingOff }

// table has every transition. A new pod is in NoQueue; one of no queue begins in
// Unschedulable. A pod that ends leaves from any state.
var table = transitions.Table[State]{
	{From: []State{NoQueue}, To: Queued, When: "a queue takes it"},
	{From: []State{Queued}, To: GroupBlocked, When: "it is first in the order, and its PodGroup cannot start"},
	{From: []State{GroupBlocked}, To: Queued, When: "its PodGroup may start"},
	{From: []State{Queued}, To: Admitted, When: "it is first in the order, a slot is free and every quota allows it"},
	{From: []State{Queued, Unschedulable, BackingOff}, To: Admitted, When: "a plan may be made for it, or it is tried again on the node that it holds"},
	{From: []State{Admitted}, To: Scheduling, When: "Gate"},
	{From: []State{Admitted, Scheduling}, To: Queued, When: "a quota refused it, others go first, or its PodGroup cannot start any more"},
	{From: []State{Queued, GroupBlocked, Admitted, Scheduling, BackingOff}, To: Unschedulable, When: "a cycle found no node or ended with an error, its lease ended, or a node is held for it"},
	{From: []State{Unschedulable}, To: Queued, When: "Gate, or its PodGroup or another pod makes it try again"},
	{From: []State{Unschedulable}, To: BackingOff, When: "it comes back at a time"},
	{From: []State{BackingOff}, To: Queued, When: "its back-off ended, or no other pod can go on"},
	{From: []State{Queued, GroupBlocked, Admitted, Scheduling, Unschedulable, BackingOff}, To: Assumed, When: "Assume"},
	{From: []State{Assumed}, To: Unschedulable, When: "Forget"},
	{From: []State{NoQueue, Queued, GroupBlocked, Admitted, Scheduling, Unschedulable, BackingOff, Assumed}, To: Bound, When: "the API server has it on a node"},
	{From: []State{Queued, GroupBlocked, Admitted, Scheduling, Unschedulable, BackingOff}, To: NoQueue, When: "it changed, or the configuration did, and it is placed again"},
}

// allowed is the table by states.
var allowed = func() (is [Count][Count]bool) {
	for from := range Count {
		for to := range Count {
			is[from][to] = table.Allows(from, to)
		}
	}
	return is
}()

// Transitions watches that pods change their state only as the table says. The zero value
// is ready.
type Transitions struct {
	wrong int
	first string // the first wrong transition
}

// Note notes a transition of a pod. A pod may stay in its state. A transition that is not
// in the table is counted and takes place: the accounts around it are updated already, and
// a pod whose state differs from them would be charged wrongly for ever.
func (t *Transitions) Note(from, to State) {
	if allowed[from][to] {
		return
	}
	if t.wrong++; t.wrong == 1 {
		t.first = fmt.Sprintf("%s to %s", from, to)
	}
}

// Check returns an error if a transition was not in the table.
func (t *Transitions) Check() error {
	if t.wrong > 0 {
		return fmt.Errorf("states: %d transitions are not in the table; the first one is %s", t.wrong, t.first)
	}
	return nil
}
