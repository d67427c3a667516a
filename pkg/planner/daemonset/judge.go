package daemonset

import (
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Judge judges a decision to preempt by the rules D2 to D7, on a node and an asker that may be
// newer than those of the decision. It does not share the search with Plan. It checks whether
// the decision is permitted, and whether each victim that was chosen for its amounts is still
// needed. It does not check whether other victims would do less harm, and asks no filters. The
// error lists every broken rule.
func Judge(n *Node, ask *Ask, p Params, d Decision) error {
	j := &judge{n: n, ask: ask, p: p, d: d}
	if err := j.mayAct(); err != nil {
		return err
	}
	return j.preempt()
}

// mayAct judges what every decision to do something needs.
func (j *judge) mayAct() error {
	switch {
	case j.n.Name != j.d.Node:
		return fmt.Errorf("the decision is about node %s, not %s", j.d.Node, j.n.Name)
	case j.ask.OverMax != "":
		return fmt.Errorf("D2: queue %s is over its max", j.ask.OverMax)
	}
	return nil
}

// judge checks one decision.
type judge struct {
	n    *Node
	ask  *Ask
	p    Params
	d    Decision
	gone []*planner.Pod // the victims in their current state
}

// room is what is free on a node, by type.
type room []resources.Amount

// use subtracts amounts; a negative sign adds them.
func (r room) use(a planner.Amounts, sign resources.Amount) {
	for t, amount := range a {
		r[t] = r[t].Sub(sign * resources.Amount(amount))
	}
}

// left returns what is free on the node without some pods, with the holders before the
// asker placed.
func (j *judge) left(without func(*planner.Pod) bool) room {
	left := make(room, len(j.n.Types))
	left.use(j.n.Allocatable, -1)
	for _, p := range j.n.Pods {
		if !without(p) {
			left.use(p.Request, 1)
		}
	}
	for _, request := range j.n.Before {
		left.use(request, 1)
	}
	return left
}

// lacks returns an error with the first type of which less is left than the asker
// requests; nil if it fits.
func (j *judge) lacks(left room) error {
	for t, want := range j.ask.Request {
		if has := left[t]; want > 0 && has < resources.Amount(want) {
			return fmt.Errorf("%s %s are left, and the asker requests %s",
				resources.Format(j.n.Types[t], has), j.n.Types[t], resources.Format(j.n.Types[t], resources.Amount(want)))
		}
	}
	return nil
}

func leaves(p *planner.Pod) bool { return p.Protection == planner.Leaving }

// allowed judges whether a pod may be preempted (D4).
func (j *judge) allowed(p *planner.Pod) error {
	if p.Protection == planner.Foreign {
		if !j.p.PreemptForeign {
			return errors.New("D4: it is of a foreign scheduler, and preemptForeign is not set")
		}
	} else if p.Protection != planner.Unprotected {
		return errors.New("D4: it is never a victim")
	}
	if p.Priority > j.ask.Priority {
		return fmt.Errorf("D4: its priority is %d, the asker's %d", p.Priority, j.ask.Priority)
	}
	return nil
}

// guarantees is what laws 1, 2, 5 and 7 say; nil if they do not bind the asker.
func (j *judge) guarantees() *guarantees {
	left := j.left(leaves)
	return newGuarantees(j.n, j.ask, &j.p, func(t int) bool {
		return resources.Amount(j.ask.Request.At(t)) > max(left[t], 0)
	})
}

// find looks up the current state of the victims.
func (j *judge) find() error {
	for _, v := range j.d.Victims {
		i := slices.IndexFunc(j.n.Pods, func(p *planner.Pod) bool { return p.UID == v.UID })
		switch {
		case i < 0:
			return fmt.Errorf("victim %s/%s is not on node %s", v.Namespace, v.Name, j.n.Name)
		case slices.Contains(j.gone, j.n.Pods[i]):
			return fmt.Errorf("victim %s/%s is listed twice", v.Namespace, v.Name)
		}
		j.gone = append(j.gone, j.n.Pods[i])
	}
	return nil
}

// preempt judges the victims.
func (j *judge) preempt() error {
	if err := j.find(); err != nil {
		return err
	}
	errs := []error{j.begun(), j.number()}
	left := j.left(func(p *planner.Pod) bool { return leaves(p) || slices.Contains(j.gone, p) })
	g := j.guarantees()
	for i, v := range j.gone {
		_, bound := g.add(v)
		for _, err := range []error{j.allowed(v), bound, j.class(v, j.d.Victims[i].Class), j.needed(i, left)} {
			if err != nil {
				errs = append(errs, fmt.Errorf("victim %s/%s: %w", v.Namespace, v.Name, err))
			}
		}
	}
	if err := j.lacks(left); err != nil {
		return errors.Join(append(errs, fmt.Errorf("D7: %w", err))...)
	}
	return errors.Join(errs...)
}

// begun judges whether preemption may have started.
func (j *judge) begun() error {
	switch {
	case j.ask.Never:
		return errors.New("D2: the asker has preemptionPolicy Never")
	case j.ask.Held < j.p.StartDelay:
		return fmt.Errorf("D3: the hold is %v old, preemptionStartDelay is %v", j.ask.Held, j.p.StartDelay)
	}
	return nil
}

// number judges the number of victims, and the conditions of the selection on a single
// one (D6).
func (j *judge) number() error {
	switch {
	case len(j.gone) == 0:
		return errors.New("D6: it preempts no pod")
	case j.d.Selection == Multiple && j.p.MaxVictims != nil && len(j.gone) > int(*j.p.MaxVictims):
		return fmt.Errorf("D6: %d victims, maxVictims is %d", len(j.gone), *j.p.MaxVictims)
	case j.d.Selection == Single && len(j.gone) > 1:
		return fmt.Errorf("D6: %d victims of the selection single", len(j.gone))
	case j.d.Selection == Single && j.d.Victims[0].ForRoom:
		return j.near(j.gone[0])
	}
	return nil
}

// near judges the deviation of the single victim.
func (j *judge) near(v *planner.Pod) error {
	if j.p.SingleDeviationPercent == nil {
		return nil
	}
	yard, most := 0, new(big.Rat)
	for t, want := range j.ask.Request {
		share := big.NewRat(want, max(j.n.Allocatable.At(t), 1))
		if c := share.Cmp(most); c > 0 || c == 0 && j.n.Types[t] < j.n.Types[yard] {
			yard, most = t, share
		}
	}
	has, want := v.Request.At(yard), j.ask.Request.At(yard)
	percent := int64(*j.p.SingleDeviationPercent)
	off := new(big.Int).Abs(new(big.Int).Sub(big.NewInt(has), big.NewInt(want)))
	most100 := new(big.Int).Mul(big.NewInt(want), big.NewInt(percent))
	if off.Mul(off, big.NewInt(100)).Cmp(most100) > 0 { // off / want > percent / 100
		return fmt.Errorf("D6: its victim has %s %s, more than %d%% off %s", resources.Format(j.n.Types[yard], resources.Amount(has)),
			j.n.Types[yard], percent, resources.Format(j.n.Types[yard], resources.Amount(want)))
	}
	return nil
}

// class judges that a victim's class is not more harmful than in the decision (D5).
func (j *judge) class(v *planner.Pod, decided Class) error {
	var now Class
	switch {
	case v.Protection == planner.Foreign:
		now = Foreign
	case v.OptedOut:
		now = OptedOut
	case v.Originator:
		now = Originator
	}
	places := [...]int{Regular: 1, Originator: 2, OptedOut: 3, Foreign: 4}
	if j.p.classOrder(j.ask) == YuniKorn {
		places[Originator], places[OptedOut] = 3, 2
	}
	if places[now] > places[decided] {
		return fmt.Errorf("D5: it was chosen as %s and is %s", decided, now)
	}
	return nil
}

// needed judges that a victim chosen for its amounts is needed, that is, that the others
// alone do not free enough. If the filters never ran, all victims were chosen for their
// amounts (D6). What is left is computed without all victims.
func (j *judge) needed(i int, left room) error {
	if leaves(j.gone[i]) || !j.d.Victims[i].ForRoom && j.d.FitsCalls > 0 {
		return nil
	}
	left.use(j.gone[i].Request, 1)
	defer left.use(j.gone[i].Request, -1)
	if j.lacks(left) != nil {
		return nil
	}
	return errors.New("D6: there is room without it")
}
