package daemonset

import (
	"errors"
	"fmt"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Judge judges a decision to preempt by the rules D2 to D7, on a node and an asker that may be
// newer than those of the decision. It applies the rules of Plan to the victims and does not
// search. It checks whether the decision is permitted, and whether each victim that was chosen
// for its amounts is still needed. It does not check whether other victims would do less harm,
// and asks no filters. The error lists every broken rule.
func Judge(n *Node, ask *Ask, p Params, d Decision) error {
	switch {
	case n.Name != d.Node:
		return fmt.Errorf("the decision is about node %s, not %s", d.Node, n.Name)
	case ask.OverMax != "":
		return fmt.Errorf("D2: queue %s is over its max", ask.OverMax)
	}
	j := &judge{balance: weigh(n, ask.Request), node: n, ask: ask, params: &p, decided: &d}
	if err := j.find(); err != nil {
		return err
	}
	errs := []error{j.begun(), j.number()}
	g := newGuarantees(n, ask, &p, &j.balance)
	for i, v := range j.victims {
		_, bound := g.add(v)
		for _, err := range []error{j.allowed(v), bound, j.class(v, d.Victims[i].Class), j.needed(i)} {
			if err != nil {
				errs = append(errs, fmt.Errorf("victim %s/%s: %w", v.Namespace, v.Name, err))
			}
		}
	}
	return errors.Join(append(errs, j.enough())...)
}

// judge checks one decision.
type judge struct {
	balance
	node    *Node
	ask     *Ask
	params  *Params
	decided *Decision
	// victims are in their current state. freed is what goes with them: leaving ones do not
	// count, because the balance counts them as gone.
	victims []*planner.Pod
	freed   planner.Amounts
}

// find looks up the current state of the victims.
func (j *judge) find() error {
	j.freed = make(planner.Amounts, len(j.node.Types))
	for _, v := range j.decided.Victims {
		i := slices.IndexFunc(j.node.Pods, func(p *planner.Pod) bool { return p.UID == v.UID })
		switch {
		case i < 0:
			return fmt.Errorf("victim %s/%s is not on node %s", v.Namespace, v.Name, j.node.Name)
		case slices.Contains(j.victims, j.node.Pods[i]):
			return fmt.Errorf("victim %s/%s is listed twice", v.Namespace, v.Name)
		}
		p := j.node.Pods[i]
		j.victims = append(j.victims, p)
		if p.Protection != planner.Leaving {
			j.freed.Add(p.Request, 1)
		}
	}
	return nil
}

// begun judges whether preemption may have started.
func (j *judge) begun() error {
	switch {
	case j.ask.Never:
		return errors.New("D2: the asker has preemptionPolicy Never")
	case j.ask.Held < j.params.StartDelay:
		return fmt.Errorf("D3: the hold is %v old, preemptionStartDelay is %v", j.ask.Held, j.params.StartDelay)
	}
	return nil
}

// number judges the number of victims, and the conditions of the selection on a single
// one (D6).
func (j *judge) number() error {
	most, by := j.params.MaxVictims, j.decided.Selection
	switch {
	case len(j.victims) == 0:
		return errors.New("D6: it preempts no pod")
	case by == Multiple && most != nil && len(j.victims) > int(*most):
		return fmt.Errorf("D6: %d victims, maxVictims is %d", len(j.victims), *most)
	case by == Single && len(j.victims) > 1:
		return fmt.Errorf("D6: %d victims of the selection single", len(j.victims))
	case by == Single && j.decided.Victims[0].ForRoom:
		return j.near(j.victims[0])
	}
	return nil
}

// near judges the deviation of the single victim.
func (j *judge) near(v *planner.Pod) error {
	yard := yardstick(j.node, j.ask.Request)
	if yard < 0 {
		return nil // the asker requests nothing by now
	}
	has, want := v.Request.At(yard), j.ask.Request.At(yard)
	if !j.params.tooFar(deviation(has, want)) {
		return nil
	}
	name := j.node.Types[yard]
	return fmt.Errorf("D6: its victim has %s %s, more than %d%% off %s", resources.Format(name, resources.Amount(has)),
		name, *j.params.SingleDeviationPercent, resources.Format(name, resources.Amount(want)))
}

// allowed judges whether a pod may be preempted (D4).
func (j *judge) allowed(p *planner.Pod) error {
	switch excludes(p, j.ask, j.params.PreemptForeign) {
	case "":
		return nil
	case planner.RuleForeign:
		return errors.New("D4: it is of a foreign scheduler, and preemptForeign is not set")
	case RulePriority:
		return fmt.Errorf("D4: its priority is %d, the asker's %d", p.Priority, j.ask.Priority)
	}
	return errors.New("D4: it is never a victim")
}

// class judges that a victim's class is not more harmful than in the decision (D5).
func (j *judge) class(v *planner.Pod, decided Class) error {
	now, order := ClassOf(v), j.params.classOrder(j.ask)
	if order.place(now) > order.place(decided) {
		return fmt.Errorf("D5: it was chosen as %s and is %s", decided, now)
	}
	return nil
}

// needed judges that a victim chosen for its amounts is needed, that is, that the others
// alone do not free enough. If the filters never ran, all victims were chosen for their
// amounts (D6).
func (j *judge) needed(i int) error {
	v := j.victims[i]
	if v.Protection == planner.Leaving || !j.decided.Victims[i].ForRoom && j.decided.FitsCalls > 0 {
		return nil
	}
	others := slices.Clone(j.freed)
	if others.Add(v.Request, -1); j.metBy(others) {
		return errors.New("D6: there is room without it")
	}
	return nil
}

// enough judges whether the asker fits without the victims (D7).
func (j *judge) enough() error {
	for t, need := range j.need {
		if j.freed[t] < need {
			name := j.node.Types[t]
			return fmt.Errorf("D7: %s %s are left, and the asker requests %s",
				resources.Format(name, resources.Amount(planner.Plus(j.free[t], j.freed[t]))), name,
				resources.Format(name, resources.Amount(j.ask.Request.At(t))))
		}
	}
	return nil
}
