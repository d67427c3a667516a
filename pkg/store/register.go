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

// storeHistory has what happened and what changed, for readers: the events (history.go),
// the reports to users (reports.go), the dirty sets and the counts of waiting pods.
type storeHistory struct {
	events    history.Events[Event]
	treeNoted uint64 // tree generation of the last event QueuesWent
	reports   history.Reports
	waits     history.WaitCounts

	pods  history.Dirty[types.UID, PodRecord, *pod]
	apps  history.Dirty[uint64, AppRecord, *app]
	nodes history.Dirty[string, NodeRecord, *seenNode]
	seen  map[string]*seenNode // the nodes that are known, by name

	unsaid   []*app // applications to be stamped with times
	finished history.Recent[*AppRecord]
	counts   Counts
}

func newHistory() storeHistory {
	return storeHistory{
		events: newEvents(), reports: history.NewReports(), waits: history.NewWaitCounts(),
		seen: map[string]*seenNode{}, finished: history.NewRecent[*AppRecord](finishedKept),
	}
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
func (h *storeHistory) changed(p *pod) {
	h.pods.Add(p)
	if p.app != nil {
		h.apps.Add(p.app)
	}
}

// tally updates the counts of waiting pods after a change of a pod's state, queue or
// reason.
func (h *storeHistory) tally(p *pod) { h.waits.Update(&p.tallied, tallyOf(p)) }

// changedNode notes that a node, without its pods, changed for readers.
func (h *storeHistory) changedNode(n *cache.Node) {
	seen := h.seen[n.Name()]
	if n.Known() {
		if seen == nil {
			seen = &seenNode{Node: n}
			h.seen[n.Name()] = seen
		}
		h.nodes.Add(seen)
	} else if seen != nil {
		h.nodes.Remove(seen, n.Name())
		delete(h.seen, n.Name())
	}
}

// enroll notes a new application.
func (h *storeHistory) enroll(a *app) {
	h.counts.Accepted++
	h.apps.Add(a)
	h.unsaid = append(h.unsaid, a)
}

// begin notes that an application runs.
func (h *storeHistory) begin(a *app) {
	if a.Begin() {
		h.noteApp(AppRuns, a)
		h.unsaid = append(h.unsaid, a)
	}
}

// stamp sets the times of applications that changed in this change.
func (h *storeHistory) stamp(now time.Time) {
	for i, a := range h.unsaid {
		if a.accepted.IsZero() {
			a.accepted = now
		}
		if a.Running() && a.began.IsZero() {
			a.began = now
		}
		h.unsaid[i] = nil
	}
	h.unsaid = h.unsaid[:0]
}

// finish remembers an application after its last pod is gone.
func (h *storeHistory) finish(a *AppRecord, now time.Time) {
	a.Finished = now
	h.counts.Completed++
	if a.Accepted.IsZero() {
		a.Accepted = now // it came and went in the same change
	}
	h.finished.Add(a)
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
	r := &s.history
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
			Started: s.started, Queues: s.cache.Snapshot(), Holds: s.preemption.Holds.View(), Spec: s.cache.Spec,
			HoldTimeout: s.preemption.HoldTimeout, Finished: r.finished.List(), Counts: r.counts,
		}
	}
	return c
}

func (h *storeHistory) empty() bool { return h.pods.Len()+h.apps.Len()+h.nodes.Len() == 0 }
