package output

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// PodRecord is a pod at one moment, for readers. Immutable. There is one for every pod of
// a cluster, so it shares data with the store.
type PodRecord struct {
	// Pod is the latest event; read-only. The other fields may be newer.
	*objects.Pod
	// App is the Serial of its application; 0 for a foreign pod and for one without
	// a queue. AppID and Queue are that application's.
	App          uint64
	AppID, Queue string
	// Wanted is the identity by which a pod without a queue is placed; nil for all
	// others.
	Wanted *placement.Identity
	// Node is where the pod runs or is about to run; empty while it is pending.
	Node string
	// Request is what the pod is charged.
	Request resources.Vector
	// Originator is true for the originators of an application (cache.Originators).
	Originator bool
	// Preempted is true for a victim that is not gone yet, Deleting for a pod with a
	// deletion timestamp.
	Preempted, Deleting bool

	*Failures // nil for none
}

// AppRecord is an application at one moment, for readers. Immutable.
type AppRecord struct {
	// Serial is unique among all applications of this process.
	Serial        uint64
	Namespace, ID string
	// Leaf and Queue are its queue.
	Leaf  queues.ID
	Queue string
	// User is charged for the application, Groups are the user's groups, and Group is the
	// one with the limits that apply; empty for none.
	User, Group string
	Groups      []string
	// Submitted is when its oldest pod was created, Accepted when it got its queue,
	// Running when its first pod was bound, Finished when its last pod was gone. The last
	// three are times observed by this process, zero until then.
	Submitted, Accepted, Running, Finished time.Time
	Usage                                  queues.Usage
	// Counted is true while it counts against maxapplications.
	Counted bool
	// MostUsed is its peak use of each type.
	MostUsed resources.Vector
}

// NodeRecord is a node at one moment, for readers.
type NodeRecord struct {
	Name string
	// Allocatable is the node's allocatable, in use or not.
	Allocatable resources.Vector
	// Schedulable is false while it takes no new pods.
	Schedulable bool
}

// Failures are the failed cycles of a pod. Immutable.
type Failures struct {
	Count int // since it was placed
	Last  time.Time
}

// Attempts is the number of failed cycles; 0 for a pod without any.
func (f *Failures) Attempts() int { return ptr.Deref(f, Failures{}).Count }

// Tried is when the last failed cycle ended; zero if there was none.
func (f *Failures) Tried() time.Time { return ptr.Deref(f, Failures{}).Last }

// Counts are totals since the process started. What existed at the start counts as having
// happened then.
type Counts struct {
	// Accepted counts applications that got a queue, Completed those that lost their last
	// pod.
	Accepted, Completed uint64
	// Allocated counts pods of queues that were placed on a node, Released those that
	// left it or were not bound there after all.
	Allocated, Released uint64
}

// Changes are the changes since the last call. Deletions come before additions. The lists
// belong to the caller; what they point to is read-only.
type Changes struct {
	GonePods  []types.UID
	GoneApps  []uint64
	GoneNodes []string
	Pods      []*PodRecord
	Apps      []*AppRecord
	Nodes     []*NodeRecord
	// Rest is set when no changes are left: together with all earlier Changes it is the
	// state at one moment.
	Rest *Rest
}

// Rest has the data that is returned as a whole and not as changes.
type Rest struct {
	Started bool
	Queues  *queues.Snapshot
	Holds   *reservations.View
	Spec    *config.Spec
	// Until is when each hold times out, by asker; holds of askers that are being bound are not there.
	Until map[types.UID]time.Time
	// Finished are the last applications that ended, oldest first.
	Finished []*AppRecord
	Counts   Counts
}

// Differs describes how the record of a pod differs from the API server's pod; empty if
// they agree. r is nil for a pod that the store does not know; listed is nil for one that
// the API server does not have. An assumed pod is ahead of the API server; that is not a
// difference.
func Differs(r *PodRecord, listed *objects.Pod) string {
	ended := listed == nil || listed.Terminal || listed.Deleting && listed.Node == ""
	switch {
	case r == nil && ended:
		return ""
	case r == nil:
		return "the store does not know it"
	case ended && listed != nil && listed.Deleting && r.Node != "" && !listed.Terminal:
		return "" // assumed, and deleted meanwhile
	case ended:
		return "it has ended, and the store has it still"
	case r.Foreign != listed.Foreign:
		return fmt.Sprintf("foreign is %t, the store says %t", listed.Foreign, r.Foreign)
	case listed.Node == "" && r.Node != "":
		return ""
	}
	l := *listed
	l.Normalize()
	switch {
	case r.Node != l.Node:
		return fmt.Sprintf("it runs on node %s, the store says %s", l.Node, cmp.Or(r.Node, "none"))
	case !r.Request.Add(r.Pod.Uncounted).Equal(l.Request):
		return fmt.Sprintf("it requests %v, the store charges %v", l.Request, r.Request)
	case r.Priority != l.Priority:
		return fmt.Sprintf("its priority is %d, the store says %d", l.Priority, r.Priority)
	case r.Deleting != l.Deleting:
		return fmt.Sprintf("being deleted is %t, the store says %t", l.Deleting, r.Deleting)
	case r.RequiredNode != l.RequiredNode:
		return fmt.Sprintf("the only node it can run on is %s, the store says %s",
			cmp.Or(l.RequiredNode, "none"), cmp.Or(r.RequiredNode, "none"))
	}
	return ""
}
