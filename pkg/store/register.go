package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// The register is the dirty set. Readers need every pod, but must not delay the
// scheduling decisions. So the store marks what changed, one reader ([Store.TakeChanges])
// fetches it in small portions, and all others read that reader's copy. Without a reader
// a mark costs one list entry per pod, however often the pod changes, and objects that
// were never published leave no entry when they go.

// finishedKept is how many ended applications are remembered.
const finishedKept = 1000

// register has the changes since the reader's last call.
type register struct {
	pods  marks[*pod]
	apps  marks[*app]
	nodes marks[*node]
	// Published objects that are gone.
	gonePods  []types.UID
	goneApps  []uint64
	goneNodes []string

	serial uint64 // Serial of the last application
	unsaid []*app // applications to be stamped with times
	// finished is a ring of the last applications that ended; next is the index of the
	// next entry. inOrder is a copy, oldest first; nil if it is out of date.
	finished []*AppRecord
	next     int
	inOrder  []*AppRecord
	counts   Counts
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

func (p *pod) mark() *int  { return &p.marked }
func (a *app) mark() *int  { return &a.marked }
func (n *node) mark() *int { return &n.marked }

// changed notes that a pod changed for readers.
func (s *Store) changed(p *pod) {
	s.register.pods.add(p)
	if p.app != nil {
		s.register.apps.add(p.app)
	}
}

// forgetPod notes that a pod is gone.
func (r *register) forgetPod(p *pod) {
	r.pods.remove(p)
	if p.shown != nil {
		r.gonePods = append(r.gonePods, p.UID)
		p.shown = nil
	}
}

// forgetApp notes that an application has no pods left.
func (r *register) forgetApp(a *app) {
	r.apps.remove(a)
	if a.shown {
		r.goneApps = append(r.goneApps, a.serial)
		a.shown = false
	}
}

// changedNode notes that a node, without its pods, changed for readers.
func (r *register) changedNode(n *node) {
	if n.known {
		r.nodes.add(n)
		return
	}
	r.nodes.remove(n)
	if n.shown {
		r.goneNodes = append(r.goneNodes, n.name)
		n.shown = false
	}
}

// enroll gives a new application its number.
func (r *register) enroll(a *app) {
	r.serial++
	r.counts.Accepted++
	a.serial = r.serial
	r.apps.add(a)
	r.unsaid = append(r.unsaid, a)
}

// begin notes that an application runs.
func (s *Store) begin(a *app) {
	if !a.running {
		a.running = true
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
		if a.running && a.began.IsZero() {
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
	if len(r.finished) < finishedKept {
		r.finished = append(r.finished, a)
	} else {
		r.finished[r.next] = a
		r.next = (r.next + 1) % finishedKept
	}
	r.inOrder = nil
}

func (r *register) finishedInOrder() []*AppRecord {
	if r.inOrder == nil {
		r.inOrder = append(append(make([]*AppRecord, 0, len(r.finished)), r.finished[r.next:]...), r.finished[:r.next]...)
	}
	return r.inOrder
}

// Changes are the changes since the last call. Deletions come before additions. The lists
// belong to the caller; what they point to is read-only.
type Changes struct {
	GonePods  []types.UID
	GoneApps  []uint64
	GoneNodes []string
	Pods      []*PodRecord
	Apps      []*AppRecord
	Nodes     []NodeRecord
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
	c.GonePods = takeFirst(&r.gonePods, limit)
	limit -= len(c.GonePods)
	c.GoneApps = takeFirst(&r.goneApps, limit)
	limit -= len(c.GoneApps)
	c.GoneNodes = takeFirst(&r.goneNodes, limit)
	limit -= len(c.GoneNodes)
	limit -= r.nodes.take(limit, func(n *node) {
		n.shown = true
		c.Nodes = append(c.Nodes, recordOfNode(n))
	})
	limit -= r.apps.take(limit, func(a *app) {
		a.shown = true
		c.Apps = append(c.Apps, s.recordOfApp(a))
	})
	r.pods.take(limit, func(p *pod) {
		p.shown = s.recordOf(p)
		c.Pods = append(c.Pods, p.shown)
	})
	if r.empty() {
		c.Rest = &Rest{
			Started: s.started, Queues: s.current(), Holds: s.preemption.Holds.View(), Spec: s.spec,
			HoldTimeout: s.preemption.HoldTimeout, Finished: r.finishedInOrder(), Counts: r.counts,
		}
	}
	return c
}

func (r *register) empty() bool {
	return len(r.pods.list)+len(r.apps.list)+len(r.nodes.list)+len(r.gonePods)+len(r.goneApps)+len(r.goneNodes) == 0
}
