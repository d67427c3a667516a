package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// The demand are pods that found no node and would run if nodes were added. In the order,
// one after another, such pods count against every quota. A pod is within the demand while
// all quotas allow it in addition to allocated pods and the pods before it, and beyond
// otherwise. Nothing is charged: a pod beyond is still tried, and runs where it fits.
//
//	found no node ──► checked on the sum so far ──► within (added to the sum) or beyond
//	once a second, after a change: the sum is computed over all of them, in the order

// foundNoNode adds a pod that found no node to the demand, if every quota allows it.
func (s *Store) foundNoNode(p *pod, now time.Time) {
	if p.RequiredNode != "" || p.app == nil || p.state.HasNode() {
		return // no autoscaler adds the node of a DaemonSet pod
	}
	s.pending.Demand.Add(p.UID)
	switch {
	case !p.within:
		s.setDemand(p, s.countDemand(p), now)
	case !p.app.Counted(): // it was, while the pod was tried, and the sum may be of that time
		s.startDemand(p.app, resources.Vector{})
	}
}

// startDemand adds a request to the sum and, with the first one, its application.
func (s *Store) startDemand(a *app, request resources.Vector) {
	s.pending.Demand.Count(s.cache.Tree(), a.Leaf, a.Owner, request, a, a.Counted())
}

// heardDemand takes over what PodScheduled of a pending pod says. This process or an
// earlier one may have written it.
func (s *Store) heardDemand(p *pod) {
	if p.Demand == objects.DemandUnsaid || p.RequiredNode != "" || p.state.HasNode() {
		return
	}
	if p.app != nil {
		s.pending.Demand.Add(p.UID)
	}
	s.pending.Demand.Recheck(p.UID) // an earlier write may have been refused
}

// stopped is why a pod waits after a failed cycle: the quota that it is beyond, or the
// result of the cycle.
func (p *pod) stopped() reasons.Reason {
	if p.asks.Holds() || p.beyond.None() {
		return p.reason
	}
	return p.beyond
}

// leaveDemand takes out a pod that has got a node or lost its queue.
func (s *Store) leaveDemand(p *pod) {
	if s.pending.Demand.Remove(p.UID) {
		p.within, p.beyond = false, reasons.Reason{}
	}
}

// countDemand adds a pod to the sum, or returns the quota that refuses it.
func (s *Store) countDemand(p *pod) queues.Verdict {
	if !queues.HasQuota(s.cache.Tree(), p.app.Leaf) {
		return queues.Granted
	}
	starts := !p.app.Counted() && !s.pending.Demand.Starts(p.app)
	if v := s.cache.Books.CheckQuotaAs(&p.app.cacheApp, !starts, p.Request, queues.OnDemand(s.pending.Demand.Sum())); !v.OK() {
		return v
	}
	s.startDemand(p.app, p.Request)
	return queues.Granted
}

// setDemand sets a pod's verdict. If it changed, users are told.
func (s *Store) setDemand(p *pod, v queues.Verdict, now time.Time) {
	if p.within != v.OK() || p.beyond.Code != v.Reason.Code {
		s.history.changed(p)
		s.history.reports.LookNow(p.report, now) // the reason that it waits changed, too
	}
	p.within, p.beyond = v.OK(), v.Reason
}

// reckonDemand recomputes the sum after a change, at most once a second: in the order of
// the waiting pods, as if each pod within had a node.
func (s *Store) reckonDemand(now time.Time) {
	if !s.pending.Demand.Restart(now) {
		return
	}
	waiting := s.pending.Demand.Pods()
	if len(waiting) == 0 {
		return
	}
	trial := s.newTrial()
	for _, uid := range waiting {
		switch p := s.pods[uid]; {
		case p.asks.Holds(): // it is charged as arriving
		case p.state.HasSlot(): // it is about to be tried, before all others
			if p.within {
				s.setDemand(p, s.countDemand(p), now)
			}
		case !queues.HasQuota(s.cache.Tree(), p.app.Leaf):
			s.setDemand(p, queues.Granted, now)
		default:
			trial.push(p)
		}
	}
	for ask, ok := trial.index.Next(); ok; ask, ok = trial.index.Next() {
		p := trial.pods[ask]
		if v := s.countDemand(p); !v.OK() {
			trial.index.Block(ask.Group(), v)
			continue
		}
		s.setDemand(p, queues.Granted, now)
		trial.place(ask)
	}
	for ask, p := range trial.pods {
		s.setDemand(p, ask.Group().Verdict(), now)
	}
}

// trial is the order of some pods while they get nodes one after another.
type trial struct {
	tree  *queues.Draft
	index *order.Index
	pods  map[*order.Ask]*pod
	apps  map[*app]*order.App
	used  map[*app]resources.Vector      // committed plus placed
	below map[queues.ID]resources.Vector // placed below a queue
}

