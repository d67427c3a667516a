package store

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Upsert handles an event of a managed pod, or of a foreign pod that has a node. It may
// be called late, again with the same content, and without an earlier call for the pod.
func (s *Store) Upsert(event objects.Pod, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	event.Normalize()
	s.cache.Types.Split(&event)
	s.preemption.Holds.Claimed(&event)
	s.out.freed(s.preemption.NodeBound.Update(&event, now))
	s.upsert(&event, now)
}

func (s *Store) upsert(event *objects.Pod, now time.Time) {
	p, known := s.pods[event.UID]
	if event.Foreign {
		s.upsertForeign(p, event, now)
		return
	}
	switch {
	case event.Terminal, event.Deleting && event.Node == "" && !(known && p.state == state.Assumed):
		// It uses nothing and will use nothing.
		if known {
			s.drop(p, now)
		}
	case !known:
		s.add(event, now)
	case event.Node != "":
		s.confirm(p, event, now)
	case p.state.HasNode():
		// The bind is not seen yet. This event takes effect if the bind fails.
		s.recounted(p, func() { p.Deleting = event.Deleting })
		if p.state == state.Assumed {
			p.late = event
		}
		s.history.changed(p)
		s.live(p, !p.Deleting)
		s.weigh(p)
	default:
		s.change(p, event, now)
	}
}

// Delete handles the deletion of a pod.
func (s *Store) Delete(uid types.UID, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	s.preemption.Holds.Claimed(&objects.Pod{UID: uid})
	s.out.freed(s.preemption.NodeBound.Remove(uid))
	if p, known := s.pods[uid]; known {
		s.drop(p, now)
	}
}

// add adds an unknown pod.
func (s *Store) add(event *objects.Pod, now time.Time) {
	p := newPod(event, s.noTurn)
	s.pods[p.UID] = p
	s.cache.Types.Note(p.Pod)
	s.cache.Protection.Change(cache.Guarded{}, p.guarded())
	s.unplaced[p.UID] = p
	s.history.tally(p)
	s.history.changed(p)
	s.inherit(p, now)
	p.report = s.history.reports.Expect(p.UID, p.Told, now)
	s.joinMates(p)
	s.enlist(p, now)
	if s.started {
		s.place(p, now)
		s.adopt(p, now)
	}
}

// drop removes a pod in any state.
func (s *Store) drop(p *pod, now time.Time) {
	if p.Foreign {
		s.dropForeign(p, now)
		return
	}
	s.suspectRefusal(p, now)
	node := p.On()
	s.endHold(p, reservations.Deleted, reasons.New(reasons.HoldGivenUp, "the pod is gone"), now)
	switch p.state {
	case state.Queued:
		s.leaveOrder(p)
	case state.Admitted, state.Scheduling:
		s.vacate(p)
	case state.BackingOff, state.Unschedulable:
		s.leaveCooling(p)
	case state.Assumed, state.Bound:
		s.leaveAllocated(p)
	}
	s.disarm(p)
	s.pending.Classes.Leave(&p.equivalenceClass, p.state)
	s.leaveDemand(p)
	if p.state != state.NoQueue {
		if !p.state.HasNode() {
			s.charge(p, p.Amount(), 0)
		}
		s.leaveForGood(p, now)
	}
	s.pending.Keys.Remove(p.UID)
	s.cache.Protection.Change(p.guarded(), cache.Guarded{})
	delete(s.pods, p.UID)
	s.cache.Types.Forget(p.UID)
	delete(s.unplaced, p.UID)
	s.history.waits.Update(&p.tallied, history.Tally{})
	s.history.reports.Forget(p.report)
	s.settleOn(p, "", resources.Vector{})
	s.history.pods.Remove(p, p.UID)
	s.leaveMates(p)
	s.leaveGang(p, now)
	s.gone(p.UID, now)
	if node != nil {
		s.wakeHolders(node.Name(), "", now)
	}
}

// confirm handles an event with the pod on a node.
func (s *Store) confirm(p *pod, event *objects.Pod, now time.Time) {
	if p.state.HasNode() {
		if p.state == state.Assumed {
			s.confirmed(p, event, now)
		}
		if p.state == state.Assumed || looksDifferent(p.Pod, event) {
			s.touchPod(p)
		}
		s.enter(p, state.Bound)
		p.late = nil
		s.history.begin(p.app)
		s.resize(p, event, now)
		s.endHold(p, reservations.Bound, reasons.Reason{}, now)
		s.follow(p, now)
		s.atWork(p, now)
		return
	}
	// Another scheduler bound it, or the store has just started: quotas do not apply.
	if p.state == state.NoQueue {
		s.takeOver(p, event)
		s.history.changed(p)
		s.joinMates(p)
		s.enlist(p, now)
		if s.started {
			s.place(p, now)
		}
		return
	}
	if !p.state.HasSlot() {
		s.withdraw(p)
	}
	s.renewPod(p, event)
	s.toAllocated(p, state.Bound, event.Node)
	s.endHold(p, reservations.Bound, reasons.Reason{}, now)
	s.follow(p, now)
	s.pending.Release(s.cache.Tree(), p.app.Leaf) // it may use less than it requested
	s.atWork(p, now)
}

