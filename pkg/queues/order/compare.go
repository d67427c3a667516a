package order

import (
	"cmp"
	"strings"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// queueKey is the key by which two children of one parent are compared.
type queueKey struct {
	// Priority is the exposed priority of the queue: the highest priority of its eligible
	// asks, shifted or pinned by its policies.
	Priority int64
	// BelowGuarantee is true if law 4 permits the next ask of the queue to take the place
	// of a pod of a sibling. That is, there is a requested type that a queue on the path
	// down to the ask guarantees, and every queue on the path that guarantees it is below
	// its guarantee.
	BelowGuarantee bool
	// Share is the dominant share of what the queue uses and is about to use.
	Share resources.Share
	// Eligible counts the asks below the queue that may run.
	Eligible int
	// Path makes the order total.
	Path string
}

// compareQueues orders the children of a parent by:
//
//  1. higher exposed priority, if the parent sorts by priority
//  2. below its guarantee in what its next ask requests
//  3. smaller share
//  4. higher exposed priority, if the parent does not sort by priority
//  5. more eligible asks
//  6. path
//
// Criterion 2 is law 4. Without it, free capacity would go to the smaller share, and the
// pod there would be preempted for the queue that is below its guarantee.
func compareQueues(a, b queueKey, prioritySort bool) int {
	if prioritySort {
		if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
			return c
		}
	}
	if a.BelowGuarantee != b.BelowGuarantee {
		if a.BelowGuarantee {
			return -1
		}
		return 1
	}
	return cmp.Or(a.Share.Compare(b.Share), cmp.Compare(b.Priority, a.Priority), cmp.Compare(b.Eligible, a.Eligible), strings.Compare(a.Path, b.Path))
}

// appKey is the key by which two applications of one leaf are compared.
type appKey struct {
	// Priority is the highest priority of the application's eligible asks.
	Priority int64
	// Share is the dominant share of what the application uses and is about to use.
	Share resources.Share
	// Submitted is the creation time of the application's oldest pod.
	Submitted time.Time
	// Name makes the order total: namespace and application ID.
	Name string
}

// compareApps orders the applications of a leaf. With fifo by:
//
//  1. higher priority, if the leaf sorts by priority
//  2. earlier submission
//  3. higher priority, if the leaf does not sort by priority
//  4. name
//
// Fair has the smaller share in place of criterion 2, and the earlier submission before
// the name.
func compareApps(a, b appKey, policy config.SortPolicy, prioritySort bool) int {
	if prioritySort {
		if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
			return c
		}
	}
	if policy == config.SortFair {
		if c := a.Share.Compare(b.Share); c != 0 {
			return c
		}
	} else if c := a.Submitted.Compare(b.Submitted); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Submitted.Compare(b.Submitted), strings.Compare(a.Name, b.Name))
}

// AskKey is the key by which two asks of one application are compared.
type AskKey struct {
	Priority int32
	Created  time.Time
	UID      string
}

// CompareAsks orders the asks of an application by higher priority, earlier creation,
// UID.
func CompareAsks(a, b AskKey) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created), strings.Compare(a.UID, b.UID))
}
