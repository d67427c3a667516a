package queues

import (
	"fmt"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// View is a tree of queues: a Snapshot or a Draft.
type View interface {
	Queue(id ID) *Queue
}

// Basis is the usage that a verdict is based on: columns of the books, plus the pods of a
// Demand.
type Basis struct {
	columns columns
	extra   *Demand // nil for none
}

// columns are the columns of the books that count. Each includes those before it.
type columns uint8

const (
	allocated columns = iota // pods that have a node
	arriving                 // pods that hold a node and have none yet
	committed                // pods that have a slot and no node yet
)

var (
	// OnAllocated counts pods that have a node. PreFilter and Reserve use it for pods that
	// hold one.
	OnAllocated = Basis{columns: allocated}
	// OnArriving counts pods that have or hold a node. Plans use it, and PreFilter and
	// Reserve use it for a pod that holds no node. It leaves out pods with a
	// slot, because the pod in question is one of them.
	OnArriving = Basis{columns: arriving}
	// OnCommitted also counts pods that have a slot and no node yet. It is asked before a pod
	// gets a slot, so that no more pods have one than can be placed.
	OnCommitted = Basis{columns: committed}
)

// OnDemand counts pods that have or hold a node, plus the demand: what would run on new
// nodes. A pod that is in its cycle is not part of it until the cycle has a result.
func OnDemand(d *Demand) Basis { return OnArriving.With(d) }

// With returns the basis with the pods of a Demand added, such as those that pass the gate
// together.
func (on Basis) With(d *Demand) Basis { return Basis{on.columns, d} }

// used is what a queue uses on this basis.
func (on Basis) used(q *Queue) resources.Vector {
	return on.sum(q.Allocated, q.Arriving, q.Admitted).Add(on.extra.of(q.ID).request)
}

// usedBy is what a user or group uses on this basis.
func (on Basis) usedBy(u OwnerUsage, by Charged) resources.Vector {
	return on.sum(u.Allocated, u.Arriving, u.Admitted).Add(on.extra.ofOwner(by).request)
}

func (on Basis) sum(has, arrives, admitted resources.Vector) resources.Vector {
	switch on.columns {
	case committed:
		return has.Add(admitted).Add(arrives)
	case arriving:
		return has.Add(arrives)
	}
	return has
}

// Verdict is the answer to "may this ask run now".
type Verdict struct {
	// Reason is none when the ask may run.
	Reason reasons.Reason
	// At is the queue that refused; NoQueue if none did. The ask is judged again when
	// that queue has more room.
	At ID
}

// OK tells whether the ask may run.
func (v Verdict) OK() bool { return v.Reason.None() }

// Granted is the verdict of an ask that may run.
var Granted = Verdict{At: NoQueue}

// Admit checks an ask against the max of its leaf and of every ancestor below root, leaf
// first. Root is not checked: the filters decide what nodes can take (docs/laws.md, words).
// A queue over its max in a type refuses only asks that request the type. A leaf that does
// not exist refuses nothing.
func Admit(v View, leaf ID, ask resources.Vector, on Basis) Verdict {
	for q := v.Queue(leaf); q != nil && !q.IsRoot(); q = v.Queue(q.Parent) {
		if why := AdmitAt(q, ask, on); !why.None() {
			return Verdict{At: q.ID, Reason: why}
		}
	}
	return Granted
}

// AdmitAt is Admit for one queue below root. The reason is none if its max allows the ask.
func AdmitAt(q *Queue, ask resources.Vector, on Basis) reasons.Reason {
	if q.Max.IsUnlimited() {
		return reasons.Reason{}
	}
	b, over := q.Max.Breach(on.used(q), ask)
	if !over {
		return reasons.Reason{}
	}
	beside := on.beside(b.Name, q.Admitted, q.Arriving, on.extra.of(q.ID).request)
	return reasons.New(reasons.OverMax, "queue %s: %s used %s%s, requested %s, max %s",
		q.Path, b.Name, resources.Format(b.Name, b.Used), beside,
		resources.Format(b.Name, b.Asked), resources.Format(b.Name, b.Max)).NeverIf(b.Alone())
}

// beside says what of a type counts as used besides the pods that have a node.
func (on Basis) beside(name string, admitted, arriving, extra resources.Vector) string {
	switch {
	case on.columns == committed && admitted.Add(extra).Get(name) > 0:
		return " (with pods about to be placed)"
	case on.columns != committed && extra.Get(name) > 0:
		return " (with pods that wait for a node)"
	case on.columns != allocated && arriving.Get(name) > 0:
		return " (with pods that hold a node)"
	}
	return ""
}

// OverExpected returns the first queue, from a leaf up and below root, in which max has no
// room for a request beside what its pods use once leaving pods are gone and arriving ones
// are placed; nil if all have room. less is what to deduct from that use.
func OverExpected(v View, leaf ID, request resources.Vector, less func(*Queue) resources.Vector) *Queue {
	for q := v.Queue(leaf); q != nil && !q.IsRoot(); q = v.Queue(q.Parent) {
		if !q.Max.Allows(q.Expected().Sub(less(q)), request) {
			return q
		}
	}
	return nil
}

// IsWithin tells whether a queue is another one or below it.
func IsWithin(v View, id, of ID) bool {
	for q := v.Queue(id); q != nil; q = v.Queue(q.Parent) {
		if q.ID == of {
			return true
		}
	}
	return false
}

// AdmitApplication judges whether one more application may start below the
// leaf: maxapplications of the leaf and every ancestor, root included.
func AdmitApplication(v View, leaf ID, on Basis) Verdict {
	for q := v.Queue(leaf); q != nil; q = v.Queue(q.Parent) {
		if running, starts := max(q.Running, 0), on.extra.of(q.ID).starts; full(q.MaxApplications, running+starts) {
			return Verdict{At: q.ID, Reason: reasons.New(reasons.MaxApplications,
				"queue %s: %s, maxapplications %d", q.Path, on.applications(running, starts), q.MaxApplications)}
		}
	}
	return Granted
}

// applications says how many applications count against maxapplications.
func (on Basis) applications(running, starts int) string {
	text := count(running+starts, "application") + " running"
	if starts > 0 && on.columns != committed {
		text += " or waiting for a node"
	}
	return text
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Headroom is what may still be allocated below a queue: the smallest of
// max - allocated over the queue and its ancestors, per type; unlimited types
// are absent, and a negative value means "over its max".
func Headroom(v View, id ID) resources.Limit {
	var room resources.Limit
	for q := v.Queue(id); q != nil && !q.IsRoot(); q = v.Queue(q.Parent) {
		room = room.Min(q.Max.Headroom(q.Allocated))
	}
	return room
}

// MaySubmit tells whether the user or one of the groups is in a submit or
// admin list of the queue or an ancestor.
func MaySubmit(v View, id ID, user string, groups []string) bool {
	for q := v.Queue(id); q != nil; q = v.Queue(q.Parent) {
		if q.SubmitACL.Allows(user, groups) || q.AdminACL.Allows(user, groups) {
			return true
		}
	}
	return false
}
