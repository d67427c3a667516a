package store

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// lacks tells whether an asker has too little room, by amounts, on a node or below
// a max of its path, once those who leave are gone and, beside them, some pods. If
// it lacks nothing and yet is not placed, the filters have other reasons, such as
// ports.
func (s *Store) lacks(p *pod, n *node, without []*pod) bool {
	free := s.freeBeside(n, p.UID)
	for _, v := range without {
		if v.on == n {
			free = free.Add(v.uses)
		}
	}
	if !free.Covers(p.Request) {
		return true
	}
	for q := range s.draft.Ancestors(p.app.leaf) {
		if q.IsRoot() {
			break
		}
		expected := q.Expected()
		for _, v := range without {
			if s.below(v, q.ID) {
				expected = expected.Sub(v.held)
			}
		}
		if !q.Max.Allows(expected, p.Request) {
			return true
		}
	}
	return false
}

// freeBeside is what will be free for an asker on a node once those who leave are
// gone and all other holders have what they wait for, those after it included.
func (s *Store) freeBeside(n *node, asker types.UID) resources.Vector {
	free, after := s.free(n, asker), false
	for _, h := range s.holds.Holders(n.name) {
		if after && !s.isPlaced(h.Asker) {
			free = free.Sub(h.Request)
		}
		after = after || h.Asker == asker
	}
	return free
}

// below tells whether a pod belongs to a queue or to one below it.
func (s *Store) below(p *pod, id queues.ID) bool {
	for q := range s.draft.Ancestors(p.app.leaf) {
		if q.ID == id {
			return true
		}
	}
	return false
}

// needed tells that every victim that has not gone is needed still, as things are
// now and with nothing of the plan decided yet. Victims that were chosen for what only
// the filters know are left to them.
func (s *Store) needed(p *pod, n *node, left []*pod) error {
	for _, v := range s.idle(p, n, left) {
		if p.asks.decision == nil || !slices.Contains(p.asks.byFilters, v.UID) {
			return fmt.Errorf("pod %s/%s need not go: there is room without it", v.Namespace, v.Name)
		}
	}
	return nil
}

// idle are those of some pods without whose going, if the others go, an asker has
// room by amounts.
func (s *Store) idle(p *pod, n *node, going []*pod) []*pod {
	var out []*pod
	for i, v := range going {
		if others := slices.Delete(slices.Clone(going), i, i+1); !s.lacks(p, n, others) {
			out = append(out, v)
		}
	}
	return out
}

// uidsOf names pods.
func uidsOf(pods []*pod) []types.UID {
	var out []types.UID
	for _, p := range pods {
		out = append(out, p.UID)
	}
	return out
}
