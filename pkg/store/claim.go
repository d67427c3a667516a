package store

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/planner/judge"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// Claim accepts a plan: the node is held for the preemptor, its victims count as leaving
// and its request as arriving, and the executor gets work. The reason is none, or says
// what prevents the plan.
func (s *Store) Claim(uid types.UID, d *planner.Decision, now time.Time) reasons.Reason {
	s.mu.Lock()
	defer s.unlock(now)
	s.preemption.Watches.PlanEnds()
	p, known := s.pods[uid]
	if !known || p.app == nil {
		return reasons.Brief(reasons.Starting)
	}
	why := s.claim(p, d, now)
	if !why.None() {
		s.enterStep(p, Step{Kind: StepRefused, Decision: d, Reason: why}, now)
	}
	return why
}

// claim is Claim for a pod of a queue, under the lock.
func (s *Store) claim(p *pod, d *planner.Decision, now time.Time) reasons.Reason {
	switch {
	case p.state.HasNode():
		return reasons.New(reasons.HoldGivenUp, "the pod has a node by now")
	case p.asks.Holds():
		h, _ := s.preemption.Holds.Of(p.UID)
		return makingRoom(&h)
	case s.mayNotHold(p):
		return notLeading()
	}
	if _, why := s.unusable(d.Node); !why.None() {
		return why
	}
	chosen, why := s.stillThere(d)
	if !why.None() {
		return why
	}
	if at := s.preemption.VictimsFrom(len(chosen), now); at.After(now) {
		s.say(p, reasons.PreemptionPaced, now)
		return s.paced(p, at)
	}
	going := make([]*pod, 0, len(chosen))
	for _, uid := range chosen {
		going = append(going, s.pods[uid])
	}
	byFilters := uidsOf(s.idle(p, s.cache.Nodes.Get(d.Node), going))
	since := latest(now, p.asks.Ended.Add(1)) // distinguishes it from an earlier hold
	h := reservations.Hold{Node: d.Node, Since: since, Chosen: chosen, Decision: DecisionID(p.UID, since)}
	if err := s.placeHold(p, h); err != nil {
		return reasons.New(reasons.HoldGivenUp, "%v", err)
	}
	s.preemption.VictimsChosen(len(chosen), now)
	p.asks.Decision, p.asks.ByFilters = d, byFilters
	p.sweeping().Restart()
	placed, _ := s.preemption.Holds.Of(p.UID)
	s.enterStep(p, Step{Kind: StepHeld, Hold: placed, Decision: d, Reason: p.reason}, now)
	s.toWrite(Work{Ref: p.Ref(), Kind: WorkDisrupt, Hold: placed, Decision: d})
	return reasons.Reason{}
}

// DecisionID identifies a decision by its preemptor and time.
func DecisionID(asker types.UID, now time.Time) string {
	return fmt.Sprintf("%s-%d", asker, now.UnixNano())
}

