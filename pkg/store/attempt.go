package store

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// Attempt is the input of a plan for a pod. It is immutable.
type Attempt struct {
	World *planner.World
	Ask   *planner.Ask
	// Strict is params.StrictGuarantee.
	Strict bool
}

// Attempt returns the input of a plan for a pod that no node took or that a quota
// refused, or the reason why no plan may be made. inPermit are pods that wait in a Permit
// plugin: they may be victims although they are not bound. kind is as in [Store.Failed].
func (s *Store) Attempt(uid types.UID, kind string, inPermit []types.UID, now time.Time) (*Attempt, reasons.Reason) {
	s.mu.Lock()
	defer s.unlock(now)
	p, known := s.pods[uid]
	switch {
	case !known || !s.started:
		return nil, reasons.Brief(reasons.Starting)
	case p.app == nil:
		return nil, s.explain(p)
	case p.state.HasNode():
		return nil, reasons.Reason{Code: reasons.InOrder, Text: "the pod has a node"}
	case s.mayNotHold(p):
		return nil, notLeading()
	}
	if v := s.alone(p); !v.OK() {
		return nil, v.Reason
	}
	if p.state.HasSlot() && !p.apart() {
		s.pending.Classes.Join(&p.equivalenceClass, p.app.ordered, p.Request, kind, p.state)
	}
	if why := s.mayPlan(p, now); !why.None() {
		s.history.say(p, why.Code, now.Add(s.preemption.RetryInterval))
		return nil, why
	}
	s.setInPermit(p, inPermit)
	p.asks.TriedAt = now
	s.preemption.Watches.PlanBegins()
	ask := askOf(&s.preemption.Snapshot.Types, p) // before the snapshot: it may add a resource type
	ask.Group = s.groupFor(p, nil)
	w := s.planningWorld()
	s.setFree(ask.Group, p, nil)
	w.Nodes = p.sweeping().Rest(w.Nodes)
	return &Attempt{Ask: ask, World: w, Strict: s.preemption.StrictGuarantee}, reasons.Reason{}
}

// mayPlan runs the checks before a plan.
func (s *Store) mayPlan(p *pod, now time.Time) reasons.Reason {
	if why := s.never(p); !why.None() {
		return why
	}
	if h, ok := s.preemption.Holds.Of(p.UID); ok {
		taken := s.taken(p, &h)
		if taken.None() {
			return preemption.MakingRoom(&h)
		}
		s.endHold(p, reservations.Superseded, taken, now)
	}
	why, again := s.gate(p, now)
	if !again.IsZero() {
		if why.Code != reasons.PreemptionPaced {
			p.asks.RetryAt = again
		}
		s.arm(p, again)
	}
	return why
}

// never returns why no plan is ever made for a pod under the current configuration.
func (s *Store) never(p *pod) reasons.Reason {
	switch {
	case p.NeverPreempts:
		return reasons.New(reasons.PreemptionNever, "its preemptionPolicy is Never")
	case !s.cache.Spec.PreemptionEnabled:
		return reasons.New(reasons.PreemptionDisabled, "queues do not preempt: the partition has preemption.enabled: false")
	}
	return cache.NotOffered(p.Pod)
}

// gate returns why no plan is made for a pod now, and when one may be made; zero if time
// does not decide that.
func (s *Store) gate(p *pod, now time.Time) (why reasons.Reason, again time.Time) {
	leaf := s.cache.Tree().Queue(p.app.Leaf)
	if end := p.delayEnd(s.cache.Tree()); end.After(now) {
		if !s.mayAsk(p) { // no check of the pod follows the end of the delay
			return notOwed(leaf), time.Time{}
		}
		return reasons.New(reasons.PreemptionDelayed, "queue %s preempts for pods that waited for %v, this one in %v",
			leaf.Path, leaf.Policies.PreemptionDelay, wait(end, now)), time.Time{}
	}
	if v := s.cache.Books.CheckLimits(s.cache.Tree(), &p.app.cacheApp, p.Request, queues.OnAllocated); !v.OK() {
		return v.Reason, time.Time{}
	}
	if from, why := p.planFrom(); from.After(now) {
		return why, from
	}
	if tried, refused := p.lastRefused(); !refused.None() && tried.Add(atMostEvery).After(now) {
		return refused, tried.Add(atMostEvery)
	}
	if at := s.preemption.VictimsFrom(1, now); at.After(now) {
		return s.preemption.RoundIsFull(), at
	}
	if at := s.preemption.Limiter.PlansFrom(now); at.After(now) {
		return reasons.New(reasons.PreemptionPaced, "plans for other pods came to nothing and used up the time there is for such; this pod is planned for as soon as there is time again"), at
	}
	return reasons.Reason{}, time.Time{}
}

// notOwed is the refusal of a preemptor in a queue that already has its guarantee.
func notOwed(leaf *queues.Queue) reasons.Reason {
	return reasons.New(reasons.PreemptionRefused, "neither queue %s nor one above it is below its guarantee in what the pod requests (law 4)", leaf.Path)
}

// lastRefused returns when and why a plan for the pod, or for another pod of its
// equivalence class, failed.
func (p *pod) lastRefused() (at time.Time, why reasons.Reason) {
	at, why = p.asks.TriedAt, p.asks.Refused
	if t := p.equivalenceClass; t != nil && t.TriedAt.After(at) {
		at, why = t.TriedAt, t.Refused
	}
	return at, why
}

