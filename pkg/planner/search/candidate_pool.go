package search

import (
	"slices"
	"sort"

	"github.com/paddock-scheduler/paddock/pkg/planner"
)

// candidatePool is the candidates from all nodes that may be preempted for a queue over its
// max (P3): all of them if they are few, otherwise the least harmful ones of each leaf.
type candidatePool struct {
	candidates []candidate
	// bound is a lower bound of the harm of any plan. enough is false if all candidates
	// together do not free the excess. blocked is true if only law 2 is the reason: then there are
	// no candidates.
	bound           harm
	enough, blocked bool
	// whole is true if no candidate was omitted.
	whole bool
}

// A pool has poolSize candidates, or more if it needs them to free the excess. If no plan
// is found with it, one of largePool is tried.
const (
	poolSize  = 32
	largePool = 512
)

// poolFor returns the pool of the survey's view, which is made once.
func (pl *planning) poolFor(sv *survey) *candidatePool {
	if sv.candidatePool != nil {
		return sv.candidatePool
	}
	for size := pl.poolSize; ; size *= 4 {
		p := pl.newPool(sv, size)
		p.bound, p.enough = lowerBound(p.candidates, pl.over)
		if p.enough && slices.ContainsFunc(pl.over, func(g goal) bool { return sv.above(g.typ, g.depth) < g.amount }) {
			p = &candidatePool{whole: true, blocked: true}
		}
		if p.enough || p.whole {
			pl.exhaustive = pl.exhaustive && p.whole // an omitted candidate might be younger
			sv.candidatePool = p
			return p
		}
	}
}

// newPool makes a pool of about size candidates.
func (pl *planning) newPool(sv *survey, size int) *candidatePool {
	var leaves []*leafCandidates // in the order of their first candidates
	byLeaf := make([]*leafCandidates, len(sv.leafVerdicts))
	for _, n := range pl.snapshot.Nodes {
		d := n.Digest()
		for _, run := range d.Runs {
			lv := sv.leafVerdict(run.Leaf)
			if lv.all != mayGo || lv.path.lca < pl.over[0].depth {
				continue
			}
			id := indexOf(run.Leaf)
			byLeaf = grown(byLeaf, id)
			for i := int(run.From); i < int(run.To); i++ {
				e, request := &d.Entries[i], d.Request(i)
				if sv.judge(e, request, lv) != mayGo || !helps(request, lv.path.lca, false, pl.over) {
					continue
				}
				if byLeaf[id] == nil {
					byLeaf[id] = &leafCandidates{verdict: lv}
					leaves = append(leaves, byLeaf[id])
				}
				priority := lv.path.shift.apply(int64(e.Priority))
				byLeaf[id].insert(&candidate{e, request, lv.path, n, priority, sv.classOf(e), false}, size, pl.problem)
			}
		}
	}
	return pl.merged(leaves, size)
}

// merged makes one pool of the candidates of all leaves. If there are too many candidates,
// each leaf is limited to those that could be preempted together. Otherwise many candidates
// of a leaf that may lose only few would displace those of other leaves.
func (pl *planning) merged(leaves []*leafCandidates, size int) *candidatePool {
	p, all := &candidatePool{whole: true}, 0
	for _, s := range leaves {
		all += s.seen
	}
	for _, s := range leaves {
		if all > size {
			s.trim(pl.over)
		}
		p.whole = p.whole && s.seen == len(s.candidates)
		p.candidates = append(p.candidates, s.candidates...)
	}
	slices.SortFunc(p.candidates, func(a, b candidate) int { return pl.byHarm(&a, &b) })
	if len(p.candidates) > size {
		p.candidates, p.whole = p.candidates[:size], false
	}
	return p
}

// leafCandidates is the candidates of a leaf, the least harmful first.
type leafCandidates struct {
	verdict    *leafVerdict
	candidates []candidate
	seen       int // including those that were not kept
}

// insert keeps the least harmful candidates, sorted.
func (s *leafCandidates) insert(c *candidate, size int, by *problem) {
	s.seen++
	if len(s.candidates) == size {
		if by.byHarm(c, &s.candidates[size-1]) > 0 {
			return
		}
		s.candidates = s.candidates[:size-1]
	}
	at := sort.Search(len(s.candidates), func(i int) bool { return by.byHarm(&s.candidates[i], c) >= 0 })
	s.candidates = slices.Insert(s.candidates, at, *c)
}

// leastOfLeaf is the minimal number of candidates kept of a leaf.
const leastOfLeaf = 4

// trim drops the most harmful candidates while the others use twice what the leaf may
// lose (law 2), or free twice the excess.
func (s *leafCandidates) trim(over []goal) {
	used := make(planner.Amounts, len(s.verdict.room))
	for i := range s.candidates {
		used.Add(s.candidates[i].request, 1)
		if i+1 >= leastOfLeaf && (s.exceeds(used) || s.suffices(used, over)) {
			s.candidates = s.candidates[:i+1]
			return
		}
	}
}

// exceeds reports whether a leaf cannot lose half of the amounts.
func (s *leafCandidates) exceeds(used []int64) bool {
	for t, room := range s.verdict.room {
		if room != unbounded && used[t]/2 >= room && used[t] > 0 {
			return true
		}
	}
	return false
}

// suffices reports whether half of the amounts frees the whole excess.
func (s *leafCandidates) suffices(used []int64, over []goal) bool {
	for _, g := range over {
		if g.depth <= s.verdict.path.lca && used[g.typ]/2 < g.amount {
			return false
		}
	}
	return true
}

// elsewhere appends the candidates of the pool that are on other nodes than n.
func (p *candidatePool) elsewhere(to []candidate, n *planner.Node) []candidate {
	for i := range p.candidates {
		if p.candidates[i].node != n {
			to = append(to, p.candidates[i])
		}
	}
	return to
}
