package store

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// The states of a pod that can run on one node only and found no room there:
//
//	          Settle: it would fit without others      deadline, or its node changed
//	refused ─────────────────────► held, no victims ───────────────────────► let through
//	  ▲  │                           │                                         │ Settle
//	  │  │ its node changed          │ Settle: victims                         ▼
//	  │  └──► let through            └────────────► held, victims leave ◄── victims
//	  │                                                 │     Commit fails: held, no victims
//	  └──── it would still not fit,                     ▼
//	        or over a max: the hold ends             room: let through, bound: the hold ends
//
// Its hold begins before any victim is chosen, and lasts while plans change, so that no
// other pod gets the room in between. A new plan is made whenever a cycle of the pod
// fails, on the current state, in which chosen victims count as leaving.
//
// Such a pod is planned for at once and regardless of its queue's guarantee, so it is not
// in the [preemption.Queue]. A pod of no queue ([Pod.Peer]) has a record like
// this and is Unschedulable, or BackingOff if it has a deadline. It has no gate: it is let through
// by activating it.

// RequiredAttempt is the input of a decision for a pod that requires a node. Immutable.
type RequiredAttempt struct {
	Node *daemonset.Node
	// Before are the pods that are served before the preemptor, in the order of
	// Node.Before.
	Before []objects.Ref
	Ask    *daemonset.Ask
	// Params does not have the filters.
	Params daemonset.Params
}

// AttemptRequired returns the input of a decision for a DaemonSet pod that its node did
// not take or that a quota refused, or the reason why no decision may be made. inPermit
// is as in [Store.Attempt].
func (s *Store) AttemptRequired(uid types.UID, inPermit []types.UID, now time.Time) (*RequiredAttempt, reasons.Reason) {
	s.mu.Lock()
	defer s.unlock(now)
	p, known := s.pods[uid]
	switch {
	case !known || !s.started || p.RequiredNode == "":
		s.pending.TooEarly.Note(uid, now)
		return nil, reasons.Brief(reasons.Starting)
	case !p.Foreign && p.app == nil:
		return nil, s.explain(p)
	case p.state.HasNode():
		return nil, reasons.Reason{Code: reasons.InOrder, Text: "the pod has a node"}
	case s.mayNotHold(p):
		s.pending.TooEarly.Note(uid, now)
		return nil, notLeading()
	}
	s.out.freed(s.preemption.NodeBound.Tried(uid))
	s.preemption.NodeWaits.Remove(p.UID)
	if n := s.cache.Nodes.Get(p.RequiredNode); n != nil {
		s.setInPermit(p, inPermit)
		p.asks.Impossible = p.asks.Impossible && p.asks.SawNode == n.Generation()
		p.asks.SawNode = n.Generation()
	}
	if why := s.mayRequire(p, now); !why.None() {
		return nil, why
	}
	p.asks.TriedAt = now
	a := s.requirement(p, now)
	if a.Params.Bound(p.Namespace) {
		a.Node.Queues = s.cache.Snapshot()
	}
	return a, reasons.Reason{}
}

// mayRequire runs the checks before a decision.
func (s *Store) mayRequire(p *pod, now time.Time) reasons.Reason {
	n := s.cache.Nodes.Get(p.RequiredNode)
	if _, why := s.cache.Nodes.Unusable(p.RequiredNode); !why.None() {
		s.awaitNode(p, n)
		return why
	}
	if p.app != nil {
		if v := s.cache.Books.CheckLimits(s.cache.Tree(), &p.app.cacheApp, p.Request, queues.OnAllocated); !v.OK() {
			s.endHold(p, reservations.GivenUp, v.Reason, now)
			return v.Reason
		}
	}
	if from, why := p.planFrom(); from.After(now) && !p.asks.Holds() {
		s.awaitNode(p, n)
		if p.Foreign {
			s.rest(p, from)
		}
		return why
	}
	if p.asks.Impossible {
		s.awaitNode(p, n)
		return p.asks.Refused
	}
	return reasons.Reason{}
}

// requirement returns the input of a decision for a pod.
func (s *Store) requirement(p *pod, now time.Time) *RequiredAttempt {
	n := s.cache.Nodes.Get(p.RequiredNode)
	t := &s.preemption.Snapshot.Types
	node, before := s.requiredView(t, n, p)
	ask := &daemonset.Ask{Ask: askOf(t, p), OverMax: overMax(s.cache.Tree(), p)}
	if h, ok := s.preemption.Holds.Of(p.UID); ok {
		ask.Held = max(now.Sub(h.Since), 0)
	}
	ask.Arriving = t.Amounts(p.Charged(cache.Arriving))
	node.Types = t.Names() // amounts may have added types
	return &RequiredAttempt{Node: node, Before: before, Ask: ask, Params: s.preemption.Required}
}

