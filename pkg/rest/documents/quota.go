package documents

import (
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// QueueQuota is what one queue of a pod's path says of it.
type QueueQuota struct {
	Queue      string                      `json:"queue"`
	Guaranteed map[string]resources.Amount `json:"guaranteed,omitempty"`
	Max        map[string]resources.Amount `json:"max,omitempty"`
	// Allocated is used; Leaving is the part of it that is about to go, Arriving what
	// askers that hold a node will use, Admitted what was let through and has no node
	// yet, Pending all that waits.
	Allocated map[string]resources.Amount `json:"allocated,omitempty"`
	Leaving   map[string]resources.Amount `json:"leaving,omitempty"`
	Arriving  map[string]resources.Amount `json:"arriving,omitempty"`
	Admitted  map[string]resources.Amount `json:"admitted,omitempty"`
	Pending   map[string]resources.Amount `json:"pending,omitempty"`
	// Headroom is max - allocated of the queue alone, in the types that have a max.
	Headroom            map[string]resources.Amount `json:"headroom,omitempty"`
	RunningApplications int                         `json:"runningApplications"`
	MaxApplications     uint64                      `json:"maxApplications,omitempty"`
	// UnderGuarantee are the types that the pod requests and of which the queue
	// uses less than it is guaranteed: what law 4 goes by.
	UnderGuarantee []string `json:"underGuarantee,omitempty"`
	// Refuses is why its max refuses the pod as things are; nil if it does not.
	Refuses *Reason `json:"refuses,omitempty"`
}

// quotaOf are the queues from root to a leaf, in a tree that may have queues that are not
// there yet; judged tells whether the request is still to be admitted, on a basis.
func quotaOf(v queues.View, s *queues.Snapshot, leaf queues.ID, request resources.Vector, on queues.Basis, judged bool) []QueueQuota {
	var out []QueueQuota
	for q := v.Queue(leaf); q != nil; q = v.Queue(q.Parent) {
		out = append(out, queueQuota(s, q, request, on, judged))
	}
	slices.Reverse(out)
	return out
}

func queueQuota(s *queues.Snapshot, q *queues.Queue, request resources.Vector, on queues.Basis, judged bool) QueueQuota {
	most := s.ShownMax(q)
	out := QueueQuota{
		Queue: q.Path, Guaranteed: q.Guaranteed.Map(), Max: most.Map(),
		Allocated: q.Allocated.Map(), Leaving: q.Leaving.Map(), Arriving: q.Arriving.Map(),
		Admitted: q.Admitted.Map(), Pending: q.Pending.Map(), Headroom: most.Headroom(q.Allocated).Map(),
		RunningApplications: max(q.Running, 0), MaxApplications: q.MaxApplications,
	}
	if !judged || q.IsRoot() {
		return out
	}
	has := q.Has()
	for name, least := range q.Guaranteed.All() {
		if request.Get(name) > 0 && has.Get(name) < least {
			out.UnderGuarantee = append(out.UnderGuarantee, name)
		}
	}
	if why := queues.AdmitAt(q, request, on); !why.None() {
		out.Refuses = &Reason{Code: string(why.Code), Message: why.Text}
	}
	return out
}
