package queues

import (
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// ID identifies a queue within one tree. It stays the same for the life of the
// queue and may be given to another queue after the queue is gone.
type ID int32

// NoQueue is the ID of no queue, such as the root's parent.
const NoQueue ID = -1

// RootID is the ID of the root, which always exists.
const RootID ID = 0

// State tells whether a queue takes new applications.
type State uint8

// A queue is Active, or Draining once it vanished from the configuration: what
// runs and waits in it goes on, nothing new is taken, and it is removed when
// it is empty.
const (
	Active State = iota
	Draining
)

// String renders the state as REST shows it.
func (s State) String() string {
	if s == Draining {
		return "Draining"
	}
	return "Active"
}

// Settings is what a queue was told to be. Immutable; shared by all snapshots
// between two configuration changes.
type Settings struct {
	// Settings are those of the configuration, or those that a dynamic queue has from a
	// template or a namespace. A queue that changed from leaf to parent or back may hold
	// both children and applications until the old ones are gone.
	config.Settings
	// Parent is NoQueue for the root.
	Parent ID
	// Managed is true for queues of the configuration, false for dynamic ones.
	Managed bool
	State   State
	// PathMax is the strictest max of the queue and all its ancestors.
	PathMax resources.Limit
	// PathLimited is true when the queue or an ancestor has user or group limits.
	PathLimited bool
	// QuotaNamespace is the namespace with the annotations that set the quota of a
	// dynamic leaf; empty when none did.
	QuotaNamespace string
	// MadeFor is the namespace of the pod for which a dynamic queue was made, or the one
	// with the name of the leaf once a pod of it came there.
	MadeFor string
}

// Usage is what goes on in a queue and below it.
type Usage struct {
	// Allocated is used by pods with a node, assumed or bound.
	Allocated resources.Vector
	// Leaving is the part of Allocated of pods that are about to go: deleted and not gone
	// yet, or chosen as victims. Arriving is requested by askers that have a hold or a
	// plan in flight and no node yet.
	Leaving, Arriving resources.Vector
	// Preempted is the part of Leaving of pods that a plan chose.
	Preempted resources.Vector
	// Admitted is requested by asks that were let through the gate and have no node yet.
	Admitted resources.Vector
	// Pending is requested by all asks, admitted or not.
	Pending resources.Vector
	// Applications counts applications with any pod; Running those of them that
	// count against maxapplications.
	Applications, Running int
}

// Add returns the sum of two usages.
func (u Usage) Add(w Usage) Usage { return u.combine(w, resources.Vector.Add, 1) }

// Sub returns u-w.
func (u Usage) Sub(w Usage) Usage { return u.combine(w, resources.Vector.Sub, -1) }

func (u Usage) combine(w Usage, amounts func(a, b resources.Vector) resources.Vector, sign int) Usage {
	return Usage{
		Allocated: amounts(u.Allocated, w.Allocated), Leaving: amounts(u.Leaving, w.Leaving), Arriving: amounts(u.Arriving, w.Arriving),
		Preempted: amounts(u.Preempted, w.Preempted), Admitted: amounts(u.Admitted, w.Admitted), Pending: amounts(u.Pending, w.Pending),
		Applications: u.Applications + sign*w.Applications, Running: u.Running + sign*w.Running,
	}
}

// Equal tells whether both are the same.
func (u Usage) Equal(w Usage) bool {
	return u.Allocated.Equal(w.Allocated) && u.Admitted.Equal(w.Admitted) && u.Pending.Equal(w.Pending) &&
		u.Leaving.Equal(w.Leaving) && u.Arriving.Equal(w.Arriving) && u.Preempted.Equal(w.Preempted) &&
		u.Applications == w.Applications && u.Running == w.Running
}

// Queue is one queue at one moment. Immutable once its snapshot is published.
type Queue struct {
	ID ID
	*Settings
	Usage
	// Children are sorted by name.
	Children []ID

	epoch uint64 // of the draft that made this copy
}

// Committed is what is used or about to be: allocated, admitted and arriving. An
// asker with a hold is arriving, not admitted.
func (q *Queue) Committed() resources.Vector { return q.Allocated.Add(q.Admitted).Add(q.Arriving) }

// CommittedKept is the part of Committed that no plan takes.
func (q *Queue) CommittedKept() resources.Vector { return q.Committed().Sub(q.Preempted) }

// Kept is the part of Allocated that no plan takes. Pods that leave by their owner's hand
// are in it until they are gone.
func (q *Queue) Kept() resources.Vector { return q.Allocated.Sub(q.Preempted) }

// Has is what counts where the queue asks: what it keeps, with what is arriving (law 4,
// and law 2 on the asker's side).
func (q *Queue) Has() resources.Vector { return q.Kept().Add(q.Arriving) }

// Expected is what is used and stays, with what is arriving (laws 2 and 7).
func (q *Queue) Expected() resources.Vector { return q.Used().Add(q.Arriving) }

// Used is what is allocated and stays: allocated without what is leaving.
func (q *Queue) Used() resources.Vector { return q.Allocated.Sub(q.Leaving) }

// IsRoot tells whether the queue is the root.
func (q *Queue) IsRoot() bool { return q.ID == RootID }

// IsFence tells whether the preemption policy of the queue keeps its asks inside. On the
// root it has no effect.
func (q *Queue) IsFence() bool {
	return !q.IsRoot() && q.Policies.Preemption == config.PreemptionFence
}

// Empty tells whether the queue has neither applications nor children.
func (q *Queue) Empty() bool { return q.Applications == 0 && len(q.Children) == 0 }

// findChild returns the child of q with the given name, or where it would be inserted.
func findChild(v View, q *Queue, name string) (at int, found bool) {
	return slices.BinarySearchFunc(q.Children, name, func(id ID, name string) int {
		return strings.Compare(v.Queue(id).Name, name)
	})
}

// PreemptionDisabled reports whether preemption.policy: disabled applies to a leaf. Managed
// queues inherit it through the configuration; a dynamic queue has it from its template or
// from its ancestors.
func PreemptionDisabled(v View, q *Queue) bool {
	for ; q != nil; q = v.Queue(q.Parent) {
		if q.Policies.Preemption == config.PreemptionDisabled {
			return true
		}
		if q.Managed {
			return false
		}
	}
	return false
}
