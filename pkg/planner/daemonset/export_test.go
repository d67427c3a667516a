package daemonset

import (
	"fmt"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
)

// JudgeAny is [Judge] for every outcome, by D1 as well, and with the filters of p. A decision
// to do nothing is always accepted.
func JudgeAny(n *Node, ask *Ask, p Params, d Decision) error {
	if d.Outcome == NoHold || d.Outcome == planner.Refuse {
		return nil
	}
	j := &judge{n: n, ask: ask, p: p, d: d}
	if err := j.mayAct(); err != nil {
		return err
	}
	switch d.Outcome {
	case Fits:
		return j.fits()
	case planner.Hold:
		return j.hold()
	case planner.Preempt:
		if err := j.preempt(); err != nil {
			return err
		}
		return j.filters(j.gone)
	}
	return fmt.Errorf("there is no outcome %q", d.Outcome)
}

func (j *judge) filters(without []*Pod) error {
	if j.p.Fits == nil {
		return nil
	}
	var pods []*planner.Pod
	for _, p := range without {
		pods = append(pods, p.Pod)
	}
	if j.p.Fits(pods) != planner.Passes {
		return fmt.Errorf("the filters refuse the asker on node %s without %d pods", j.n.Name, len(without))
	}
	return nil
}

// fits judges that nothing needs to be done.
func (j *judge) fits() error {
	if len(j.n.Before) > 0 {
		return fmt.Errorf("D1: others hold node %s before the asker", j.n.Name)
	}
	if err := j.lacks(j.left(func(*Pod) bool { return false })); err != nil {
		return fmt.Errorf("D1: %w", err)
	}
	return j.filters(nil)
}

// hold judges that the asker can fit the held node at all (D1).
func (j *judge) hold() error {
	var may []*Pod
	for i := range j.n.Pods {
		_, bound := j.guarantees().add(&j.n.Pods[i]) // alone: the least that must hold
		if j.d.Stopped != "" && bound == nil && j.allowed(&j.n.Pods[i]) == nil && !j.ask.Never {
			may = append(may, &j.n.Pods[i])
		}
	}
	if err := j.lacks(j.left(func(p *Pod) bool { return leaves(p) || slices.Contains(may, p) })); err != nil {
		return fmt.Errorf("D1: even without %d pods %w", len(may), err)
	}
	return j.filters(may)
}
