package store

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
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

	failed *failures
}

// Attempts is the number of failed scheduling cycles since the pod got its queue.
func (r *PodRecord) Attempts() int { return r.failed.attempts() }

// Tried is when the last failed cycle ended; zero if there was none.
func (r *PodRecord) Tried() time.Time {
	if r.failed == nil {
		return time.Time{}
	}
	return r.failed.last
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

// recordOf returns the current record of a pod.
func (s *Store) recordOf(p *pod) *PodRecord {
	r := &PodRecord{
		Pod: p.Pod, Node: p.Node, Request: p.Request,
		Preempted: p.chosenBy != "", Deleting: p.Deleting, failed: p.failed,
	}
	switch {
	case p.app != nil:
		r.App, r.AppID, r.Queue = p.app.Serial, p.app.Name.ID, s.cache.Tree().Queue(p.app.Leaf).Path
		r.Request, r.Originator = p.Amount(), s.cache.Originators.Is(&p.cachePod)
	case !p.Foreign:
		wanted, _ := placement.Identify(placementOf(p.Pod), s.options.Placement)
		r.Wanted = &wanted
	}
	return r
}

// recordOfApp returns the current record of an application.
func (s *Store) recordOfApp(a *app) *AppRecord {
	return &AppRecord{
		Serial: a.Serial, Namespace: a.Name.Namespace, ID: a.Name.ID, Leaf: a.Leaf, Queue: s.cache.Tree().Queue(a.Leaf).Path,
		User: a.Owner.User, Group: a.Owner.Group, Groups: a.Groups,
		Submitted: a.Submitted, Accepted: a.accepted, Running: a.began, Usage: a.Used(), Counted: a.Counted(), MostUsed: a.MostUsed(),
	}
}

func recordOfNode(n *seenNode) *NodeRecord {
	return &NodeRecord{Name: n.Name(), Allocatable: n.Allocatable(), Schedulable: !n.Cordoned()}
}
