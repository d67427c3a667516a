package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// Attempt is what a plan for a pod is made on. It does not change any more.
type Attempt struct {
	World *victims.World
	Ask   *victims.Ask
	// Strict is params.StrictGuarantee.
	Strict bool
}

// Attempt answers whether a plan may be made for a pod that no node took, or that
// a quota refused, and on what; else why not. inPermit are pods that wait for a
// Permit plugin: they may be victims though they are not bound. Kind is as in
// [Store.Failed].
func (s *Store) Attempt(uid types.UID, kind string, inPermit []types.UID, now time.Time) (*Attempt, reasons.Reason) {
	s.mu.Lock()
	defer s.unlock(now)
	p, known := s.pods[uid]
	switch {
	case !known || !s.started:
		return nil, reasons.Brief(reasons.Starting)
	case p.app == nil:
		return nil, s.explain(p)
	case p.state.allocated():
		return nil, reasons.Reason{Code: reasons.InOrder, Text: "the pod has a node"}
	case s.mayNotHold(p):
		return nil, notLeading()
	}
	if v := s.alone(p); !v.OK() {
		return nil, v.Reason
	}
	if p.state == admitted && !p.apart() {
		s.joinTwins(p, kind)
	}
	if why := s.mayPlan(p, now); !why.None() {
		s.say(p, why.Code, now)
		return nil, why
	}
	s.setInPermit(p, inPermit)
	p.asks.triedAt = now
	s.asking.during = map[named]struct{}{}
	ask := s.askOf(p) // before the world: it may bring a type that nothing has had yet
	ask.Group = s.groupFor(p)
	w := s.planningWorld()
	s.setFree(ask.Group, p, nil)
	w.Nodes = p.sweeping().rest(w.Nodes)
	return &Attempt{Ask: ask, World: w, Strict: s.preemption.StrictGuarantee}, reasons.Reason{}
}

// mayPlan is the gates before a plan.
func (s *Store) mayPlan(p *pod, now time.Time) reasons.Reason {
	if why := s.never(p); !why.None() {
		return why
	}
	if p.asks.holds {
		if why := s.keepsHold(p, now); !why.None() {
			return why
		}
	}
	why, again := s.gate(p, now)
	if !again.IsZero() {
		if why.Code != reasons.PreemptionPaced {
			p.asks.retryAt = again
		}
		s.arm(p, again)
	}
	return why
}

// never says why no plan is ever made for a pod, as things are configured.
func (s *Store) never(p *pod) reasons.Reason {
	switch {
	case p.NeverPreempts:
		return reasons.New(reasons.PreemptionNever, "its preemptionPolicy is Never")
	case !s.spec.PreemptionEnabled:
		return reasons.New(reasons.PreemptionDisabled, "queues do not preempt: the partition has preemption.enabled: false")
	}
	return notOffered(p.Pod)
}

// gate says why no plan is made for a pod now, and when one may be; zero where
// that is not a matter of time.
func (s *Store) gate(p *pod, now time.Time) (why reasons.Reason, again time.Time) {
	leaf := s.draft.Queue(p.app.leaf)
	if end := s.delayEnd(p); end.After(now) {
		if !s.mayAsk(p) { // nobody will look at the pod when the delay ends
			return notOwed(leaf), time.Time{}
		}
		return reasons.New(reasons.PreemptionDelayed, "queue %s preempts for pods that waited for %v, this one in %v",
			leaf.Path, leaf.Policies.PreemptionDelay, wait(end, now)), time.Time{}
	}
	if v := s.judgeLimits(p); !v.OK() {
		return v.Reason, time.Time{}
	}
	if from, why := s.planFrom(p); from.After(now) {
		return why, from
	}
	if tried, refused := p.lastRefused(); !refused.None() && tried.Add(atMostEvery).After(now) {
		return refused, tried.Add(atMostEvery)
	}
	if at := s.pace.until(1, s.preemption, now); at.After(now) {
		return s.full(), at
	}
	if at := s.asking.toil.until(now); at.After(now) {
		return reasons.New(reasons.PreemptionPaced, "plans for other pods came to nothing and used up the time there is for such; this pod is planned for as soon as there is time again"), at
	}
	return reasons.Reason{}, time.Time{}
}

// notOwed is why nobody makes room for a pod of a queue that has what it is guaranteed.
func notOwed(leaf *queues.Queue) reasons.Reason {
	return reasons.New(reasons.PreemptionRefused, "neither queue %s nor one above it is below its guarantee in what the pod requests (law 4)", leaf.Path)
}

// lastRefused is when and why a plan for the pod, or one of its twins, came to
// nothing.
func (p *pod) lastRefused() (at time.Time, why reasons.Reason) {
	at, why = p.asks.triedAt, p.asks.refused
	if t := p.twins; t != nil && t.triedAt.After(at) {
		at, why = t.triedAt, t.refused
	}
	return at, why
}

