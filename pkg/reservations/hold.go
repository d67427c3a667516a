package reservations

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Hold keeps a node for an asker. Ledgers hand out copies.
type Hold struct {
	Asker           types.UID
	Namespace, Name string
	Node            string
	// Request is what the asker will use there.
	Request resources.Vector
	// Priority and Created are the asker's own, for the order among required-node
	// holders.
	Priority int32
	Created  time.Time
	// Required is true for a pod that can run on this node only.
	Required bool
	// Since is when the hold began, also across restarts.
	Since time.Time
	// Victims are the pods that the asker waits for and that are not gone, sorted: those
	// chosen for it, and others that were leaving anyway.
	Victims []types.UID
	// Chosen are the pods that were chosen to go for the asker, gone or not, sorted.
	Chosen []types.UID
	// Committed is true from the moment before the first disruption.
	Committed bool
	// Decision identifies the decision that made the hold; may be empty.
	Decision string
	// Patient is true while its asker has yet to find out which pods go for it: that no
	// pod is waited for does not mean that there is room.
	Patient bool
	// Note says what a hold without victims waits for, for people; empty for what
	// is true of most. It is not part of the claim.
	Note string
	// Disrupted is when pods were made to go for it the last time; zero for never.
	Disrupted time.Time
	// ClearSince is when the last victim was gone; zero while any is left.
	ClearSince time.Time

	seq uint64 // order of placing
}

// Clear tells whether no victim is left.
func (h *Hold) Clear() bool { return len(h.Victims) == 0 }

// TimeFrom is from when the time-out of the hold counts. Every hold has one, for a pod that
// it waits for may never end:
//
//  1. from when the last victim was gone, once none is left
//  2. else from when pods were made to go for it the last time
//  3. else, while no pod was chosen, from its beginning
func (h *Hold) TimeFrom() time.Time {
	switch {
	case h.Clear() && !h.Patient:
		return h.ClearSince
	case !h.Disrupted.IsZero():
		return h.Disrupted
	}
	return h.Since
}

// Binding tells whether the asker is kept to the node: pods were disrupted for
// it. Until then it may go wherever it fits.
func (h *Hold) Binding() bool { return h.Committed && len(h.Chosen) > 0 }

// Claim is what is written on the asker.
func (h *Hold) Claim() Claim {
	c := Claim{Node: h.Node, Since: h.Since, Victims: slices.Clone(h.Chosen), Decision: h.Decision, Note: h.Note}
	if h.Clear() && !h.ClearSince.Equal(h.Since) {
		c.ClearSince = h.ClearSince
	}
	return c
}

func (h *Hold) copy() Hold {
	c := *h
	c.Victims, c.Chosen = slices.Clone(h.Victims), slices.Clone(h.Chosen)
	return c
}

// compareHolds is the order in which the holders of a node are served:
//
//  1. required-node holders before others
//  2. among required-node holders: higher priority, then the older asker
//  3. among others: order of placing
//  4. UID
func compareHolds(a, b *Hold) int {
	if a.Required != b.Required {
		if a.Required {
			return -1
		}
		return 1
	}
	if a.Required {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created), cmp.Compare(a.Asker, b.Asker))
	}
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.Asker, b.Asker))
}

// Before tells whether a holder of a node is served before a holder of the same one
// that would be like the other hold.
func (h *Hold) Before(other *Hold) bool { return compareHolds(h, other) < 0 }

// End says why a hold ended.
type End string

// The ends of a hold (LAWS, holds).
const (
	Bound             End = "bound"
	Deleted           End = "deleted"
	Superseded        End = "superseded"
	NodeGone          End = "node gone"
	NodeUnschedulable End = "node unschedulable"
	TimedOut          End = "timed out"
	GivenUp           End = "given up"
)
