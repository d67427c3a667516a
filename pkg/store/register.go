package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
)

// Readers need every pod, but must not delay the scheduling decisions. So the store marks
// what changed, one reader ([Store.TakeChanges]) fetches it in small portions, and all
// others read that reader's copy. Without a reader a mark costs one list entry per pod,
// however often the pod changes, and objects that were never published leave no entry
// when they go.

// finishedKept is how many ended applications are remembered.
const finishedKept = 1000

// register has the changes since the reader's last call.
type register struct {
	pods  history.Dirty[types.UID, PodRecord, *pod]
	apps  history.Dirty[uint64, AppRecord, *app]
	nodes history.Dirty[string, NodeRecord, *seenNode]
	seen  map[string]*seenNode // the nodes that are known, by name

	unsaid   []*app // applications to be stamped with times
	finished history.Recent[*AppRecord]
	counts   Counts
}

func newRegister() register {
	return register{seen: map[string]*seenNode{}, finished: history.NewRecent[*AppRecord](finishedKept)}
}

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

// seenNode is a known node and what readers know of it.
type seenNode struct {
	*cache.Node
	history.Mark[NodeRecord]
}

// changed notes that a pod changed for readers.
func (s *Store) changed(p *pod) {
	s.register.pods.Add(p)
	if p.app != nil {
		s.register.apps.Add(p.app)
	}
}

// changedNode notes that a node, without its pods, changed for readers.
func (r *register) changedNode(n *cache.Node) {
	seen := r.seen[n.Name()]
	if n.Known() {
		if seen == nil {
			seen = &seenNode{Node: n}
			r.seen[n.Name()] = seen
		}
		r.nodes.Add(seen)
	} else if seen != nil {
		r.nodes.Remove(seen, n.Name())
		delete(r.seen, n.Name())
	}
}

// enroll notes a new application.
func (r *register) enroll(a *app) {
	r.counts.Accepted++
	r.apps.Add(a)
	r.unsaid = append(r.unsaid, a)
}

// begin notes that an application runs.
func (s *Store) begin(a *app) {
	if a.Begin() {
		s.noteApp(AppRuns, a)
		s.register.unsaid = append(s.register.unsaid, a)
	}
}

// stamp sets the times of applications that changed in this change.
func (r *register) stamp(now time.Time) {
	for i, a := range r.unsaid {
		if a.accepted.IsZero() {
			a.accepted = now
		}
		if a.Running() && a.began.IsZero() {
			a.began = now
		}
		r.unsaid[i] = nil
	}
	r.unsaid = r.unsaid[:0]
}

// finish remembers an application after its last pod is gone.
func (r *register) finish(a *AppRecord, now time.Time) {
	a.Finished = now
	r.counts.Completed++
	if a.Accepted.IsZero() {
		a.Accepted = now // it came and went in the same change
	}
	r.finished.Add(a)
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
	// HoldTimeout is how long a hold lasts after its last victim is gone.
	HoldTimeout time.Duration
	// Finished are the last applications that ended, oldest first.
	Finished []*AppRecord
	Counts   Counts
}

// TakeChanges returns at most limit changes since the last call. It is for one reader,
// which calls it until there is a Rest, so the lock is held for one portion at a time.
func (s *Store) TakeChanges(limit int) Changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.register
	var c Changes
	c.GonePods = r.pods.TakeGone(limit)
	limit -= len(c.GonePods)
	c.GoneApps = r.apps.TakeGone(limit)
	limit -= len(c.GoneApps)
	c.GoneNodes = r.nodes.TakeGone(limit)
	limit -= len(c.GoneNodes)
	c.Nodes = r.nodes.Take(limit, recordOfNode)
	limit -= len(c.Nodes)
	c.Apps = r.apps.Take(limit, s.recordOfApp)
	limit -= len(c.Apps)
	c.Pods = r.pods.Take(limit, s.recordOf)
	if r.empty() {
		c.Rest = &Rest{
			Started: s.started, Queues: s.current(), Holds: s.preemption.Holds.View(), Spec: s.spec,
			HoldTimeout: s.preemption.HoldTimeout, Finished: r.finished.List(), Counts: r.counts,
		}
	}
	return c
}

func (r *register) empty() bool { return r.pods.Len()+r.apps.Len()+r.nodes.Len() == 0 }
