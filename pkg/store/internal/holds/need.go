package holds

import (
	"fmt"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// lacks tells whether a preemptor has too little room, by amounts, on a node or below a
// max of its path, once the leaving pods and the pods of without are gone. If it lacks
// nothing and still is not placed, the filters have other reasons, such as ports.
func (x *Holds) lacks(p *model.Pod, n *cache.Node, without []*model.Pod) bool {
	free := x.FreeBeside(n, p)
	for _, v := range without {
		if v.On() == n {
			free = free.Add(v.Uses())
		}
	}
	if !free.Covers(p.Request) {
		return true
	}
	gone := func(q *queues.Queue) (sum resources.Vector) {
		for _, v := range without {
			if queues.IsBelow(x.Cache.Tree(), v.App.Leaf, q.ID) {
				sum = sum.Add(v.Amount())
			}
		}
		return sum
	}
	return queues.OverExpected(x.Cache.Tree(), p.App.Leaf, p.Request, gone) != nil
}

// Needed returns an error unless every victim in left is still needed on the current
// state, without the plan. Victims that were chosen for reasons only the filters know are
// not checked.
func (x *Holds) Needed(p *model.Pod, n *cache.Node, left []*model.Pod) error {
	for _, v := range x.Idle(p, n, left) {
		if p.Asks.Decision == nil || !slices.Contains(p.Asks.ByFilters, v.UID) {
			return fmt.Errorf("pod %s/%s need not go: there is room without it", v.Namespace, v.Name)
		}
	}
	return nil
}

// Idle returns the pods of going that are not needed: the preemptor has room by amounts
// even if such a pod stays and the others go.
func (x *Holds) Idle(p *model.Pod, n *cache.Node, going []*model.Pod) []*model.Pod {
	var out []*model.Pod
	for i, v := range going {
		if others := slices.Delete(slices.Clone(going), i, i+1); !x.lacks(p, n, others) {
			out = append(out, v)
		}
	}
	return out
}
