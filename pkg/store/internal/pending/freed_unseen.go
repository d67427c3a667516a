package pending

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// FreedUnseen has pods that freed room on a node without an event in the scheduling queue for
// the end of a pod there. The scheduler's cache frees the room, but nothing brings back
// the pods that wait for it until the queue flushes unschedulable pods after five
// minutes. So the store brings them back. There are five kinds:
//
//   - A pod was bound and ended while the watch was interrupted. The informer reports its
//     end with the last state it had seen, without a node. NodeResourcesFit ignores that
//     event, because a pod without a node frees no room.
//   - A pod was assigned a node, but it runs on another one: another scheduler bound it,
//     or an earlier bind succeeded and its answer was lost. The scheduling queue gets
//     only the event that a pod came to the other node.
//   - A pod runs on its assigned node but requests less than when it was assigned: it
//     changed while the watch was interrupted, or during its cycle, which goes on with
//     the older request. The scheduling queue gets only the event that a pod came.
//   - A pod held a node, was nominated there, and does not run there. The filters count a
//     nominated pod as running. If the nomination was not written yet, or the write
//     failed, then the next cycle of the pod ends the nomination without any event.
//   - A pod of another profile was nominated to a node by upstream's preemption, and was
//     bound to another one (kubernetes/kubernetes#134859).
//
// The states of such a pod:
//
//	        Add                  Tick, at most once a second
//	gone ──────────► untold ──────────────────────────────────────► told
//	                                                                  │
//	  a cycle that found no node knew that it is gone (Vanished),     │
//	  or the scheduler's queue has been flushed since                 │
//	over ◄────────────────────────────────────────────────────────────┘
//
// A pod that is brought back may be tried before the scheduler's cache is updated,
// because the cache has a separate listener. If such a cycle still finds the pod on
// its node, the tried pod comes back by itself (Store.ComeBack).
type FreedUnseen struct {
	pods []FreedPod // in the order of Add
	// toTell is true while waiting pods must be brought back; told is when that was last
	// done.
	toTell bool
	told   time.Time
}

// FreedPod is a pod that no longer uses a node as before, without an event for that in the
// scheduling queue.
type FreedPod struct {
	UID types.UID
	// Node is where the store had the pod; empty if the store had it on no node, although
	// the scheduler may have chosen one.
	Node string
	// Nominated is true for a pod that was not on the node, but may have been nominated
	// there and counted as running.
	Nominated bool
	// Request is what it used there; zero if Node is empty or the pod was only nominated.
	// If the pod is still there with another request, the scheduler knows the current
	// one.
	Request resources.Vector
	// When is the time at which the store learned it.
	When time.Time
}

// keptFor is after how long such a pod is forgotten: by then the scheduler's queue has
// flushed and retried all unschedulable pods.
const keptFor = 5 * time.Minute

// tellEvery is the shortest time between two times that waiting pods are brought back.
const tellEvery = time.Second

// Add notes that a pod no longer uses a node as before.
func (l *FreedUnseen) Add(p FreedPod) {
	l.forget(p.When)
	l.pods = append(l.pods, p)
	l.toTell = true
}

// forget forgets the pods that were added long ago.
func (l *FreedUnseen) forget(now time.Time) {
	for len(l.pods) > 0 && !now.Before(l.pods[0].When.Add(keptFor)) {
		l.pods = l.pods[1:]
	}
}

// Pods returns the pods that a cycle which found no node must check for, oldest first;
// nearly always empty.
func (l *FreedUnseen) Pods(now time.Time) []FreedPod {
	l.forget(now)
	return slices.Clone(l.pods)
}

// Vanished forgets pods that a cycle saw as gone.
func (l *FreedUnseen) Vanished(seen []FreedPod) {
	l.pods = slices.DeleteFunc(l.pods, func(p FreedPod) bool {
		return slices.ContainsFunc(seen, func(v FreedPod) bool { return v.UID == p.UID && v.Node == p.Node && v.When.Equal(p.When) })
	})
}

// Due is when the pods that wait for room are brought back; zero for never.
func (l *FreedUnseen) Due() time.Time {
	if !l.toTell {
		return time.Time{}
	}
	return l.told.Add(tellEvery)
}

// Tick tells whether the pods that wait for room must be brought back now. It is true once
// for all pods that were added in the last second, because that visits all pods.
func (l *FreedUnseen) Tick(now time.Time) bool {
	if due := l.Due(); due.IsZero() || due.After(now) {
		return false
	}
	l.toTell, l.told = false, now
	return true
}
