package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// Readers want to see every pod, and must not hold up who decides. So the store
// marks what changed, one reader ([Store.TakeChanges]) comes for it in small
// bites, and everybody else reads that reader's copy. While nobody comes, a mark
// costs a place in a list, once for each pod however often it changes, and what
// was never shown to anybody leaves nothing behind when it goes.

// finishedKept is how many applications without pods are remembered.
const finishedKept = 1000

// register is what changed since the reader came last.
type register struct {
	pods  marks[*pod]
	apps  marks[*app]
	nodes marks[*node]
	// What the reader was shown and is gone.
	gonePods  []types.UID
	goneApps  []uint64
	goneNodes []string

	serial uint64 // of the last application
	unsaid []*app // whose times are to be set by the end of the change
	// finished are the last applications that ended, a ring; next is where the
	// following one goes. inOrder is a copy, the oldest first; nil when it is old.
	finished []*AppRecord
	next     int
	inOrder  []*AppRecord
	counts   Counts
}

// Counts is what happened since the process started; what was found at its start
// happened then.
type Counts struct {
	// Accepted applications were given a queue, Completed ones lost their last pod.
	Accepted, Completed uint64
	// Allocated pods of queues were placed on a node, Released ones left it or were
	// not bound there after all.
	Allocated, Released uint64
}

func (p *pod) mark() *int  { return &p.marked }
func (a *app) mark() *int  { return &a.marked }
func (n *node) mark() *int { return &n.marked }

// changed notes that readers see a pod differently.
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

// changedNode notes that readers see a node, without its pods, differently.
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

// enroll gives an application that is new its number.
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

// stamp sets the times of what happened to applications in this change.
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

// finish remembers an application whose last pod is gone.
func (r *register) finish(a *AppRecord, now time.Time) {
	a.Finished = now
	r.counts.Completed++
	if a.Accepted.IsZero() {
		a.Accepted = now // it came and went in one change
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

// Changes is what became different since the call before. What is gone went
// before what is listed as new came. Its lists are the caller's, what they point
// to is not to be changed.
type Changes struct {
	GonePods  []types.UID
	GoneApps  []uint64
	GoneNodes []string
	Pods      []*PodRecord
	Apps      []*AppRecord
	Nodes     []NodeRecord
	// Rest is set when there is no more: together with everything before it is the
	// state of one moment.
	Rest *Rest
}

// Rest is what needs no list of changes.
type Rest struct {
	Started bool
	Queues  *queues.Snapshot
	Holds   *reservations.View
	Spec    *config.Spec
	// HoldTimeout is how long a hold lasts after its last victim is gone.
	HoldTimeout time.Duration
	// Finished are the last applications that ended, the oldest first.
	Finished []*AppRecord
	Counts   Counts
}

// TakeChanges returns at most limit things that changed since the last call. It
// is for one reader, who calls it until there is a Rest: the lock is held for a
// bite at a time.
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
			Started: s.started, Queues: s.current(), Holds: s.heldView.Load(), Spec: s.spec,
			HoldTimeout: s.preemption.HoldTimeout, Finished: r.finishedInOrder(), Counts: r.counts,
		}
	}
	return c
}

func (r *register) empty() bool {
	return len(r.pods.list)+len(r.apps.list)+len(r.nodes.list)+len(r.gonePods)+len(r.goneApps)+len(r.goneNodes) == 0
}
