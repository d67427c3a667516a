// Package state has the states of a pod in the store, and the table of the transitions
// between them.
package state

import "fmt"

// State is the state of a pod.
type State uint8

// The states, in the order of a pod's way to its node.
const (
	// NoQueue: no queue takes the pod.
	NoQueue State = iota
	// Queued: the pod is in the order, and its gate is closed. A quota may block its group
	// of equal pods.
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

// transition is one line of the table.
type transition struct {
	from []State
	to   State
	when string
}

// table has every transition. A new pod is in NoQueue; one of no queue that asks for room
// begins in Unschedulable. A pod that ends leaves from any state.
var table = []transition{
	{[]State{NoQueue}, Queued, "a queue takes it"},
	{[]State{Queued}, GroupBlocked, "it is first in the order, and its PodGroup cannot start"},
	{[]State{GroupBlocked}, Queued, "its PodGroup may start"},
	{[]State{Queued}, Admitted, "it is first in the order, a slot is free and every quota allows it"},
	{[]State{Unschedulable, BackingOff}, Admitted, "a plan may be made for it, or its held node has room"},
	{[]State{Admitted}, Scheduling, "Gate"},
	{[]State{Admitted, Scheduling}, Queued, "a quota refused it, others go first, or its PodGroup cannot start any more"},
	{[]State{Queued, GroupBlocked, Admitted, Scheduling, BackingOff}, Unschedulable, "a cycle found no node or ended with an error, its lease ended, or a node is held for it"},
	{[]State{Unschedulable}, Queued, "Gate, or its PodGroup or another pod makes it try again"},
	{[]State{Unschedulable}, BackingOff, "it comes back at a time"},
	{[]State{BackingOff}, Queued, "its back-off ended, or no other pod can go on"},
	{[]State{Queued, GroupBlocked, Admitted, Scheduling, Unschedulable, BackingOff}, Assumed, "Assume"},
	{[]State{Assumed}, Unschedulable, "Forget"},
	{[]State{NoQueue, Queued, GroupBlocked, Admitted, Scheduling, Unschedulable, BackingOff, Assumed}, Bound, "the API server has it on a node"},
	{[]State{Queued, GroupBlocked, Admitted, Scheduling, Unschedulable, BackingOff}, NoQueue, "it changed, or the configuration did, and it is placed again"},
}

var allowed = func() (is [Count][Count]bool) {
	for _, t := range table {
		for _, from := range t.from {
			is[from][t.to] = true
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
	if from == to || allowed[from][to] {
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
