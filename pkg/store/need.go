package store

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
)

// lacks tells whether a preemptor has too little room, by amounts, on a node or below a
// max of its path, once the leaving pods and the pods of without are gone. If it lacks
// nothing and still is not placed, the filters have other reasons, such as ports.
func (s *Store) lacks(p *pod, n *cache.Node, without []*pod) bool {
	free := s.freeBeside(n, p.UID)
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
			if queues.IsBelow(s.cache.Tree(), v.app.Leaf, q.ID) {
				sum = sum.Add(v.Amount())
			}
		}
		return sum
	}
	return queues.OverExpected(s.cache.Tree(), p.app.Leaf, p.Request, gone) != nil
}

// freeBeside is what will be free for a preemptor on a node once leaving pods are gone
// and all other holders, also those after it, are placed.
func (s *Store) freeBeside(n *cache.Node, asker types.UID) resources.Vector {
	free, after := s.free(n, asker), false
	for _, h := range s.preemption.Holds.Holders(n.Name()) {
		if after && !s.isPlaced(h.Asker) {
			free = free.Sub(h.Request)
		}
		after = after || h.Asker == asker
	}
	return free
}

// needed returns an error unless every victim in left is still needed on the current
// state, without the plan. Victims that were chosen for reasons only the filters know are
// not checked.
func (s *Store) needed(p *pod, n *cache.Node, left []*pod) error {
	for _, v := range s.idle(p, n, left) {
		if p.asks.Decision == nil || !slices.Contains(p.asks.ByFilters, v.UID) {
			return fmt.Errorf("pod %s/%s need not go: there is room without it", v.Namespace, v.Name)
		}
	}
	return nil
}

// idle returns the pods of going that are not needed: the preemptor has room by amounts
// even if such a pod stays and the others go.
func (s *Store) idle(p *pod, n *cache.Node, going []*pod) []*pod {
	var out []*pod
	for i, v := range going {
		if others := slices.Delete(slices.Clone(going), i, i+1); !s.lacks(p, n, others) {
			out = append(out, v)
		}
	}
	return out
}

// uidsOf returns the UIDs of pods.
func uidsOf(pods []*pod) []types.UID {
	var out []types.UID
	for _, p := range pods {
		out = append(out, p.UID)
	}
	return out
}