// requiredView returns a node as a decision for a preemptor sees it, and the pods that
// are before the preemptor.
func (s *Store) requiredView(t *preemption.Types, n *cache.Node, p *pod) (*daemonset.Node, []objects.Ref) {
	view := &daemonset.Node{Name: n.Name(), Allocatable: t.Amounts(n.Allocatable())}
	budgets, left := map[int]int{}, s.disruptionsLeft(true)
	for _, other := range s.podsOn(n) {
		v := s.podView(t, other)
		for i, b := range v.Budgets {
			if _, known := budgets[b]; !known {
				budgets[b] = len(view.Budgets)
				view.Budgets = append(view.Budgets, left[b])
			}
			v.Budgets[i] = budgets[b]
		}
		view.Pods = append(view.Pods, daemonset.Pod{Pod: v, Peer: other.Peer})
	}
	var before []objects.Ref
	for _, h := range s.holdersBefore(p) {
		before = append(before, objects.Ref{UID: h.Asker, Namespace: h.Namespace, Name: h.Name})
		view.Before = append(view.Before, t.Amounts(h.Request))
	}
	return view, before
}

// holdersBefore returns the holders of a pod's required node that are served before it
// and are not placed yet, in order. The pod itself may hold the node or not.
func (s *Store) holdersBefore(p *pod) []reservations.Hold {
	own := &reservations.Hold{Asker: p.UID, Required: true, Priority: p.Priority, Created: p.Created}
	var out []reservations.Hold
	for _, h := range s.preemption.Holds.Holders(p.RequiredNode) {
		if h.Asker == p.UID || !h.Before(own) {
			break
		}
		if !s.isPlaced(h.Asker) {
			out = append(out, h)
		}
	}
	return out
}

// overMax is the path of the queue in which a preemptor would exceed the max, with all
// arriving and without leaving pods; empty for none.
func overMax(v queues.View, p *pod) string {
	if p.app == nil {
		return ""
	}
	itself := func(*queues.Queue) resources.Vector { return p.Charged(cache.Arriving) }
	if q := queues.OverExpected(v, p.app.Leaf, p.Request, itself); q != nil {
		return q.Path
	}
	return ""
}

// awaitNode makes the store check a preemptor again when its node changes. If there is no
// node, the scheduler brings the pod back when it comes.
func (s *Store) awaitNode(p *pod, n *cache.Node) {
	s.preemption.NodeWaits.Remove(p.UID)
	if n != nil {
		s.preemption.NodeWaits.Set(p.UID, n.Name())
	}
}

// recheckLater lets preemptors through when their node changed, at most once a second.
func (s *Store) recheckLater(now time.Time) {
	for _, uid := range s.preemption.NodeWaits.Take() {
		p := s.pods[uid]
		s.rest(p, latest(now, p.asks.TriedAt.Add(atMostEvery)))
	}
}

func sortedByUID(pods map[types.UID]*pod) []*pod {
	return slices.SortedFunc(maps.Values(pods), func(a, b *pod) int { return cmp.Compare(a.UID, b.UID) })
}

// rest makes a pod come back at a time if it is Unschedulable, or BackingOff with a later deadline.
func (s *Store) rest(p *pod, until time.Time) {
	switch {
	case p.state == state.Unschedulable:
		s.cool(p, until)
	case p.state == state.BackingOff && until.Before(p.timer.When()):
		s.pending.Timers.Set(&p.timer, until)
	}
}

// supersede ends those ordinary holds of a node that no longer fit there because of a pod
// that can run only there. It repeats after each one: the victims of an ended hold may
// stay, and then another hold may not fit either.
func (s *Store) supersede(n *cache.Node, now time.Time) {
	for again := true; again; {
		again = false
		for _, h := range s.preemption.Holds.Holders(n.Name()) {
			p := s.pods[h.Asker]
			if h.Required || p == nil || p.state.HasNode() || s.free(n, h.Asker).Covers(h.Request) {
				continue
			}
			s.endHold(p, reservations.Superseded, reasons.New(reasons.HoldSuperseded,
				"a pod that can run on node %s only takes the room there", n.Name()), now)
			again = true
			break
		}
	}
}

// declinedReason is why a preemptor's only node is not held for it.
func declinedReason(tree *queues.Draft, p *pod, d *daemonset.Decision) reasons.Reason {
	switch d.Stopped {
	case daemonset.RuleMax:
		if v := queues.Admit(tree, p.app.Leaf, p.Request, queues.OnCommitted); !v.OK() {
			return v.Reason
		}
		return reasons.New(reasons.OverMax, "%s", d.Sentence())
	case planner.RuleExtender:
		return reasons.New(reasons.PreemptionRefused, "%s", d.Sentence())
	case planner.RuleNeverPreempt:
		return reasons.New(reasons.PreemptionNever, "%s", d.Sentence())
	}
	return reasons.New(reasons.RoomImpossible, "%s", d.Sentence())
}