// decidedAt returns the time in a decision's ID; zero if it has none.
func decidedAt(decision string) time.Time {
	nanos, err := strconv.ParseInt(decision[strings.LastIndex(decision, "-")+1:], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

// stillThere returns the victims of a decision if none of them is gone or leaving.
func (s *Store) stillThere(d *planner.Decision) ([]types.UID, reasons.Reason) {
	chosen := make([]types.UID, 0, len(d.Victims))
	for _, v := range d.Victims {
		p := s.pods[types.UID(v.UID)]
		if p == nil || p.On() == nil || p.leaves() {
			return nil, reasons.New(reasons.HoldGivenUp, "pod %s/%s went while the plan was made", v.Namespace, v.Name)
		}
		chosen = append(chosen, p.UID)
	}
	return chosen, reasons.Reason{}
}

// Commit checks a plan again on the current state. If it still holds, the preemptor is
// bound to its node from now on, and Commit returns the victims that have not been
// deleted. Otherwise the hold ends, and the reason says why. inPermit are the pods that
// wait in a Permit plugin now: one that left it since the plan was made is being bound,
// and is never a victim.
func (s *Store) Commit(asker types.UID, inPermit []types.UID, now time.Time) ([]Victim, reasons.Reason) {
	s.mu.Lock()
	defer s.unlock(now)
	p := s.pods[asker]
	s.setInPermit(p, inPermit)
	h, ok := s.preemption.Holds.Of(asker)
	if p == nil || p.app == nil && !p.Foreign || !ok {
		return nil, reasons.New(reasons.HoldGivenUp, "the hold has ended")
	}
	if h.Required {
		return s.commitRequired(p, &h, now)
	}
	left := s.left(&h)
	if p.state.HasNode() && len(left) > 0 {
		why := reasons.New(reasons.HoldGivenUp, "the pod found room on node %s", p.Node)
		s.endHold(p, reservations.GivenUp, why, now)
		return nil, why
	}
	err := s.rejudge(p, &h, left)
	if err == nil {
		err = s.withinBudgets(p, left)
	}
	if err != nil {
		why := reasons.New(reasons.HoldGivenUp, "things changed since the plan was made: %s", oneLine(err))
		s.endHold(p, reservations.GivenUp, why, now)
		return nil, why
	}
	s.preemption.Holds.Commit(asker, now)
	out := make([]Victim, 0, len(left))
	for _, v := range left {
		out = append(out, Victim{Ref: v.Ref(), Node: v.Node, Queue: s.draft.Queue(v.app.leaf).Path, Note: s.note(p, v, &h), Grace: s.preemption.Grace(v.Pod)})
		s.noteSaid(Chosen, v, out[len(out)-1].Note)
	}
	s.enterStep(p, Step{Kind: StepCommitted, Going: out}, now)
	return out, reasons.Reason{}
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

// rejudge checks the laws for the victims that are left of a plan, on a state without the
// plan.
func (s *Store) rejudge(p *pod, h *reservations.Hold, left []*pod) error {
	if len(left) == 0 {
		return nil
	}
	s.renew()
	p.asks.SetHolds(false)
	for _, v := range left {
		s.chosen(v, "")
		s.weigh(v)
	}
	s.weigh(p)
	w := &planner.World{Queues: s.draft, Budgets: s.disruptionsLeft(true)}
	t := &s.preemption.Snapshot.Types
	ask := s.askOf(t, p)
	ask.Group = s.groupFor(p)
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
	p.asks.SetHolds(true)
	for _, v := range left {
		s.chosen(v, p.UID)
		s.weigh(v)
	}
	s.weigh(p)
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

// note is the message that a victim gets.
func (s *Store) note(asker, v *pod, h *reservations.Hold) string {
	if d := asker.asks.Decision; d != nil {
		for i := range d.Victims {
			if d.Victims[i].UID == string(v.UID) {
				return d.VictimNote(i)
			}
		}
	}
	return fmt.Sprintf("preempted for %s/%s of queue %s, which is below its guarantee (law 4), on node %s; queue %s uses more than its guarantee (law 5)",
		asker.Namespace, asker.Name, s.path(asker.app.leaf), h.Node, s.path(v.app.leaf))
}

func (s *Store) path(id queues.ID) string { return s.draft.Queue(id).Path }

// Disrupted says that all victims of a preemptor have been deleted.
func (s *Store) Disrupted(asker types.UID, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	if p := s.pods[asker]; p != nil {
		h, ok := s.preemption.Holds.Of(asker)
		if ok {
			s.enterStep(p, Step{Kind: StepDisrupted, Hold: h}, now)
		}
		if ok && h.Patient {
			return // it has its own deadline, or waits for a change of its node
		}
		s.wakeHolder(p, now)
	}
}

// GiveUp ends a plan that failed to execute. Victims that were not deleted stay.
func (s *Store) GiveUp(asker types.UID, why reasons.Reason, now time.Time) {
	s.mu.Lock()
	defer s.unlock(now)
	if p := s.pods[asker]; p != nil {
		s.finishHold(p, ending{end: reservations.GivenUp, node: p.Node, why: why, failed: true}, now)
	}
}

// oneLine joins the lines of an error.
func oneLine(err error) string {
	text := []byte(err.Error())
	for i, c := range text {
		if c == '\n' {
			text[i] = ';'
		}
	}
	return string(text)
}
