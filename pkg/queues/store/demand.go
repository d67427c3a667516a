package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// DemandSaid is what the condition PodScheduled of a pod says to cluster autoscalers.
type DemandSaid uint8

// Unsaid: no node was looked for yet, or something else is in the way. Wanted: the reason
// is Unschedulable, by which autoscalers add nodes. Beyond: the reason is SchedulingGated
// and the pod has no scheduling gate, so this scheduler wrote it.
const (
	DemandUnsaid DemandSaid = iota
	DemandWanted
	DemandBeyond
)

// demandEvery is how often the demand is reckoned anew while things change.
const demandEvery = time.Second

// demand is which of the pods that found no node would run if nodes came. In the order, one
// after another, such pods count against every quota. A pod is within while all quotas
// allow it on top of what has a node and of the pods before it, and beyond otherwise.
// Nothing is charged: a pod beyond is still tried, and runs where it fits.
//
//	found no node ──► judged on the sum so far ──► within (counted in the sum) or beyond
//	once a second, after a change: the sum is made anew, in the order, of all of them
//
// Between two reckonings the sum only grows. Until the next one it may contain pods that
// have a node by now, so a pod may be beyond for a second although it is within.
type demand struct {
	sum    *queues.Demand
	starts map[*app]bool      // applications whose start is in the sum
	pods   map[types.UID]*pod // that found no node, or of which PodScheduled says something
	// check are pods of which PodScheduled may have to say something else.
	check map[types.UID]struct{}
	stale bool // the pods, or what queues use, changed since the sum was made
	made  time.Time
}

func newDemand() demand {
	return demand{sum: queues.NewDemand(), starts: map[*app]bool{}, pods: map[types.UID]*pod{}, check: map[types.UID]struct{}{}}
}

// foundNoNode counts a pod for which no node was found, if every quota allows that.
func (s *Store) foundNoNode(p *pod, now time.Time) {
	if p.RequiredNode != "" || p.app == nil || p.state.allocated() {
		return // no autoscaler adds the node of a DaemonSet pod
	}
	s.demand.pods[p.UID], s.demand.stale = p, true
	if !p.within {
		s.setDemand(p, s.countDemand(p), now)
	}
}

// heardDemand takes over what PodScheduled of a pending pod says, which may be what this
// process has written, or what an earlier one did.
func (s *Store) heardDemand(p *pod) {
	if p.Demand == DemandUnsaid || p.RequiredNode != "" || p.state.allocated() {
		return
	}
	if p.app != nil {
		s.demand.pods[p.UID], s.demand.stale = p, true
	}
	s.demand.check[p.UID] = struct{}{} // a write before this event may have been refused
}

// stopped is why a pod whose cycle came to nothing waits: the quota that it is beyond, or what
// the cycle found.
func (p *pod) stopped() reasons.Reason {
	if p.asks.holds || p.beyond.None() {
		return p.reason
	}
	return p.beyond
}

// leaveDemand takes a pod out that has a node, or waits in no queue.
func (s *Store) leaveDemand(p *pod) {
	if _, known := s.demand.pods[p.UID]; !known {
		return
	}
	delete(s.demand.pods, p.UID)
	delete(s.demand.check, p.UID)
	p.within, p.beyond, s.demand.stale = false, reasons.Reason{}, true
}

// countDemand adds a pod to the sum, or says which quota refuses it.
func (s *Store) countDemand(p *pod) queues.Verdict {
	if !queues.HasQuota(s.draft, p.app.leaf) {
		return queues.Granted
	}
	starts := !p.app.counted && !s.demand.starts[p.app]
	if v := s.judgeAs(p.app, !starts, p.Request, queues.OnDemand(s.demand.sum)); !v.OK() {
		return v
	}
	s.demand.sum.Add(s.draft, p.app.leaf, p.app.owner, p.Request, starts)
	if starts {
		s.demand.starts[p.app] = true
	}
	return queues.Granted
}

// setDemand notes a verdict, and has people told if it is another one.
func (s *Store) setDemand(p *pod, v queues.Verdict, now time.Time) {
	if p.within != v.OK() || p.beyond.Code != v.Reason.Code {
		s.changed(p)
		if p.report != nil {
			s.reports.look(p.report, now) // why it waits is another reason, too
		}
	}
	p.within, p.beyond = v.OK(), v.Reason
}

// reckonDemand makes the sum anew after a change, once a second at most: in the order of
// those that wait, as if each pod within had a node.
func (s *Store) reckonDemand(now time.Time) {
	d := &s.demand
	if !d.stale || now.Before(d.made.Add(demandEvery)) {
		return
	}
	d.stale, d.made, d.sum = false, now, queues.NewDemand()
	clear(d.starts)
	if len(d.pods) == 0 {
		return
	}
	x := s.newTrial()
	for _, p := range d.pods {
		switch {
		case p.asks.holds: // it is arriving
		case p.state == admitted: // it is about to be tried again, before all others
			if p.within {
				s.setDemand(p, s.countDemand(p), now)
			}
		case !queues.HasQuota(s.draft, p.app.leaf):
			s.setDemand(p, queues.Granted, now)
		default:
			x.push(p)
		}
	}
	for ask, ok := x.index.Next(); ok; ask, ok = x.index.Next() {
		p := x.pods[ask]
		if v := s.countDemand(p); !v.OK() {
			x.index.Block(ask.Group(), v)
			continue
		}
		s.setDemand(p, queues.Granted, now)
		x.place(ask)
	}
	for ask, p := range x.pods {
		s.setDemand(p, ask.Group().Verdict(), now)
	}
	for uid := range d.pods {
		d.check[uid] = struct{}{}
	}
}

