package required

import (
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// Judge judges a decision by the rules D1 to D7, on a node and an asker that may
// be newer than those it was made on. It shares no code with Plan. It asks
// whether what is done may be done, and whether each victim that was to make room
// is still needed; not whether other victims would do less harm. Where
// Params.Fits is nil, the filters are taken to pass. A decision to do nothing is
// never wrong. The error lists every rule broken.
func Judge(n *Node, ask *Ask, p Params, d Decision) error {
	if d.Outcome == NoHold || d.Outcome == victims.Refuse {
		return nil
	}
	if n.Name != d.Node {
		return fmt.Errorf("the decision is about node %s, not %s", d.Node, n.Name)
	}
	j := &judge{n: n, ask: ask, p: p, d: d, want: vectorOf(n, ask.Request)}
	if ask.OverMax != "" {
		return fmt.Errorf("D2: queue %s is over its max", ask.OverMax)
	}
	switch d.Outcome {
	case Fits:
		return j.fits()
	case victims.Hold:
		return j.hold()
	case victims.Preempt:
		return j.preempt()
	}
	return fmt.Errorf("there is no outcome %q", d.Outcome)
}

// judge is a decision under judgement.
type judge struct {
	n    *Node
	ask  *Ask
	p    Params
	d    Decision
	want resources.Vector
	gone []*Pod // the victims as they are now
}

func vectorOf(n *Node, a victims.Amounts) resources.Vector {
	var entries []resources.Entry
	for t, amount := range a {
		entries = append(entries, resources.Entry{Name: n.Types[t], Amount: resources.Amount(amount)})
	}
	return resources.VectorOf(entries...)
}

// left is what the node has left without some pods, once the holders before the
// asker have their room.
func (j *judge) left(without func(*Pod) bool) resources.Vector {
	left := vectorOf(j.n, j.n.Allocatable)
	for i := range j.n.Pods {
		if p := &j.n.Pods[i]; !without(p) {
			left = left.Sub(vectorOf(j.n, p.Request))
		}
	}
	for _, request := range j.n.Before {
		left = left.Sub(vectorOf(j.n, request))
	}
	return left
}

// lacks names a type in which the asker does not fit into what is left.
func (j *judge) lacks(left resources.Vector) string {
	for name, want := range j.want.All() {
		if left.Get(name) < want {
			return fmt.Sprintf("%d %s are left, the asker wants %d", left.Get(name), name, want)
		}
	}
	return ""
}

func leaves(p *Pod) bool { return p.Protection == victims.Leaving }

func (j *judge) filters(without []*Pod) error {
	if j.p.Fits == nil {
		return nil
	}
	var pods []*victims.Pod
	for _, p := range without {
		pods = append(pods, p.Pod)
	}
	if j.p.Fits(pods) != victims.Passes {
		return fmt.Errorf("the filters refuse the asker on node %s without %d pods", j.n.Name, len(without))
	}
	return nil
}

// fits judges that nothing need be done.
func (j *judge) fits() error {
	if len(j.n.Before) > 0 {
		return fmt.Errorf("D1: others hold node %s before the asker", j.n.Name)
	}
	if lack := j.lacks(j.left(func(*Pod) bool { return false })); lack != "" {
		return errors.New("D1: " + lack)
	}
	return j.filters(nil)
}

// hold judges that the node is not held in vain (D1).
func (j *judge) hold() error {
	var may []*Pod
	for i := range j.n.Pods {
		if j.d.Stopped != "" && j.allowed(&j.n.Pods[i]) == nil && !j.ask.Never {
			may = append(may, &j.n.Pods[i])
		}
	}
	if lack := j.lacks(j.left(func(p *Pod) bool { return leaves(p) || slices.Contains(may, p) })); lack != "" {
		return fmt.Errorf("D1: even without %d pods %s", len(may), lack)
	}
	return j.filters(may)
}

// allowed judges whether a pod may go (D4).
func (j *judge) allowed(p *Pod) error {
	if p.Protection == victims.Foreign {
		if !p.Peer && !j.p.PreemptForeign {
			return errors.New("D4: it is of a foreign scheduler, and preemptForeign is not set")
		}
	} else if p.Protection != victims.Unprotected {
		return errors.New("D4: it is never a victim")
	}
	if p.Priority > j.ask.Priority {
		return fmt.Errorf("D4: its priority is %d, the asker's %d", p.Priority, j.ask.Priority)
	}
	return nil
}

// find looks the victims up as they are now.
func (j *judge) find() error {
	for _, v := range j.d.Victims {
		i := slices.IndexFunc(j.n.Pods, func(p Pod) bool { return p.UID == v.UID })
		switch {
		case i < 0:
			return fmt.Errorf("victim %s/%s is not on node %s", v.Namespace, v.Name, j.n.Name)
		case slices.Contains(j.gone, &j.n.Pods[i]):
			return fmt.Errorf("victim %s/%s is listed twice", v.Namespace, v.Name)
		}
		j.gone = append(j.gone, &j.n.Pods[i])
	}
	return nil
}

// preempt judges the victims.
func (j *judge) preempt() error {
	if err := j.find(); err != nil {
		return err
	}
	errs := []error{j.begun(), j.number()}
	for i, v := range j.gone {
		for _, err := range []error{j.allowed(v), j.class(v, j.d.Victims[i].Class), j.needed(i)} {
			if err != nil {
				errs = append(errs, fmt.Errorf("victim %s/%s: %w", v.Namespace, v.Name, err))
			}
		}
	}
	if lack := j.lacks(j.left(func(p *Pod) bool { return leaves(p) || slices.Contains(j.gone, p) })); lack != "" {
		return errors.Join(append(errs, errors.New("D7: "+lack))...)
	}
	return errors.Join(append(errs, j.filters(j.gone))...)
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

// number judges the number of victims, and what the selection demands of one (D6).
func (j *judge) number() error {
	switch {
	case len(j.gone) == 0:
		return errors.New("D6: it preempts nobody")
	case j.d.Selection == Multiple && j.p.MaxVictims != nil && len(j.gone) > int(*j.p.MaxVictims):
		return fmt.Errorf("D6: %d victims, maxVictims is %d", len(j.gone), *j.p.MaxVictims)
	case j.d.Selection == Single && len(j.gone) > 1:
		return fmt.Errorf("D6: %d victims of the selection single", len(j.gone))
	case j.d.Selection == Single && j.d.Victims[0].ForRoom:
		return j.near(j.gone[0])
	}
	return nil
}

// near judges the deviation of the one victim.
func (j *judge) near(v *Pod) error {
	if j.p.SingleDeviationPercent == nil {
		return nil
	}
	var yard string
	most := new(big.Rat)
	for name, want := range j.want.All() { // by name
		all := max(vectorOf(j.n, j.n.Allocatable).Get(name), 1)
		if share := big.NewRat(int64(want), int64(all)); share.Cmp(most) > 0 {
			yard, most = name, share
		}
	}
	has, want := int64(vectorOf(j.n, v.Request).Get(yard)), int64(j.want.Get(yard))
	off := new(big.Int).Abs(new(big.Int).Sub(big.NewInt(has), big.NewInt(want)))
	if off.Mul(off, big.NewInt(100)).Cmp(new(big.Int).Mul(big.NewInt(want), big.NewInt(int64(*j.p.SingleDeviationPercent)))) > 0 {
		return fmt.Errorf("D6: its victim has %d %s, more than %d%% off %d", has, yard, *j.p.SingleDeviationPercent, want)
	}
	return nil
}

// class judges that a victim is not of a more harmful class than was decided (D5).
func (j *judge) class(v *Pod, decided Class) error {
	var now Class
	switch {
	case v.Protection == victims.Foreign && !v.Peer:
		now = Foreign
	case v.OptedOut:
		now = OptedOut
	case v.Originator:
		now = Originator
	}
	order := []Class{Regular, Originator, OptedOut, Foreign}
	if j.p.ClassOrder == YuniKorn {
		order = []Class{Regular, OptedOut, Originator, Foreign}
	}
	if slices.Index(order, now) > slices.Index(order, decided) {
		return fmt.Errorf("D5: it was chosen as %s and is %s", decided, now)
	}
	return nil
}

// needed judges that the others do not make room without a victim that was to
// make room, as all are where the filters were never asked (D6).
func (j *judge) needed(i int) error {
	if !j.d.Victims[i].ForRoom && j.d.FitsCalls > 0 {
		return nil
	}
	stays := j.gone[i]
	if j.lacks(j.left(func(p *Pod) bool { return p != stays && (leaves(p) || slices.Contains(j.gone, p)) })) != "" {
		return nil
	}
	return errors.New("D6: there is room without it")
}
