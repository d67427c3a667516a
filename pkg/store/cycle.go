package store

import (
	"fmt"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Gate tells whether a pod may enter the scheduler's queue. The scheduler calls it each
// time it would put the pod there, so a call for an unschedulable pod means that an event may
// help that pod. The reason is none if the pod may enter. Otherwise it is brief, because
// the scheduler discards it.
//
// Pods of no queue pass the gate, with one exception: a pod that waits for victims on the
// only node it can run on is not tried whenever a pod ends on some other node.
func (s *Store) Gate(uid types.UID, now time.Time) reasons.Reason {
	s.mu.Lock()
	why, changed := s.pass(uid, now)
	if !changed {
		s.mu.Unlock()
		return why
	}
	s.unlock(now)
	return why
}

// pass is Gate under the lock. changed is false if at most the state of the pod changed,
// from Admitted to Scheduling, which no other pod and no reader depends on.
func (s *Store) pass(uid types.UID, now time.Time) (why reasons.Reason, changed bool) {
	p, known := s.pods[uid]
	switch {
	case !known:
		return reasons.Brief(reasons.Starting), false
	case p.Foreign && p.state == state.Unschedulable && s.bindingHold(p) && !p.asks.Activated:
		return reasons.Brief(reasons.MakingRoom), false
	case p.Foreign:
		return reasons.Reason{}, false
	case p.state == state.Admitted:
		s.setState(p, state.Scheduling)
		p.sees = s.cache.Nodes.Generation()
		return reasons.Reason{}, false
	case !s.started:
		return reasons.Brief(reasons.Starting), false
	}
	if p.state == state.Scheduling && p.asks.Holds() {
		s.failedHolder(p, now)
	}
	if p.state == state.Scheduling {
		// It entered before, so its cycle has ended without a call that reports the
		// result.
		s.vacate(p)
		s.toParked(p, reasons.New(reasons.BackingOff, "the scheduler could not say whether a node can take the pod"), now)
		s.pending.Keys.Remove(uid)
	}
	if p.state == state.Unschedulable && !s.bindingHold(p) {
		s.requeue(p, now)
	}
	if p.state.HasNode() {
		return reasons.Reason{}, true // it has passed every gate
	}
	return reasons.Brief(s.code(p)), true
}

// requeue: Unschedulable to Queued, or to BackingOff while its back-off lasts. No pod is admitted
// before all pods of the same event are back; see [Store.Returning].
func (s *Store) requeue(p *pod, now time.Time) {
	if p.asks.Holds() { // holds bypass the order
		s.cool(p, latest(p.notUntil, now))
		return
	}
	s.pending.NoteReturn(now)
	if !p.notUntil.After(now) {
		s.toWaiting(p)
		return
	}
	s.cool(p, p.notUntil)
	if !p.erred {
		s.enterLane(p)
	}
}

// Ask is what a scheduling cycle needs to know about its pod.
type Ask struct {
	objects.Ref
	Leaf    queues.ID
	Queue   string // path of the leaf
	App     string // application ID
	Request resources.Vector
}

// Judge is the quota check of a pending pod at the beginning of its cycle: max, and
// limits of users and groups. ok is false if the pod is not known or has no queue; the
// verdict then has the reason.
func (s *Store) Judge(uid types.UID) (ask Ask, v queues.Verdict, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.pods[uid]
	switch {
	case !known:
		return Ask{}, queues.Verdict{At: queues.NoQueue, Reason: reasons.New(reasons.Starting, "the pod is not known yet")}, false
	case p.app == nil:
		return Ask{}, queues.Verdict{At: queues.NoQueue, Reason: s.explain(p)}, false
	}
	ask = Ask{
		Ref: p.Ref(), Leaf: p.app.Leaf, Queue: s.cache.Tree().Queue(p.app.Leaf).Path,
		App: p.app.Name.ID, Request: p.Request,
	}
	if v = s.alone(p); !v.OK() {
		return ask, v, true
	}
	return ask, s.cache.Books.CheckAmounts(&p.app.cacheApp, p.Request, queues.OnAllocated), true
}

// Refused says that a cycle of the pod ended with a verdict of Judge or Assume against
// it. The pod waits, out of the order until the queue that refused it has more room. A
// pod that was let through for preemption is refused only at the second call, after the
// plan.
func (s *Store) Refused(uid types.UID, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	p, known := s.pods[uid]
	switch {
	case !known || p.Foreign:
	case s.asking.Current() == uid && !p.asks.OverQuota:
		p.asks.OverQuota = true // the cycle may still make a plan for it
	case p.asks.Holds():
		s.failedHolder(p, now)
	default:
		s.refused(p)
		p.within = false
		s.foundNoNode(p, now) // PodScheduled says unschedulable, but no new node helps
	}
}

func (s *Store) refused(p *pod) {
	switch p.state {
	case state.Admitted, state.Scheduling:
		s.vacate(p)
		s.toWaiting(p)
	case state.BackingOff:
		s.leaveCooling(p)
		s.toWaiting(p)
	case state.Unschedulable, state.GroupBlocked:
		s.toWaiting(p)
	}
	s.pending.Keys.Remove(p.UID)
}

// Failed says that a cycle of the pod found no node. kind identifies what the filters see
// of the pod and selects its equivalence class (twins). A pod of kind "" has none.
func (s *Store) Failed(uid types.UID, kind string, why reasons.Reason, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	p, known := s.pods[uid]
	if !known || p.app == nil || p.state.HasNode() {
		return
	}
	if p.RequiredNode != "" || p.apart() {
		kind = "" // no class: the pod has its own node, or is tried as a member of its group
	}
	if p.asks.Holds() {
		s.failedHolder(p, now)
		return
	}
	s.withdraw(p)
	s.pending.Keys.Remove(uid)
	s.pending.Window.Failed()
	s.pending.Classes.Join(&p.equivalenceClass, p.app.ordered, p.Request, kind, p.state)
	s.toParked(p, why, now)
	s.foundNoNode(p, now)
	s.pending.Classes.Fail(p.equivalenceClass, p.sees)
	s.enterLane(p)
	if _, due := s.asking.When(p.asks); !due {
		s.arm(p, p.asks.RetryAt)
	}
	if p.RequiredNode != "" {
		from, _ := p.planFrom()
		if p.asks.Refused.Code == reasons.PreemptionRefused { // an extender did not answer
			from = latest(from, p.asks.RetryAt)
		}
		if from.After(now) {
			s.cool(p, from)
		}
		s.recheckNode(p)
		s.recall(p, now)
	}
}

// Defer says that another plugin refused to try the pod now. The store does not know
// which event that plugin waits for, so the pod backs off and comes back by itself. With
// SchedulingGated the scheduler's queue knows the event, and calls Gate then.
func (s *Store) Defer(uid types.UID, why reasons.Reason, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	p, known := s.pods[uid]
	if !known || p.app == nil || p.state.HasNode() {
		return
	}
	if p.asks.Holds() {
		s.failedHolder(p, now)
		return
	}
	s.withdraw(p)
	s.pending.Keys.Remove(uid)
	s.pending.Classes.Leave(&p.equivalenceClass, p.state)
	s.toParked(p, why, now)
	if why.Code == reasons.SchedulingGated {
		p.notUntil = now
	} else {
		s.cool(p, p.notUntil)
	}
	s.keepAsking(p)
}

// Assume charges a pod as allocated on a node, or returns the reason not to. This verdict
// is on the live state and is the binding one. [Store.TakeActivations] gives the pod's
// slot to the next pod, because the scheduling cycle waits for Assume.
func (s *Store) Assume(uid types.UID, node string, now time.Time) queues.Verdict {
	s.mu.Lock()
	defer func() {
		s.recheckLater(now)
		s.pending.NoteUnfilled(now)
		s.unlockUnfilled(now)
	}()
	p, known := s.pods[uid]
	switch {
	case !known:
		return queues.Verdict{At: queues.NoQueue, Reason: reasons.New(reasons.Starting, "the pod is gone")}
	case p.app == nil:
		return queues.Verdict{At: queues.NoQueue, Reason: s.explain(p)}
	case p.state.HasNode():
		return queues.Granted // it was bound during its cycle; the result of the bind decides
	}
	v := s.alone(p)
	if v.OK() {
		v = s.cache.Books.CheckQuota(&p.app.cacheApp, p.Request, queues.OnAllocated)
	}
	if !v.OK() {
		if p.asks.Holds() {
			s.failedHolder(p, now)
		} else {
			s.refused(p)
		}
		return v
	}
	if h, ok := s.preemption.Holds.Of(uid); ok && h.Node != node {
		// It fits elsewhere, and no victim was deleted for it yet.
		why := reasons.New(reasons.HoldSuperseded, "the pod found room on node %s", node)
		s.finishHold(p, preemption.Ending{End: reservations.Superseded, Node: node, Why: why}, now)
	}
	if s.passedOver(p, now) || s.letAhead(p, node, now) {
		return queues.Verdict{At: queues.NoQueue, Reason: reasons.New(reasons.InOrder, "pods that are before it may run again")}
	}
	s.assume(p, node, now)
	return queues.Granted
}

// assume charges a pod as allocated on a node after all checks.
func (s *Store) assume(p *pod, node string, now time.Time) {
	if !p.state.HasSlot() {
		s.withdraw(p)
	}
	s.pending.Classes.Placed(p.equivalenceClass)
	s.toAllocated(p, state.Assumed, node)
	if p.RequiredNode != "" {
		s.supersede(p.On(), now)
	}
	p.treeGen = s.cache.Tree().TreeGeneration()
	s.pending.Window.Placed()
}

// Recheck tells, between Assume and the bind, whether the pod may still run. It may
// unless queues or limits changed since Assume so that the pod does not fit any more. Its
// application runs already, so maxapplications is not checked.
func (s *Store) Recheck(uid types.UID) queues.Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.pods[uid]
	if !known || p.state != state.Assumed || p.treeGen == s.cache.Tree().TreeGeneration() {
		return queues.Granted
	}
	if v := s.cache.Books.Recheck(&p.cachePod); !v.OK() {
		return v
	}
	p.treeGen = s.cache.Tree().TreeGeneration()
	return queues.Granted
}

