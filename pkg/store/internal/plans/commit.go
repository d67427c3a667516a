package plans

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/planner/judge"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/holds"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Commit judges a plan again on the state of now. It returns the victims to delete, or why
// none may be.
func (x *Plans) Commit(asker types.UID, inPermit []types.UID, now time.Time) ([]output.Victim, reasons.Reason) {
	h, ok := x.m.Preemption.Ledger.Of(asker)
	if !ok {
		return nil, reasons.New(reasons.HoldGivenUp, "the hold has ended")
	}
	p := x.m.Pods[asker]
	x.holds.SetInPermit(p, inPermit)
	left := x.holds.Left(&h)
	if p.State.HasNode() && len(left) > 0 && !h.NodeBound {
		why := reasons.New(reasons.HoldGivenUp, "the pod found room on node %s", p.Node)
		x.holds.EndHold(p, reservations.GivenUp, why, now)
		return nil, why
	}
	switch err := x.judgeAgain(p, &h, left, now); {
	case err == nil:
		return x.commit(p, &h, left, now), reasons.Reason{}
	case h.NodeBound:
		why := reasons.New(reasons.RoomAwaited, "node %s is held for the pod; the state changed since the victims were chosen: %s",
			h.Node, preemption.OneLine(err.Error()))
		x.abortPlan(p, &h, why, now)
		x.m.EnterStep(p, output.Step{Kind: output.StepAborted, Hold: h, Reason: why}, now)
		return nil, why
	default:
		why := reasons.New(reasons.HoldGivenUp, "things changed since the plan was made: %s", preemption.OneLine(err.Error()))
		// It is a loss: the state may alternate between one that allows the plan and one that
		// refuses it. The pause of a loss keeps the plan from being made without end.
		e := preemption.Ending{End: reservations.GivenUp, Node: p.Node, Why: why, Failed: preemption.CheckRefused}
		if slices.ContainsFunc(undone, func(cause error) bool { return errors.Is(err, cause) }) {
			e.Failed = preemption.PlanUndone
		}
		x.holds.FinishHold(p, e, now)
		return nil, why
	}
}

// commit begins the deletes of a plan and returns the victims to delete, by UID.
func (x *Plans) commit(p *model.Pod, h *reservations.Hold, left []*model.Pod, now time.Time) []output.Victim {
	x.m.Preemption.Ledger.Commit(p.UID, now)
	out := make([]output.Victim, 0, len(left))
	for _, v := range left {
		note := x.victimNote(p, v, h)
		out = append(out, output.Victim{
			Ref: v.Ref(), Node: v.Node, Queue: v.Queue(x.m.Cache.Tree()), Note: note, Grace: x.m.Preemption.Grace(v.Pod),
		})
		x.m.History.NoteMessage(output.Chosen, v, note)
	}
	x.m.EnterStep(p, output.Step{Kind: output.StepCommitted, Going: out}, now)
	return out
}

// judgeAgain checks the rules for the victims that are left of a plan, on a state in which
// they stay.
func (x *Plans) judgeAgain(p *model.Pod, h *reservations.Hold, left []*model.Pod, now time.Time) error {
	switch never := x.Never(p); {
	case len(left) == 0:
		return nil
	case h.NodeBound:
		return x.judgeNodeBoundAgain(p, h, left, now)
	case !never.None():
		return errors.New(never.Text)
	}
	// This is judged with the plan in force: other members of the group need room beside it.
	if err := x.groupStarts(p, len(left) < len(h.Chosen), now); err != nil {
		return err
	}
	defer x.withoutPlan(p, h, left)()
	err := x.lawful(p, h, left)
	if v := x.m.Cache.Books.CheckLimits(x.m.Cache.Tree(), &p.App.CacheApp, p.App.Counted(), p.Request, queues.OnArriving); err == nil && !v.OK() {
		err = errors.New(v.Reason.Text) // law 7: preemption makes no room in limits
	}
	return cmp.Or(err, x.withinBudgets(p, h, left))
}

