package victims

import (
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// scene is a world seen by one asker.
type scene struct {
	world  *World
	ask    *Ask
	params Params

	byQueue  map[queues.ID]*account
	accounts []*account
	routes   map[queues.ID]*route

	path  []*account        // from root to the ask's leaf
	depth map[queues.ID]int // of the queues of path
	fence int               // depth of the fence root (law 7)
	lifts []lift            // by depth: what the path strictly below it does to the ask's priority
	// wanted are the types the asker requests.
	wanted []int
	// over is, by depth, what the asker is over the max of the queue: what must
	// be freed below it. Empty where it is within.
	over [][]shortage
	// deepest is the depth of the deepest queue with something over, -1 for none.
	deepest int
}

// shortage is an amount of a type that has to be freed.
type shortage struct {
	typ    int
	amount int64
}

func newScene(w *World, ask *Ask, p Params) *scene {
	s := &scene{
		world: w, ask: ask, params: p,
		byQueue: map[queues.ID]*account{}, routes: map[queues.ID]*route{}, depth: map[queues.ID]int{},
		deepest: -1,
	}
	for q := w.Queues.Queue(ask.Leaf); q != nil; q = w.Queues.Queue(q.Parent) {
		s.path = append(s.path, s.account(q))
	}
	slices.Reverse(s.path)
	s.lifts = make([]lift, len(s.path))
	var l lift
	for d := len(s.path) - 1; d >= 0; d-- {
		q := s.path[d].queue
		s.depth[q.ID] = d
		s.lifts[d] = l
		l = l.then(q.Policies)
		if s.fence == 0 && q.Policies.Preemption == config.PreemptionFence {
			s.fence = d // root's depth is 0: a fence on root has no effect
		}
	}
	for t := range w.Types {
		if ask.Request.at(t) > 0 {
			s.wanted = append(s.wanted, t)
		}
	}
	s.findOver()
	return s
}

// findOver finds the queues whose max the asker would exceed. Root has no max.
func (s *scene) findOver() {
	s.over = make([][]shortage, len(s.path))
	for d := 1; d < len(s.path); d++ {
		a := s.path[d]
		for _, t := range s.wanted {
			most, limited := a.queue.Max.Get(s.world.Types[t])
			if !limited {
				continue
			}
			if over := a.used[t] + a.arriving[t] + s.ask.Request.at(t) - int64(most); over > 0 {
				s.over[d] = append(s.over[d], shortage{t, over})
				s.deepest = d
			}
		}
	}
}

// contested returns S: the types in which the asker does not fit the node or is
// over a max, else all it requests.
func (s *scene) contested(need []shortage) []int {
	var types []int
	for _, n := range need {
		types = append(types, n.typ)
	}
	for _, over := range s.over {
		for _, o := range over {
			if !slices.Contains(types, o.typ) {
				types = append(types, o.typ)
			}
		}
	}
	if len(types) == 0 {
		return s.wanted
	}
	slices.Sort(types)
	return types
}

// need returns what the asker lacks on a node.
func (s *scene) need(n *Node) []shortage {
	var out []shortage
	for _, t := range s.wanted {
		if lack := s.ask.Request.at(t) - n.Free.at(t); lack > 0 {
			out = append(out, shortage{t, lack})
		}
	}
	return out
}
