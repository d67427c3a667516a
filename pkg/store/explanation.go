package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/plans"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Explanation is all that the store knows about a pod at one moment. It answers users'
// questions why a pod does not run, or where it is. Immutable.
type Explanation struct {
	Pod *output.PodRecord
	// State is one of the states of package state; GroupBlocked for a pod that waits only because
	// its PodGroup cannot start.
	State string
	// Why is why the pod does not run; none if it was let through or runs.
	Why reasons.Reason

	// App is the application; nil for a pod without a queue.
	App *output.AppRecord
	// Placement is the result of the current rules for the pod, Unplaced why they refuse
	// it. Nil for a foreign pod, and for a pending pod with a refused identity (see Unplaced).
	// The pod's queue may differ, because an application keeps the queue of its first pod.
	Placement *placement.Result
	Unplaced  reasons.Reason
	Identity  placement.Identity
	// Queues are all queues at the same moment.
	Queues *queues.Snapshot
	// Limited is the verdict of the limits of users and groups and of maxapplications;
	// none if they allow the pod.
	Limited reasons.Reason

	// Standing is the pod's position in the order; nil for a pod that is not Queued;
	// Standing.In says whether it is in the order.
	Standing *Standing
	// Window is the number of slots of the window, Taken the number in use.
	Window, Taken int

	// Hold is the hold of the pod; nil for none. Awaited are the pods that it waits for
	// on that node.
	Hold    *reservations.Hold
	Awaited []objects.Ref
	// Retry is the latest time at which a pod that backs off is tried again; zero for
	// others. OnlyTimeHelps is true if its last cycle ended with an error and not because no node
	// fits.
	Retry         time.Time
	OnlyTimeHelps bool
	// Room is about preemption for the pod; nil for a pod that has a node or no queue.
	Room *Room
	// ChosenBy is the asker that chose the pod as a victim; nil for none.
	ChosenBy *objects.Ref
}

// Standing lists the pods that are before a pod.
type Standing struct {
	order.Standing
	// First has the pods of order.Standing.First; Next is the first pod of the whole
	// order.
	First []objects.Ref
	Next  objects.Ref
}

// Room is why no room is made for a pod by preemption.
type Room struct {
	// Why is why no plan is made now; none if one may be.
	Why reasons.Reason
	// Refused is the result of the last plan for the pod or for another one of its
	// equivalence class, Tried the time of it; none and zero if there was no plan.
	Refused reasons.Reason
	Tried   time.Time
	// DelayEnds is when its queue's preemption.delay ends, Next the latest time of its
	// next check; zero if unknown.
	DelayEnds, Next time.Time
}

// Explanation returns what is known about a pod; nil and false for a pod that is not known.
// The work is bounded: it holds the lock for some tens of microseconds.
func (s *Readers) Explanation(uid types.UID, now time.Time) (*Explanation, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.model.Pods[uid]
	if !known {
		return nil, false
	}
	x := &Explanation{
		Pod: s.model.RecordOf(p), State: p.State.String(), Why: s.states.Explain(p), Queues: s.model.Cache.Snapshot(),
		Window: s.model.Pending.Window.Slots(), Taken: s.model.Pending.Window.Taken(),
	}
	if p.Asker.HoldsNode() {
		h, _ := s.model.Preemption.Ledger.Of(p.UID)
		x.Hold = &h
		x.Awaited = s.refs(h.Awaited)
	}
	if asker := s.model.Pods[p.ChosenBy]; asker != nil {
		ref := asker.Ref()
		x.ChosenBy = &ref
	}
	if !p.Foreign {
		s.explainPlace(x, p)
	}
	if p.App != nil {
		s.explainQueue(x, p, now)
	}
	return x, true
}

// explainPlace evaluates the current rules for a pod, without creating queues or
// applications.
func (s *core) explainPlace(x *Explanation, p *model.Pod) {
	var why reasons.Reason
	x.Identity, why = s.model.Identify(p.Pod)
	if !why.None() && p.Node == "" {
		x.Unplaced = why
		return
	}
	result, why := s.model.Rules(p, x.Identity)
	x.Placement, x.Unplaced = &result, why
}

// explainQueue adds what a queue, its order and preemption have to do with a pod.
func (s *core) explainQueue(x *Explanation, p *model.Pod, now time.Time) {
	x.App = s.model.RecordOfApp(p.App)
	if p.State.HasNode() {
		return
	}
	x.Limited = s.model.CheckPodLimits(p).Reason
	if p.State == state.Queued && p.Ask != nil {
		x.Standing = s.standing(p)
	}
	if p.State == state.BackingOff {
		x.OnlyTimeHelps = p.OnlyTimeHelps
		if !p.Asker.HoldsNode() { // a pod with a hold has a reason about its node
			x.Retry = p.Timer.When()
		}
	}
	r := &Room{DelayEnds: p.DelayEnd(s.model.Cache.Tree())}
	switch x.Room = r; {
	case p.Asker.HoldsNode():
	case p.RequiredNode != "": // decisions for it have no delay
		x.Room = &Room{Refused: p.Asker.Refused, Tried: p.Asker.TriedAt}
	default:
		if r.Why, _ = s.plans.WhyNotNow(p, now); r.Why.None() && !s.model.MeetsLaw4(p) {
			r.Why = plans.Law4Refusal(s.model.Cache.Tree().Queue(p.App.Leaf))
		}
		r.Tried, r.Refused = p.LastRefused()
		r.Next, _ = s.model.PreemptionQueue.When(p.Asker)
	}
}

// standing lists the pods that are before a pod of the order.
func (s *core) standing(p *model.Pod) *Standing {
	out := &Standing{Standing: s.model.Pending.Order.Standing(p.Ask)}
	for _, uid := range out.Standing.First {
		out.First = append(out.First, s.model.Pods[types.UID(uid)].Ref())
	}
	if next, ok := s.model.Pending.Order.Next(); ok {
		out.Next = s.model.Pods[types.UID(next.UID())].Ref()
	}
	return out
}

// refs returns the references of the pods that are known.
func (s *core) refs(uids []types.UID) []objects.Ref {
	var out []objects.Ref
	for _, uid := range uids {
		if p := s.model.Pods[uid]; p != nil {
			out = append(out, p.Ref())
		}
	}
	return out
}
