package store

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/planner/judge"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// Commit checks a plan again on the current state. If it still holds, the preemptor is
// bound to its node from now on, and Commit returns the victims that have not been
// deleted. Otherwise no victim is deleted, and the reason says why: the hold ends, or, for
// a pod that can run on one node only, goes on without a plan until the next decision.
// inPermit are the pods that wait in a Permit plugin now: one that left it since the plan
// was made is being bound, and is never a victim.
func (s *Store) Commit(asker types.UID, inPermit []types.UID, now time.Time) ([]Victim, reasons.Reason) {
	s.mu.Lock()
	defer s.unlock(now)
	p := s.pods[asker]
	s.setInPermit(p, inPermit)
	h, ok := s.preemption.Holds.Of(asker)
	if p == nil || p.app == nil && !p.Foreign || !ok {
		return nil, reasons.New(reasons.HoldGivenUp, "the hold has ended")
	}
	left := s.left(&h)
	if p.state.HasNode() && len(left) > 0 && !h.Required {
		why := reasons.New(reasons.HoldGivenUp, "the pod found room on node %s", p.Node)
		s.endHold(p, reservations.GivenUp, why, now)
		return nil, why
	}
	switch err := s.judgeAgain(p, &h, left, now); {
	case err == nil:
		return s.going(p, &h, left, now), reasons.Reason{}
	case h.Required:
		why := reasons.New(reasons.RoomAwaited, "node %s is held for the pod; things changed since it was decided who goes: %s", h.Node, preemption.OneLine(err))
		s.abortPlan(p, &h, left, why, now)
		s.enterStep(p, Step{Kind: StepCalledOff, Hold: h, Reason: why}, now)
		return nil, why
	default:
		why := reasons.New(reasons.HoldGivenUp, "things changed since the plan was made: %s", preemption.OneLine(err))
		s.endHold(p, reservations.GivenUp, why, now)
		return nil, why
	}
}

// going commits a plan and returns the victims to delete, by UID.
func (s *Store) going(p *pod, h *reservations.Hold, left []*pod, now time.Time) []Victim {
	s.preemption.Holds.Commit(p.UID, now)
	out := make([]Victim, 0, len(left))
	for _, v := range left {
		note := s.victimNote(p, v, h)
		out = append(out, Victim{Ref: v.Ref(), Node: v.Node, Queue: v.queue(s.cache.Tree()), Note: note, Grace: s.preemption.Grace(v.Pod)})
		s.history.noteSaid(Chosen, v, note)
	}
	s.enterStep(p, Step{Kind: StepCommitted, Going: out}, now)
	return out
}

// left returns the chosen pods that have not been deleted, by UID.
func (s *Store) left(h *reservations.Hold) []*pod {
	var out []*pod
	for _, uid := range h.Chosen {
		if v := s.pods[uid]; v != nil && v.chosenBy == h.Asker && v.On() != nil && !v.Deleting {
			out = append(out, v)
		}
	}
	return out
}

// judgeAgain checks the rules for the victims that are left of a plan, on a state in which
// they stay.
func (s *Store) judgeAgain(p *pod, h *reservations.Hold, left []*pod, now time.Time) error {
	mark := func(asker types.UID) {
		for _, v := range left {
			s.chosen(v, asker)
			s.weigh(v)
		}
	}
	switch {
	case len(left) == 0:
		return nil
	case h.Required && p.state.HasNode():
		return fmt.Errorf("the pod has node %s", p.Node)
	case h.Required:
		mark("")
		defer mark(p.UID)
		a := s.requirement(p, now)
		a.Node.Queues = s.cache.Tree() // the state without the plan is not published
		return daemonset.Judge(a.Node, a.Ask, a.Params, s.remaining(p, a, left))
	}
	s.renew()
	p.asks.SetHolds(false)
	mark("")
	s.weigh(p)
	err := s.lawful(p, h, left)
	p.asks.SetHolds(true)
	mark(p.UID)
	s.weigh(p)
	if err == nil {
		err = s.withinBudgets(p, left)
	}
	return err
}

// lawful checks the laws for victims of a preemptor, on the current state.
func (s *Store) lawful(p *pod, h *reservations.Hold, left []*pod) error {
	w := &planner.World{Queues: s.cache.Tree(), Budgets: s.disruptionsLeft(true)}
	t := &s.preemption.Snapshot.Types
	ask := askOf(t, p)
	ask.Group = s.groupFor(p, p.asks.Decision)
	s.setFree(ask.Group, p, left)
	d := planner.Decision{Ask: ask, Outcome: planner.Preempt, Node: h.Node}
	names := []string{h.Node}
	for _, v := range left {
		d.Victims = append(d.Victims, planner.Victim{Pod: s.podView(t, v), Node: v.On().Name()})
		names = append(names, v.On().Name())
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if n := s.cache.Nodes.Get(name); n != nil && n.Known() {
			w.Nodes = append(w.Nodes, s.viewOf(t, n, p.UID))
		}
	}
	w.Types = t.Names()
	err := judge.Lawful(w, d, planner.Params{StrictGuarantee: s.preemption.StrictGuarantee})
	if n := s.cache.Nodes.Get(h.Node); err == nil && n != nil {
		err = s.needed(p, n, left)
	}
	return err
}

// withinBudgets returns an error if the victims violate more disruption budgets than the
// plan had allowed for. Only actual disruptions count here, such as a drain. Other plans
// in force do not count: they are older, or were made with the victims of this one
// deducted.
func (s *Store) withinBudgets(p *pod, left []*pod) error {
	d := p.asks.Decision
	if d == nil {
		return nil // after a restart: the plan's violations are not known
	}
	going := make([]*planner.Pod, len(left))
	for i, v := range left {
		going[i] = s.podView(&s.preemption.Snapshot.Types, v)
	}
	if n := planner.Violations(going, s.disruptionsLeft(false)); n > d.Violations {
		return fmt.Errorf("%d of its victims are beyond what PodDisruptionBudgets allow, %d were", n, d.Violations)
	}
	return nil
}

// victimNote is the message that a victim gets.
func (s *Store) victimNote(asker, v *pod, h *reservations.Hold) string {
	note, known := asker.asks.Note(v.UID)
	switch {
	case known:
		return note
	case h.Required:
		return fmt.Sprintf("preempted for %s/%s, which can run on node %s only (D4)", asker.Namespace, asker.Name, h.Node)
	}
	return fmt.Sprintf("preempted for %s/%s of queue %s, which is below its guarantee (law 4), on node %s; queue %s uses more than its guarantee (law 5)",
		asker.Namespace, asker.Name, s.cache.Path(asker.app.Leaf), h.Node, s.cache.Path(v.app.Leaf))
}
