package victims

import (
	"slices"
	"sort"
)

// pool is the candidates that may go for a queue over its max, from all nodes
// (P3): the least harmful, as many as may be needed.
type pool struct {
	candidates []candidate
	// floor is a harm that no plan undercuts; enough is false when not even all
	// candidates together free what is over.
	floor  harm
	enough bool
	// whole is true when no candidate was left out.
	whole bool
}

// poolSize is how many candidates a pool has, unless it takes more.
const poolSize = 32

// poolFor returns the pool of the survey's stance, made once.
func (pl *planner) poolFor(sv *survey) *pool {
	if sv.pool != nil {
		return sv.pool
	}
	for size := poolSize; ; size *= 4 {
		p := pl.newPool(sv, size)
		p.floor, p.enough = floor(p.candidates, pl.over)
		if p.enough || p.whole {
			sv.pool = p
			return p
		}
	}
}

func (pl *planner) newPool(sv *survey, size int) *pool {
	p := &pool{whole: true}
	highest := pl.over[0].depth
	for _, n := range pl.nodes {
		d := n.read()
		from := 0
		for _, run := range d.runs {
			first := from
			from = int(run.to)
			o := sv.outlook(run.leaf)
			if o.all != mayGo || o.route.lca < highest {
				continue
			}
			for i := first; i < from; i++ {
				e, request := &d.entries[i], d.request(i)
				if sv.judge(e, request, o) == mayGo && helps(request, o.route.lca, false, pl.over) {
					priority := o.lift.apply(int64(e.priority))
					p.insert(&candidate{e, request, o.route, n, priority, sv.classOf(e), false}, size, pl.scene)
				}
			}
		}
	}
	return p
}

// insert keeps the least harmful candidates, sorted.
func (p *pool) insert(c *candidate, size int, s *scene) {
	if len(p.candidates) == size {
		p.whole = false
		if s.byHarm(c, &p.candidates[size-1]) > 0 {
			return
		}
		p.candidates = p.candidates[:size-1]
	}
	at := sort.Search(len(p.candidates), func(i int) bool { return s.byHarm(&p.candidates[i], c) >= 0 })
	p.candidates = slices.Insert(p.candidates, at, *c)
}

// elsewhere appends the candidates of the pool that are on other nodes than n.
func (p *pool) elsewhere(to []candidate, n *Node) []candidate {
	for i := range p.candidates {
		if p.candidates[i].node != n {
			to = append(to, p.candidates[i])
		}
	}
	return to
}