// judgeNodeBoundAgain is judgeAgain for a node-bound asker.
func (x *Plans) judgeNodeBoundAgain(p *model.Pod, h *reservations.Hold, left []*model.Pod, now time.Time) error {
	if p.State.HasNode() {
		return fmt.Errorf("the pod has node %s", p.Node)
	}
	if v := x.m.CheckPodLimits(p); !v.OK() {
		return errors.New(v.Reason.Text)
	}
	defer x.withoutPlan(p, h, left)()
	in := x.nodeBoundInput(p, now)
	in.Node.Queues = x.m.Cache.Tree() // the state without the plan is not published
	return daemonset.Judge(in.Node, in.Ask, in.Params, x.remaining(p, in, left))
}

// withoutPlan takes a plan out of the state: the victims that are left stay, and the asker does
// not arrive. A node-bound asker still arrives, because its hold outlasts its plans. restore puts
// the plan back.
func (x *Plans) withoutPlan(p *model.Pod, h *reservations.Hold, left []*model.Pod) (restore func()) {
	setChosenBy := func(asker types.UID) {
		for _, v := range left {
			x.m.SetChosenBy(v, asker)
		}
	}
	setChosenBy("")
	if !h.NodeBound {
		x.m.RechargeIn(p, p.In()&^cache.Arriving)
	}
	return func() {
		setChosenBy(p.UID)
		x.m.Recharge(p)
	}
}

var (
	errTooFew = errors.New("has too few pods to start")
	errPaused = errors.New("lacks pods, and no plan is made for them yet")
	errNoRoom = errors.New("lacks pods, and the plan for one of them found no room")
	// undone are the errors after which a plan counts as undone: its pause is short at first.
	undone = []error{holds.ErrRoomWithoutVictim, errTooFew, errPaused, errNoRoom}
)

// groupStarts returns an error if the PodGroup of a pod has not started and cannot: it has too few
// pods, or it lacks pods and is in a pause after a loss, or a plan for one of these found no room
// since the hold began and no node has room now. Once a victim of the plan is gone (begun), only
// too few pods is an error, and only if this process has seen the PodGroup, which may come late
// after a start. Otherwise the victim would be gone in vain.
func (x *Plans) groupStarts(p *model.Pod, begun bool, now time.Time) error {
	if !p.GroupIncomplete() || begun && p.PodGroup.Min() == 0 {
		return nil
	}
	noRoom := func(m *model.Pod) bool { return m.Asker.FindsNoRoom(p.Asker.HeldFrom, now) && !m.State.HasSlot() }
	missing, enough := model.MissingMembers(p.PodGroup, p, func(m *model.Pod) bool { return !noRoom(m) })
	switch name := p.PodGroup.Name(); {
	case p.PodGroup.Min() == 0:
		return fmt.Errorf("there is no PodGroup %s", name)
	case !enough:
		return fmt.Errorf("PodGroup %s %w", name, errTooFew)
	case begun:
	case len(missing) > 0 && p.PodGroup.Data.Losses.Until.After(now):
		return fmt.Errorf("PodGroup %s %w", name, errPaused)
	case slices.ContainsFunc(missing, func(m *model.Pod) bool { return noRoom(m) && !x.nodeHasRoom(m) }):
		return fmt.Errorf("PodGroup %s %w", name, errNoRoom)
	}
	return nil
}