// trial is the order of some pods, in which they get nodes one after another.
type trial struct {
	s     *Store
	index *order.Index
	pods  map[*order.Ask]*pod
	apps  map[*app]*order.App
	used  map[*app]resources.Vector      // committed, and what was placed
	below map[queues.ID]resources.Vector // what was placed below a queue
}

func (s *Store) newTrial() *trial {
	x := &trial{s: s, index: order.NewIndex(), pods: map[*order.Ask]*pod{}, apps: map[*app]*order.App{},
		used: map[*app]resources.Vector{}, below: map[queues.ID]resources.Vector{}}
	x.index.SetCapacity(s.capacity.told)
	x.index.SetStrict(s.preemption.StrictGuarantee)
	return x
}

func (x *trial) push(p *pod) {
	a := p.app
	if x.apps[a] == nil {
		x.addPath(a.leaf)
		x.apps[a], x.used[a] = x.index.NewApp(a.leaf, a.name.String(), a.submitted, x.s.class(a)), a.committed()
		x.index.SetAppUsed(x.apps[a], x.used[a])
	}
	x.pods[x.index.Push(x.apps[a], p.askKey(), p.Request)] = p
}

// addPath adds the queues of a leaf, root first.
func (x *trial) addPath(id queues.ID) {
	q := x.s.draft.Queue(id)
	if _, known := x.below[id]; known || q == nil {
		return
	}
	x.addPath(q.Parent)
	x.below[id] = resources.Vector{}
	x.index.SetQueue(id, q.Settings)
	x.index.SetUsed(id, q.Committed(), q.CommittedKept())
}

// place takes an ask out of the order, as if its pod ran.
func (x *trial) place(ask *order.Ask) {
	p := x.pods[ask]
	delete(x.pods, ask)
	x.index.Remove(ask)
	a := p.app
	x.used[a] = x.used[a].Add(p.Request)
	x.index.SetAppUsed(x.apps[a], x.used[a])
	c := x.s.class(a)
	c.Counted = true
	x.index.SetClass(x.apps[a], c)
	for q := range x.s.draft.Ancestors(a.leaf) {
		more := x.below[q.ID].Add(p.Request)
		x.below[q.ID] = more
		x.index.SetUsed(q.ID, q.Committed().Add(more), q.CommittedKept().Add(more))
	}
}

// BeyondQuota says which quota keeps a pod that found no node from running even if a node
// came; none if it would run then, or is not known.
func (s *Store) BeyondQuota(uid types.UID) reasons.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, known := s.demand.pods[uid]; known {
		return p.beyond
	}
	return reasons.Reason{}
}

// takeDemand returns at most limit pods of which PodScheduled has to say something else.
func (s *Store) takeDemand(limit int, now time.Time) []Report {
	s.reckonDemand(now)
	if !s.started {
		return nil
	}
	var out []Report
	for _, uid := range slices.Sorted(maps.Keys(s.demand.check)) {
		if len(out) == limit {
			break
		}
		delete(s.demand.check, uid)
		p := s.pods[uid]
		if p == nil || p.state == admitted || p.state.allocated() || p.asks.holds {
			continue
		}
		if want, why := s.demandOf(p); want != DemandUnsaid && want != p.Demand {
			out = append(out, Report{Ref: p.Ref(), Demand: want, Reason: why})
		}
	}
	return out
}

// demandOf is what PodScheduled of a waiting pod has to say; Unsaid where the scheduler
// says it, or nothing need be said.
func (s *Store) demandOf(p *pod) (DemandSaid, reasons.Reason) {
	switch {
	case p.state == unplaced && p.Demand == DemandWanted && !p.Gated: // no queue takes it, on any node
		return DemandBeyond, p.reason
	case !p.beyond.None():
		return DemandBeyond, p.beyond
	case p.within && p.Demand == DemandBeyond && p.reason.None():
		return DemandWanted, reasons.New(reasons.NoNodeFits, "no node could take the pod")
	case p.within && p.Demand == DemandBeyond:
		return DemandWanted, p.reason
	}
	return DemandUnsaid, reasons.Reason{}
}

// checkDemand verifies that pods within or beyond are pods of queues that wait.
func (s *Store) checkDemand() error {
	var errs []error
	for uid, p := range s.demand.pods {
		if s.pods[uid] != p || p.app == nil || p.state.allocated() || p.state == unplaced {
			errs = append(errs, fmt.Errorf("demand: pod %s does not wait in a queue", uid))
		}
		if p.within && !p.beyond.None() {
			errs = append(errs, fmt.Errorf("demand: pod %s is within and beyond", uid))
		}
	}
	for uid, p := range s.pods {
		if s.demand.pods[uid] == nil && (p.within || !p.beyond.None()) {
			errs = append(errs, fmt.Errorf("demand: pod %s is within or beyond and not known", uid))
		}
	}
	return errors.Join(errs...)
}
