package reservations

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Hold keeps a node for an asker. A Ledger returns copies.
type Hold struct {
	Asker           types.UID
	Namespace, Name string
	Node            string
	// Group is the PodGroup of the asker, as NAMESPACE/NAME; empty for none. It is not part
	// of the claim.
	Group string
	// Request is what the asker will use on the node.
	Request resources.Vector
	// Priority and Created are those of the asker. They order node-bound holders.
	Priority int32
	Created  time.Time
	// NodeBound is true for a node-bound pod, which can run on this node only.
	NodeBound bool
	// Since is the time at which the hold began. A restart does not change it.
	Since time.Time
	// LatestFrom bounds the time from which the time-out counts; zero for no bound. It is not
	// part of the claim.
	LatestFrom time.Time
	// Awaited are the pods that the asker waits for, sorted: those chosen for it, and others that were
	// already leaving.
	Awaited []types.UID
	// Own are those of its own namespace that it waited for since the hold began, gone or not, sorted;
	// none while its PodGroup has not started. They are not part of the claim: after a restart those
	// that are gone are not known.
	Own []types.UID
	// Chosen are the pods that were chosen as victims for the asker, gone or not, sorted.
	Chosen []types.UID
	// Decision identifies the decision that made the hold. It may be empty.
	Decision string
	// Note says, for people, what a [Hold.Patient] hold waits for; empty for others. It is not part
	// of the claim.
	Note string
	// LastDisruption is the time at which pods were last disrupted for the asker; zero for
	// never. It is set right before.
	LastDisruption time.Time
	// ClearSince is since when no awaited pod is left; zero while any is.
	ClearSince time.Time

	// Only the ledger sets these.
	seq    uint64 // order of Place calls
	placed bool   // the asker has a node
}

// Clear reports whether no awaited pod is left.
func (h *Hold) Clear() bool { return len(h.Awaited) == 0 }

// TimeFrom returns the time from which the time-out of the hold counts. Every hold has
// such a time, because a pod that it waits for may never terminate:
//
//  1. the beginning of the hold, while no pod was chosen or disrupted for it
//  2. otherwise the time since which it is clear, if it is, and victims are decided
//  3. otherwise the time at which pods were last disrupted for it; before the first, the
//     beginning of the hold
//
// It is no later than LatestFrom: pods may be chosen and go again and again.
func (h *Hold) TimeFrom() time.Time {
	from := h.Since
	switch {
	case len(h.Chosen) == 0 && !h.Committed(): // awaited pods left anyway
	case h.Clear() && !h.Patient():
		from = h.ClearSince
	case h.Committed():
		from = h.LastDisruption
	}
	if !h.LatestFrom.IsZero() && h.LatestFrom.Before(from) {
		return h.LatestFrom
	}
	return from
}

// Committed reports whether pods were disrupted for the asker, or may be from now on.
func (h *Hold) Committed() bool { return !h.LastDisruption.IsZero() }

// Patient reports whether the victims of the asker are not decided yet. An empty list of Awaited
// then does not mean that the asker fits.
func (h *Hold) Patient() bool { return h.Note != "" }

// OnlyThisNode reports whether the asker may use this node only, because pods were disrupted
// for it. Before that, the asker may run on any node where it fits.
func (h *Hold) OnlyThisNode() bool { return h.Committed() && len(h.Chosen) > 0 }

// Claim returns the claim that is written on the asker.
func (h *Hold) Claim() Claim {
	c := Claim{Node: h.Node, Since: h.Since, Victims: slices.Clone(h.Chosen), Decision: h.Decision, Note: h.Note}
	if h.Clear() && !h.ClearSince.Equal(h.Since) {
		c.ClearSince = h.ClearSince
	}
	return c
}

func (h *Hold) copy() Hold {
	c := *h
	c.Awaited, c.Own, c.Chosen = slices.Clone(h.Awaited), slices.Clone(h.Own), slices.Clone(h.Chosen)
	return c
}

// compareHolds defines the serving order of the holders of a node:
//
//  1. node-bound holders before ordinary ones
//  2. among node-bound holders: higher priority, then the older asker
//  3. among ordinary holders: the order of Place calls
//  4. UID
func compareHolds(a, b *Hold) int {
	if a.NodeBound != b.NodeBound {
		if a.NodeBound {
			return -1
		}
		return 1
	}
	if a.NodeBound {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created), cmp.Compare(a.Asker, b.Asker))
	}
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.Asker, b.Asker))
}

// Before reports whether this hold is served before another hold of the same node, which
// need not exist.
func (h *Hold) Before(other *Hold) bool { return compareHolds(h, other) < 0 }

// End is the reason for which a hold ended.
type End string

// The reasons for the end of a hold (docs/laws.md, holds).
const (
	Bound             End = "bound"
	Deleted           End = "deleted"
	Superseded        End = "superseded"
	NodeGone          End = "node gone"
	NodeUnschedulable End = "node unschedulable"
	TimedOut          End = "timed out"
	GivenUp           End = "given up"
)