// resize applies any change of what an allocated pod uses.
func (s *Store) resize(p *pod, event *objects.Pod, now time.Time) {
	elsewhere := p.On() == nil || p.On().Name() != event.Node
	if elsewhere {
		s.history.notePod(Released, p)
	}
	s.renewPod(p, event)
	more := event.Request.Sub(p.Amount())
	if !more.IsZero() {
		s.charge(p, event.Request, p.In())
		s.pending.Release(s.cache.Tree(), p.app.Leaf)
	}
	switch {
	case elsewhere:
		s.history.notePod(Allocated, p)
	case !more.IsZero():
		s.history.addFact(Event{Kind: Resized, App: p.app.told, Amount: more})
	}
	moved := elsewhere || !more.IsZero()
	if moved {
		s.settleOn(p, event.Node, p.Amount())
		s.wakeHolders(event.Node, "", now)
	}
	s.weigh(p)
}

// looksDifferent tells whether an event changes a running pod for plans. Changes of its
// usage, and whether it leaves, are handled elsewhere.
func looksDifferent(before, after *objects.Pod) bool {
	return before.Priority != after.Priority || before.Static != after.Static || before.RequiredNode != after.RequiredNode || before.MaybeDaemon != after.MaybeDaemon ||
		before.Class != after.Class || before.OptOut != after.OptOut || !before.Created.Equal(after.Created) ||
		!maps.Equal(before.Labels, after.Labels)
}

// renewPod takes over the content of an event. It updates the application if the event
// changes whether the pod lives, or its owners or originator setting.
func (s *Store) renewPod(p *pod, event *objects.Pod) {
	same := p.app == nil || p.Deleting == event.Deleting && p.Originator == event.Originator &&
		p.Created.Equal(event.Created) && slices.Equal(p.Owners, event.Owners)
	if !same {
		s.live(p, false)
	}
	s.takeOver(p, event)
	s.history.changed(p)
	s.joinMates(p)
	if !same {
		s.live(p, !p.Deleting)
	}
}

// withdraw takes a pending pod out of the order, the window and the deadlines. The caller
// sets its next state.
func (s *Store) withdraw(p *pod) {
	switch p.state {
	case state.Queued:
		s.leaveOrder(p)
	case state.Admitted, state.Scheduling:
		s.vacate(p)
	case state.BackingOff, state.Unschedulable:
		s.leaveCooling(p)
	}
}

// change handles an event of a pending pod.
func (s *Store) change(p *pod, event *objects.Pod, now time.Time) {
	p.ownAsks() // before Start a late event may take the node from a pod
	same := p.Request.Equal(event.Request) && p.Uncounted.Equal(event.Uncounted) && p.Priority == event.Priority && p.Gated == event.Gated && p.RequiredNode == event.RequiredNode &&
		(maps.Equal(p.Labels, event.Labels) && maps.Equal(p.Annotations, event.Annotations) || p.asks.Holds() && s.options.staysPut(p, event))
	if same {
		s.renewPod(p, event)
		s.follow(p, now)
		s.heardDemand(p)
		return
	}
	s.endHold(p, reservations.GivenUp, reasons.New(reasons.HoldGivenUp, "the pod was changed"), now)
	if p.state.HasSlot() && p.assumedRequest == nil && !event.Request.Covers(p.Request) {
		before := p.Request
		p.assumedRequest = &before
	}
	if p.state != state.NoQueue {
		s.unplace(p, now)
	}
	s.takeOver(p, event)
	s.history.changed(p)
	p.reason = reasons.Reason{}
	if p.asks != nil {
		p.asks.Impossible = false
	}
	s.history.tally(p)
	s.joinMates(p)
	s.enlist(p, now)
	if s.started {
		s.place(p, now)
	}
}

// staysPut tells whether a pod has the same application and queue after a change. The
// hold of such a pod is kept, because pods were deleted for it.
func (o *Options) staysPut(p *pod, event *objects.Pod) bool {
	before, _ := placement.Identify(placementOf(p.Pod), o.Placement)
	after, _ := placement.Identify(placementOf(event), o.Placement)
	return reflect.DeepEqual(before, after)
}

// unplace takes a pending pod out of its application.
func (s *Store) unplace(p *pod, now time.Time) {
	s.endHold(p, reservations.GivenUp, reasons.New(reasons.HoldGivenUp, "the pod is to have another queue"), now)
	s.withdraw(p)
	s.disarm(p)
	s.weighAs(p, 0)
	s.charge(p, p.Amount(), 0)
	s.pending.Classes.Leave(&p.equivalenceClass, p.state)
	s.leaveDemand(p)
	s.leave(p, now)
	s.enter(p, state.NoQueue)
	s.unplaced[p.UID] = p
}
