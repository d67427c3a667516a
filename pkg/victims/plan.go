package victims

import (
	"cmp"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// exactly is the number of candidates up to which every choice is weighed.
const exactly = 16

// beyond bounds the visits of a search among more candidates.
const beyond = 4096

// Plan decides whom to preempt for an asker, or why nobody.
func Plan(w *World, ask *Ask, p Params) Decision {
	if p.MaxFits == 0 {
		p.MaxFits = defaultMaxFits
	}
	pl := &planner{scene: newScene(w, ask, p), rejected: tally{}, exhaustive: true}
	if ask.Never {
		return pl.refuse(RuleNeverPreempt)
	}
	nodes := make([]int, len(w.Nodes))
	for i := range nodes {
		nodes[i] = i
	}
	slices.SortFunc(nodes, func(a, b int) int { return cmp.Compare(w.Nodes[a].Name, w.Nodes[b].Name) })
	pl.findFar()
	for _, i := range nodes {
		pl.look(&w.Nodes[i])
	}
	return pl.choose()
}

// planner collects the best plans of all nodes.
type planner struct {
	*scene
	plans      []*option // best first, at most Params.MaxFits
	rejected   tally
	exhaustive bool
	fits       int // calls of Fits so far

	far    map[*Pod]string // pods below a queue over its max -> node
	farBy  map[string][]*kind
	farAll []*Pod
}

// option is the best plan of a node.
type option struct {
	*plan
	exam *exam
	// checked is true once the real filters passed.
	checked bool
}

func compareOptions(a, b *option) int { return comparePlans(a.plan, b.plan) }

// findFar lists the pods that are below a queue over its max: they may help
// from any node (P3).
func (pl *planner) findFar() {
	if pl.deepest < 0 {
		return
	}
	shallowest := slices.IndexFunc(pl.over, func(o []shortage) bool { return len(o) > 0 })
	pl.far, pl.farBy = map[*Pod]string{}, map[string][]*kind{}
	for i := range pl.world.Nodes {
		n := &pl.world.Nodes[i]
		for _, p := range n.Pods {
			if r := pl.route(p.Leaf); r.barred == "" && r.lca >= shallowest {
				pl.far[p] = n.Name
				pl.farAll = append(pl.farAll, p)
			}
		}
	}
}

// look finds the best plan of a node.
func (pl *planner) look(n *Node) {
	e := pl.exam(n, pl.rejected)
	kinds := e.gather(nil, n.Pods, true)
	if pl.deepest >= 0 {
		kinds = append(kinds, pl.farKinds(e)...)
	}
	sortKinds(kinds)
	candidates := 0
	for _, k := range kinds {
		candidates += len(k.pods)
	}
	most := beyond
	if candidates <= exactly {
		most = 1 << (exactly + 1)
	}
	s := newSearch(e, kinds, most)
	if len(pl.plans) == pl.params.MaxFits {
		s.best = worse(n, pl.plans[len(pl.plans)-1].harm)
	}
	bound := s.best
	s.from(0)
	if s.cut {
		pl.exhaustive = false
	}
	if s.best != nil && s.best != bound {
		pl.add(&option{plan: s.best, exam: e})
	}
}

// worse is a plan that every plan of no more harm is better than.
func worse(n *Node, h harm) *plan {
	return &plan{node: n, harm: h, waste: resources.ShareOf(resources.MaxAmount, 1)}
}

// add keeps an option among the best.
func (pl *planner) add(o *option) {
	at, _ := slices.BinarySearchFunc(pl.plans, o, compareOptions)
	pl.plans = slices.Insert(pl.plans, at, o)
	if len(pl.plans) > pl.params.MaxFits {
		pl.plans = pl.plans[:pl.params.MaxFits]
	}
}

// farKinds returns the candidates on other nodes.
func (pl *planner) farKinds(e *exam) []*kind {
	key := ""
	for _, t := range e.contested {
		key += pl.world.Types[t] + ","
	}
	all, ok := pl.farBy[key]
	if !ok {
		all = e.gather(nil, pl.farAll, false)
		sortKinds(all)
		pl.farBy[key] = all
	}
	var out []*kind
	for _, k := range all {
		elsewhere := *k
		elsewhere.pods = nil
		enough := pl.enough(k)
		for _, p := range k.pods {
			if len(elsewhere.pods) == enough {
				break
			}
			if pl.far[p] != e.node.Name {
				elsewhere.pods = append(elsewhere.pods, p)
			}
		}
		if len(elsewhere.pods) > 0 {
			out = append(out, &elsewhere)
		}
	}
	return out
}

// enough is how many victims of a kind could be needed for the queues over
// their max.
func (pl *planner) enough(k *kind) int {
	most := int64(0)
	for d := 1; d <= k.route.lca; d++ {
		for _, o := range pl.over[d] {
			if each := k.pod.Request.at(o.typ); each > 0 {
				most = max(most, (o.amount+each-1)/each)
			}
		}
	}
	return int(min(most, int64(len(k.pods))))
}

// choose takes the best plan that the real filters let pass.
func (pl *planner) choose() Decision {
	for len(pl.plans) > 0 {
		best := pl.plans[0]
		if best.checked || pl.params.Fits == nil {
			return pl.accept(best)
		}
		if pl.fits >= pl.params.MaxFits {
			pl.exhaustive = false
			break
		}
		pl.plans = pl.plans[1:]
		if pl.fit(best.exam, best.victims) {
			return pl.accept(best)
		}
		if wide := pl.widen(best.exam); wide != nil {
			pl.add(wide)
		}
	}
	for _, o := range pl.plans {
		if o.checked {
			return pl.accept(o)
		}
	}
	return pl.refuse("")
}

// fit asks the real filters.
func (pl *planner) fit(e *exam, victims []*candidate) bool {
	pl.fits++
	var without []*Pod
	for _, c := range victims {
		if c.onNode {
			without = append(without, c.pod)
		}
	}
	return pl.params.Fits(e.node.Name, without)
}

// widen is for obstacles that are not resources, such as ports or affinity: all
// lawful candidates out, and if the filters then pass, back with every one, the
// most harmful first, that need not go.
func (pl *planner) widen(e *exam) *option {
	wide := *e
	wide.anything = true
	kinds := wide.gather(nil, e.node.Pods, true)
	if pl.deepest >= 0 {
		kinds = append(kinds, pl.farKinds(e)...)
	}
	sortKinds(kinds)
	s := newSearch(&wide, kinds, 0)
	for _, k := range kinds {
		for n := 0; n < len(k.pods) && s.lawful(k); n++ {
			s.take(k, n)
		}
	}
	pl.exhaustive = false
	if !s.reached() || !pl.fit(e, s.taken) {
		return nil
	}
	all := slices.Clone(s.taken)
	kept := all
	for i := len(all) - 1; i >= 0 && pl.fits < pl.params.MaxFits; i-- {
		fewer := slices.DeleteFunc(slices.Clone(kept), func(c *candidate) bool { return c == all[i] })
		if t := replay(&wide, kinds, fewer); t.reached() && pl.fit(e, fewer) {
			kept = fewer
		}
	}
	t := replay(&wide, kinds, kept)
	p := &plan{node: e.node, victims: kept, harm: t.harm}
	p.finish(e.need)
	return &option{plan: p, exam: e, checked: true}
}

// replay is a search that has taken the given victims.
func replay(e *exam, kinds []*kind, victims []*candidate) *search {
	s := newSearch(e, kinds, 0)
	for _, c := range victims {
		for _, k := range kinds {
			if k.same(c) {
				s.take(k, slices.Index(k.pods, c.pod))
				break
			}
		}
	}
	return s
}