// Forget takes back Assume: the pod is not bound. It changes nothing for a pod that is
// not assumed, so it may be called late and more than once.
func (s *Store) Forget(uid types.UID, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	p, known := s.pods[uid]
	if !known || p.state != state.Assumed {
		return
	}
	node := p.Node
	s.leaveAllocated(p)
	p.Node = ""
	s.charge(p, p.Request, cache.Pending)
	s.enter(p, state.Unschedulable)
	s.weigh(p)
	s.pending.Window.Failed()
	s.toParked(p, whyForgotten(s.preemption.Holds, p, node), now)
	p.erred, p.asks.RetryAt = true, latest(p.asks.RetryAt, p.notUntil) // not tried before its back-off ends
	s.cool(p, p.notUntil)                                              // it comes back by itself, without an event
	s.heardDemand(p)                                                   // PodScheduled is from before the pod had a node
	s.keepAsking(p)
	if p.asks.Holds() {
		s.preemption.Holds.TimesChange()
	}
	s.gone(uid, now)
	s.wakeHolders(node, uid, now)
	s.history.reports.LookSoon(p.report, now)
	if late := p.late; late != nil {
		p.late = nil
		s.upsert(late, now)
	}
	if s.pods[uid] == p && p.state == state.BackingOff && !s.cache.Tree().Queue(p.app.Leaf).Leaf {
		s.unplace(p, now)
		s.place(p, now)
	}
}