// judgeLimits is the verdict of what preemption never makes room in: the limits
// of users and groups, and maxapplications (law 7).
func (s *Store) judgeLimits(p *pod) queues.Verdict {
	if v := s.ledger.Admit(s.draft, p.app.leaf, p.app.owner, p.Request, queues.OnAllocated); !v.OK() {
		return v
	}
	if p.app.counted {
		return queues.Granted
	}
	if v := queues.AdmitApplication(s.draft, p.app.leaf, queues.OnAllocated); !v.OK() {
		return v
	}
	return s.ledger.AdmitApplication(s.draft, p.app.leaf, p.app.owner, queues.OnAllocated)
}

func (s *Store) paced(p *pod, until time.Time) reasons.Reason {
	s.arm(p, until)
	return s.full()
}

// full is why no more pods are preempted in this round.
func (s *Store) full() reasons.Reason {
	return reasons.New(reasons.PreemptionPaced, "at most %d pods may be preempted within %v; the pod is planned for in the next round",
		s.preemption.MaxVictims, s.preemption.Round)
}

// wait is how long it is until a time, for people.
func wait(until, now time.Time) time.Duration {
	d := until.Sub(now)
	if d > time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

// setInPermit notes which pods wait for a Permit plugin, and may go for an asker. Those
// of its own PodGroup may not: it would have room, and the group lack them.
func (s *Store) setInPermit(asker *pod, uids []types.UID) {
	waits := make(map[types.UID]bool, len(uids))
	for _, uid := range uids {
		if p := s.pods[uid]; p != nil && !p.mateOf(asker) {
			if waits[uid] = true; !s.waitingInPermit[uid] {
				s.touchPod(p)
			}
		}
	}
	for uid := range s.waitingInPermit {
		if p := s.pods[uid]; p != nil && !waits[uid] {
			s.touchPod(p)
		}
	}
	s.waitingInPermit = waits
}

// Decline tells that a plan came to nothing. It returns what people are told.
func (s *Store) Decline(uid types.UID, d *victims.Decision, now time.Time) reasons.Reason {
	s.mu.Lock()
	defer s.unlock(now)
	p, over := s.planned(uid)
	if !over.None() {
		s.asking.during = nil
		return over
	}
	why := Refusal(d)
	s.enterStep(p, Step{Kind: StepRefused, Decision: d, Reason: why}, now)
	s.say(p, reasons.PreemptionRefused, now)
	p.asks.refused, p.asks.retryAt = why, now.Add(s.preemption.RetryInterval)
	if p.sweeping().goOn(d) {
		p.asks.retryAt = now.Add(atMostEvery)
	}
	if t := p.twins; t != nil {
		t.triedAt, t.retryAt, t.refused = now, p.asks.retryAt, why
	}
	s.arm(p, p.asks.retryAt)
	s.asking.toil.spend(len(s.scenery.nodes), d.FitsCalls, now)
	s.watch(p, s.named(d))
	s.stirMissed(p)
	return why
}

// Forgo tells that a plan which takes nobody's place is not put into force, for its node
// got room by itself while the plan was made. That room is for who is first in the
// order, which a hold would pass over: the pod is tried again in its turn, and planned
// for if others have the room by then. It returns what people are told.
func (s *Store) Forgo(uid types.UID, d *victims.Decision, now time.Time) reasons.Reason {
	s.mu.Lock()
	defer s.unlock(now)
	s.asking.during = nil
	p, over := s.planned(uid)
	if !over.None() {
		return over
	}
	why := reasons.New(reasons.InOrder, "pods on node %s ended while this pod was tried; it is tried again in its turn", d.Node)
	s.enterStep(p, Step{Kind: StepRefused, Decision: d, Reason: why}, now)
	p.asks.retryAt = now.Add(atMostEvery)
	s.arm(p, p.asks.retryAt)
	return why
}

// planned is the pod that a plan was made for, or why that means nothing any more: it
// went meanwhile, or was bound by somebody else.
func (s *Store) planned(uid types.UID) (*pod, reasons.Reason) {
	p, known := s.pods[uid]
	switch {
	case !known || p.app == nil:
		return nil, reasons.Brief(reasons.Starting)
	case p.state.allocated():
		return nil, reasons.Reason{Code: reasons.InOrder, Text: "the pod has a node"}
	}
	return p, reasons.Reason{}
}

// named are the queues and nodes whose change may lift a refusal. Root is not one
// of them: it changes with every pod, and the retry interval is for that.
func (s *Store) named(d *victims.Decision) []named {
	var out []named
	for _, path := range d.Named {
		if q, ok := s.draft.Find(path); ok && !q.IsRoot() {
			out = append(out, named{queue: q.ID})
		}
	}
	for _, node := range d.Unfit {
		out = append(out, named{queue: queues.NoQueue, node: node})
	}
	return out
}