// wait is the time left until a given time, rounded for messages.
func wait(until, now time.Time) time.Duration {
	d := until.Sub(now)
	if d > time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

// setInPermit notes which pods wait in a Permit plugin and may be victims of a preemptor.
// Pods of its own PodGroup may not: the preemptor would get room, but its group would
// lack a member.
func (s *Store) setInPermit(asker *pod, uids []types.UID) {
	waits := make(map[types.UID]bool, len(uids))
	for _, uid := range uids {
		if p := s.pods[uid]; p != nil && !p.mateOf(asker) {
			if waits[uid] = true; !s.preemption.InPermit[uid] {
				s.touchPod(p)
			}
		}
	}
	for uid := range s.preemption.InPermit {
		if p := s.pods[uid]; p != nil && !waits[uid] {
			s.touchPod(p)
		}
	}
	s.preemption.InPermit = waits
}

// Decline says that a plan failed, or that the pod fits a node once pods that leave
// anyway are gone. That room is not held: it goes to the pod that is then first in the
// order. The pod is planned for again when the node changes. Decline returns the reason
// shown to users.
func (s *Store) Decline(uid types.UID, d *planner.Decision, now time.Time) reasons.Reason {
	s.mu.Lock()
	defer s.unlock(now)
	p, over := s.planned(uid)
	if !over.None() {
		s.preemption.Watches.PlanEnds()
		return over
	}
	why, code, watched, retry := Refusal(d), reasons.PreemptionRefused, named(s.cache.Tree(), d), s.preemption.RetryInterval
	if d.Outcome == planner.Wait {
		why, watched, retry = s.roomAwaited(p, d.Node)
		code = why.Code
	}
	s.enterStep(p, Step{Kind: StepRefused, Decision: d, Reason: why}, now)
	s.history.say(p, code, now.Add(s.preemption.RetryInterval))
	if p.sweeping().Continue(d) {
		retry = atMostEvery
	}
	p.asks.Refused, p.asks.RetryAt = why, now.Add(retry)
	if t := p.equivalenceClass; t != nil {
		t.TriedAt, t.RetryAt, t.Refused = now, p.asks.RetryAt, why
	}
	s.arm(p, p.asks.RetryAt)
	s.preemption.Limiter.PlanFailed(len(s.preemption.Snapshot.Nodes()), d.FitsCalls, now)
	s.preemption.Watches.Set(p.UID, watched)
	s.preemption.Watches.PlanRefused(p.UID)
	return why
}

// roomAwaited is for a pod that fits a node without victims. It returns the room that the
// pod waits for, the changes that end the wait, and after which time the pod is planned
// for without such a change.
func (s *Store) roomAwaited(p *pod, node string) (why reasons.Reason, watched []preemption.Watched, retry time.Duration) {
	watched, retry = []preemption.Watched{preemption.WatchedNode(node)}, s.preemption.RetryInterval
	leaving := s.awaitedOfQueues(p)
	if len(leaving) > 0 {
		watched = append(watched, p.watchedPath(s.cache.Tree())...)
	}
	leaving = append(leaving, s.awaited(&reservations.Hold{Node: node})...)
	var until []string
	for _, h := range s.preemption.Holds.Holders(node) {
		until = append(until, fmt.Sprintf("pod %s/%s, which holds the node, is placed", h.Namespace, h.Name))
	}
	if len(leaving) > 0 {
		until = append(until, "pods that leave already are gone: "+s.whoLeaves(leaving, node))
	}
	if _, why := s.cache.Nodes.Unusable(node); !why.None() {
		return why, watched, retry
	}
	if len(until) == 0 {
		return reasons.New(reasons.WaitingForRoom, "pods on node %s ended while this pod was tried; it is tried again in its turn", node), watched, atMostEvery
	}
	return reasons.New(reasons.WaitingForRoom, "node %s has room for the pod once %s; the pod that is first in the order then gets it",
		node, strings.Join(until, ", and ")), watched, retry
}

// whoLeaves lists leaving pods, with their nodes if not the given one, and the time when
// the last of them is gone.
func (s *Store) whoLeaves(uids []types.UID, node string) string {
	slices.Sort(uids)
	var names []string
	var last time.Time
	for _, uid := range slices.Compact(uids) {
		v := s.pods[uid]
		name := v.Namespace + "/" + v.Name
		if v.On().Name() != node {
			name += " of node " + v.On().Name()
		}
		names, last = append(names, name), latest(last, v.GoneBy)
	}
	slices.Sort(names)
	if last.IsZero() {
		return preemption.Listed(names)
	}
	return preemption.Listed(names) + " (by " + last.UTC().Format(time.RFC3339) + ")"
}

// planned returns the pod that a plan was made for, or why the plan no longer applies:
// the pod is gone or has a node.
func (s *Store) planned(uid types.UID) (*pod, reasons.Reason) {
	p, known := s.pods[uid]
	switch {
	case !known || p.app == nil:
		return nil, reasons.Brief(reasons.Starting)
	case p.state.HasNode():
		return nil, reasons.Reason{Code: reasons.InOrder, Text: "the pod has a node"}
	}
	return p, reasons.Reason{}
}

// named returns the queues and nodes where a change may lift a refusal. Root is left out
// because it changes with every pod; the retry interval covers it.
func named(tree *queues.Draft, d *planner.Decision) []preemption.Watched {
	var out []preemption.Watched
	for _, path := range d.Named {
		if q, ok := tree.Find(path); ok && !q.IsRoot() {
			out = append(out, preemption.WatchedQueue(q.ID))
		}
	}
	for _, node := range d.Unfit {
		out = append(out, preemption.WatchedNode(node))
	}
	return out
}
