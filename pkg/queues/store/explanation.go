package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// Explanation is all that is known of a pod at one moment, for people who ask why
// it does not run, or where it went. Immutable.
type Explanation struct {
	Pod *PodRecord
	// State is one of the states of a pod, as in doc.go; waiting for one that is
	// parked for the sake of its PodGroup.
	State string
	// Why is why it does not run; none where it was let through or runs.
	Why reasons.Reason
	// Peer is as in [Pod].
	Peer bool

	// App is the application; nil for a pod without a queue.
	App *AppRecord
	// Placement is what the rules of now say of the pod, Unplaced why they refuse it.
	// Nil for a foreign pod. Its queue need not be the pod's: an application keeps
	// the queue of its first pod.
	Placement *placement.Result
	Unplaced  reasons.Reason
	Identity  placement.Identity
	// Queues are all queues, of the same moment.
	Queues *queues.Snapshot
	// Limited is the verdict of limits of users and groups, and of maxapplications;
	// none where they let the pod pass.
	Limited reasons.Reason

	// Standing is its place in the order; nil for a pod that does not wait.
	Standing *Standing
	// Window is how many pods are let through at a time, Taken how many are.
	Window, Taken int

	// Hold is the node that it holds; nil for none. Awaited are the pods it waits
	// for there.
	Hold    *reservations.Hold
	Awaited []Ref
	// Retry is when a pod that backs off is tried again at the latest; zero for others.
	// Erred is whether its last cycle failed for another reason than that no node fits.
	Retry time.Time
	Erred bool
	// Room is about making room for it; nil for a pod that has a node.
	Room *Room
	// ChosenBy is the asker it is to go for; nil for none.
	ChosenBy *Ref
}

// Standing is who is before a pod.
type Standing struct {
	order.Standing
	// First are the pods of order.Standing.First, Next is the first of all.
	First []Ref
	Next  Ref
}

// Room is what stands between a pod and the preemption of others.
type Room struct {
	// Why says why no plan is made for it now; none where one may be.
	Why reasons.Reason
	// Refused is what the last plan for it, or one of its twins, came to, Tried when
	// that was; none and zero for none.
	Refused reasons.Reason
	Tried   time.Time
	// DelayEnds is when its queue's preemption.delay is over, Next when it is looked
	// at again at the latest; zero where that is not known.
	DelayEnds, Next time.Time
}

// Explanation returns what is known of a pod, and whether anything is. It looks at
// a bounded number of things: the lock is held for some tens of microseconds.
func (s *Store) Explanation(uid types.UID, now time.Time) (*Explanation, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.pods[uid]
	if !known {
		return nil, false
	}
	x := &Explanation{
		Pod: s.recordOf(p), State: p.state.String(), Why: s.explain(p), Peer: p.Peer, Queues: s.current(),
		Window: max(s.window.size, s.index.LeavesWithWork()), Taken: s.window.taken,
	}
	if p.kept { // no node refused it
		x.State = waiting.String()
	}
	if p.asks.holds {
		h, _ := s.holds.Of(p.UID)
		x.Hold = &h
		x.Awaited = s.refs(h.Victims)
	}
	if asker := s.pods[p.chosenBy]; asker != nil {
		ref := asker.Ref()
		x.ChosenBy = &ref
	}
	if !p.Foreign {
		s.explainPlace(x, p)
	}
	if p.app != nil {
		s.explainQueue(x, p, now)
	}
	return x, true
}

// explainPlace asks the rules of now about a pod; nothing is made.
func (s *Store) explainPlace(x *Explanation, p *pod) {
	var why reasons.Reason
	x.Identity, why = placement.Identify(p.placement(), s.options.Placement)
	if !why.None() && p.Node == "" {
		x.Unplaced = why
		return
	}
	result, why := placement.Place(s.spec.Rules, placement.Request{
		Identity:  x.Identity,
		Namespace: placement.Namespace{Name: p.Namespace, Annotations: s.namespaces[p.Namespace].annotations},
		Running:   p.Node != "",
	}, tree{s.draft})
	x.Placement, x.Unplaced = &result, why
}

func (s *Store) explainQueue(x *Explanation, p *pod, now time.Time) {
	x.App = s.recordOfApp(p.app)
	if p.state.allocated() {
		return
	}
	x.Limited = s.judgeLimits(p).Reason
	if p.state == waiting && p.ask != nil {
		x.Standing = s.standing(p)
	}
	if p.state == cooling {
		x.Erred = p.erred
		if !p.asks.holds { // who holds a node is told what it waits for there
			x.Retry = p.deadline
		}
	}
	r := &Room{DelayEnds: s.delayEnd(p)}
	if p.asks.holds {
		x.Room = r
		return
	}
	if r.Why = s.never(p); r.Why.None() {
		r.Why, _ = s.gate(p, now)
	}
	if r.Why.None() && !s.mayAsk(p) {
		r.Why = notOwed(s.draft.Queue(p.app.leaf))
	}
	r.Tried, r.Refused = p.lastRefused()
	if p.asks.due.at >= 0 {
		r.Next = p.asks.due.when
	}
	if p.RequiredNode != "" { // its decisions know no delay
		*r = Room{Refused: p.asks.refused, Tried: p.asks.triedAt}
	}
	x.Room = r
}

func (s *Store) standing(p *pod) *Standing {
	out := &Standing{Standing: s.index.Standing(p.ask)}
	for _, uid := range out.Standing.First {
		out.First = append(out.First, s.refs([]types.UID{types.UID(uid)})...)
	}
	if next, ok := s.index.Next(); ok {
		out.Next = s.pods[types.UID(next.UID())].Ref()
	}
	return out
}

// refs names those of the pods that are known.
func (s *Store) refs(uids []types.UID) []Ref {
	var out []Ref
	for _, uid := range uids {
		if p := s.pods[uid]; p != nil {
			out = append(out, p.Ref())
		}
	}
	return out
}