// lawful checks the laws for victims of an asker, on the current state.
func (x *Plans) lawful(p *model.Pod, h *reservations.Hold, left []*model.Pod) error {
	x.m.UpdateSnapshot() // the victims stay in this state
	snapshot := &planner.Snapshot{Queues: x.m.Cache.Tree(), Budgets: x.m.DisruptionsLeft(true)}
	t := &x.m.Preemption.Snapshot.Types
	ask := model.AskOf(t, p)
	ask.Group = x.groupFor(p, p.Asker.Decision)
	d := planner.Decision{Ask: ask, Outcome: planner.Preempt, Node: h.Node}
	names := []string{h.Node}
	for _, v := range left {
		d.Victims = append(d.Victims, planner.Victim{Pod: x.m.PodView(t, v), Node: v.On().Name()})
		names = append(names, v.On().Name())
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if n := x.m.Cache.Nodes.Get(name); n != nil && n.Known() {
			snapshot.Nodes = append(snapshot.Nodes, x.m.ViewOf(n, p.UID))
		}
	}
	snapshot.Nodes, snapshot.Types = x.BesideWaiting(p, snapshot.Nodes), t.Names()
	if err := x.holds.Needed(p, h, left); err != nil { // first, because laws are judged for what the asker lacks
		return err
	}
	return judge.Lawful(snapshot, d, x.Params())
}

// withinBudgets returns an error if the victims violate more disruption budgets than the plan had
// allowed for. Only real disruptions count here, such as a drain. Other plans do not: they are
// older, or were made with these victims deducted. After a restart the allowed number is taken as
// none while no victim is gone, and is not checked after that.
func (x *Plans) withinBudgets(p *model.Pod, h *reservations.Hold, left []*model.Pod) error {
	var allowed int64
	switch d := p.Asker.Decision; {
	case d != nil:
		allowed = d.Violations
	case len(left) < len(h.Chosen):
		return nil
	}
	going := make([]*planner.Pod, len(left))
	for i, v := range left {
		going[i] = x.m.PodView(&x.m.Preemption.Snapshot.Types, v)
	}
	if n := planner.Violations(going, x.m.DisruptionsLeft(false)); n > allowed {
		return fmt.Errorf("%d of its victims are beyond what PodDisruptionBudgets allow, %d were", n, allowed)
	}
	return nil
}

// victimNote is the message that a victim gets: why it was chosen.
func (x *Plans) victimNote(asker, v *model.Pod, h *reservations.Hold) string {
	note, known := asker.Asker.Note(v.UID)
	switch {
	case known:
	case h.NodeBound:
		note = fmt.Sprintf("preempted for %s/%s, which can run on node %s only (D4)", asker.Namespace, asker.Name, h.Node)
	default:
		note = fmt.Sprintf("preempted for %s/%s of queue %s, which is below its guarantee (law 4), on node %s; queue %s uses more than its guarantee (law 5)",
			asker.Namespace, asker.Name, x.m.Cache.Path(asker.App.Leaf), h.Node, x.m.Cache.Path(v.App.Leaf))
	}
	if v.ChosenByOwn {
		note += reservations.OwnVictim
	}
	return note
}

// remaining is what is left of a decision. After a restart the reason for each victim is
// not known: if there is room by amounts, it is taken to be the filters.
func (x *Plans) remaining(p *model.Pod, in *output.NodeBoundPlanInput, left []*model.Pod) daemonset.Decision {
	d := daemonset.Decision{Ask: in.Ask, Node: in.Node.Name, Outcome: planner.Preempt}
	byFilters := x.m.Free(x.m.Cache.Nodes.Get(p.RequiredNode), p.UID).Covers(p.Request)
	known := p.Asker.NodeBoundDecision
	if known == nil {
		known = &daemonset.Decision{}
		if byFilters {
			known.FitsCalls = 1
		}
	}
	d.FitsCalls, d.Selection = known.FitsCalls, known.Selection
	for _, v := range left {
		pod := &planner.Pod{UID: string(v.UID), Namespace: v.Namespace, Name: v.Name} // Judge reads all else from the node
		// Foreign is the most harmful class: D5 refuses no victim of a class that is not known.
		victim := daemonset.Victim{Pod: pod, Class: daemonset.Foreign, ForRoom: !byFilters}
		if i := slices.IndexFunc(known.Victims, func(k daemonset.Victim) bool { return k.UID == string(v.UID) }); i >= 0 {
			victim = known.Victims[i]
		}
		d.Victims = append(d.Victims, victim)
	}
	return d
}