func (s *Store) newTrial() *trial {
	t := &trial{tree: s.cache.Tree(), index: order.NewIndex(), pods: map[*order.Ask]*pod{}, apps: map[*app]*order.App{},
		used: map[*app]resources.Vector{}, below: map[queues.ID]resources.Vector{}}
	t.index.SetCapacity(s.cache.Capacity.Told())
	t.index.SetStrict(s.preemption.StrictGuarantee)
	return t
}

func (x *trial) push(p *pod) {
	a := p.app
	if x.apps[a] == nil {
		x.addPath(a.Leaf)
		x.apps[a], x.used[a] = x.index.NewApp(a.Leaf, a.Name.String(), a.Submitted, a.class(x.tree)), a.Committed()
		x.index.SetAppUsed(x.apps[a], x.used[a])
	}
	x.pods[x.index.Push(x.apps[a], p.askKey(), p.Request)] = p
}

// addPath adds the queues on a leaf's path, root first.
func (x *trial) addPath(id queues.ID) {
	q := x.tree.Queue(id)
	if _, known := x.below[id]; known || q == nil {
		return
	}
	x.addPath(q.Parent)
	x.below[id] = resources.Vector{}
	x.index.SetQueue(id, q.Settings)
	x.index.SetUsed(id, q.Committed(), q.CommittedKept())
}

// place takes an ask out of the trial, as if its pod ran.
func (x *trial) place(ask *order.Ask) {
	p := x.pods[ask]
	delete(x.pods, ask)
	x.index.Remove(ask)
	a := p.app
	x.used[a] = x.used[a].Add(p.Request)
	x.index.SetAppUsed(x.apps[a], x.used[a])
	c := a.class(x.tree)
	c.Counted = true
	x.index.SetClass(x.apps[a], c)
	for q := range x.tree.Ancestors(a.Leaf) {
		more := x.below[q.ID].Add(p.Request)
		x.below[q.ID] = more
		x.index.SetUsed(q.ID, q.Committed().Add(more), q.CommittedKept().Add(more))
	}
}

// BeyondQuota returns the quota that keeps a pod that found no node from running even on
// a new node; none if it would run there, or is not known.
func (s *Store) BeyondQuota(uid types.UID) reasons.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pods[uid]; p != nil {
		return p.beyond
	}
	return reasons.Reason{}
}

// takeDemand returns at most limit pods for which PodScheduled needs an update.
func (s *Store) takeDemand(limit int, now time.Time) []Report {
	s.reckonDemand(now)
	if !s.started {
		return nil
	}
	var out []Report
	for _, uid := range s.pending.Demand.ToCheck() {
		if len(out) == limit {
			break
		}
		s.pending.Demand.Checked(uid)
		p := s.pods[uid]
		if p == nil || p.state.HasSlot() || p.state.HasNode() || p.asks.Holds() {
			continue
		}
		if want, why := p.demandOf(); want != objects.DemandUnsaid && want != p.Demand {
			out = append(out, Report{Ref: p.Ref(), Demand: want, Reason: why})
		}
	}
	return out
}

// demandOf is what PodScheduled of a waiting pod should say; Unsaid if the scheduler's
// own condition is right or none is needed.
func (p *pod) demandOf() (objects.DemandSaid, reasons.Reason) {
	switch {
	case p.state == state.NoQueue && p.Demand == objects.DemandWanted && !p.Gated: // no queue takes it, so no node helps
		return objects.DemandBeyond, p.reason
	case !p.beyond.None():
		return objects.DemandBeyond, p.beyond
	case p.within && p.Demand == objects.DemandBeyond && p.reason.None():
		return objects.DemandWanted, reasons.New(reasons.NoNodeFits, "no node could take the pod")
	case p.within && p.Demand == objects.DemandBeyond:
		return objects.DemandWanted, p.reason
	}
	return objects.DemandUnsaid, reasons.Reason{}
}

// checkDemand verifies that pods within or beyond wait in queues.
func (s *Store) checkDemand() error {
	errs := []error{s.pending.Demand.Check(func(uid types.UID) bool {
		p := s.pods[uid]
		return p != nil && p.app != nil && !p.state.HasNode() && p.state != state.NoQueue
	})}
	for uid, p := range s.pods {
		switch {
		case p.within && !p.beyond.None():
			errs = append(errs, fmt.Errorf("demand: pod %s is within and beyond", uid))
		case !s.pending.Demand.Has(uid) && (p.within || !p.beyond.None()):
			errs = append(errs, fmt.Errorf("demand: pod %s is within or beyond and not known", uid))
		}
	}
	return errors.Join(errs...)
}