// explain returns why a pod is in its state; none for pods that were let through.
func (s *Store) explain(p *pod) reasons.Reason {
	switch p.state {
	case state.NoQueue:
		if !s.started {
			return s.notStarted()
		}
		return p.reason
	case state.Queued:
		if p.heldByClass() {
			return p.stopped() // its cycle found no node, and since then a pod of its class found none
		}
		if v := p.ask.Group().Verdict(); !v.OK() {
			// The verdict may be old; users want the current numbers.
			if latest := s.cache.Books.CheckQuota(&p.app.cacheApp, p.Request, queues.OnAllocated); latest.Reason.Code == v.Reason.Code {
				return latest.Reason
			}
			return v.Reason
		}
		return reasons.New(reasons.InOrder, "queue %s: pods that wait for their turn in the queue: %d",
			s.cache.Tree().Queue(p.app.Leaf).Path, s.pending.Order.EligibleAt(p.app.Leaf))
	case state.GroupBlocked:
		return p.mates.Why(PodGroupLabel)
	case state.Unschedulable:
		return p.stopped()
	case state.BackingOff:
		if p.asks.Holds() || !p.beyond.None() {
			return p.stopped()
		}
		return reasons.New(reasons.BackingOff, "the pod failed %s and is tried again after its back-off; the last time: %s", times(p.failed.attempts()), p.reason.Text)
	}
	return reasons.Reason{}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Explain returns why a pending pod does not run; none if it was let through, runs, or is
// not known.
func (s *Store) Explain(uid types.UID) reasons.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, known := s.pods[uid]; known {
		return s.explain(p)
	}
	return reasons.Reason{}
}
