package victims

import (
	"cmp"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// candidate is a pod that every law about single victims allows.
type candidate struct {
	pod      *Pod
	route    *route
	onNode   bool // it is on the node that is to run the asker
	priority int64
}

// kind is the candidates that no criterion before creation tells apart: taking
// the youngest of them is as good as taking any other.
type kind struct {
	candidate            // of the first
	pods      []*Pod     // youngest first, then UID
	all       []shortage // what each frees, all types
}

// tally counts why pods were no candidates.
type tally map[Rule]int

// exam is the examination of one node.
type exam struct {
	*scene
	node      *Node
	need      []shortage
	contested []int
	isIn      []bool // contested, by type
	mayAsk    []bool // law 4, by depth of the common ancestor
	anything  bool   // the obstacle is not resources: whatever may go helps
	rejected  tally
}

func (s *scene) exam(n *Node, rejected tally) *exam {
	e := &exam{scene: s, node: n, need: s.need(n), rejected: rejected}
	e.contested = s.contested(e.need)
	e.isIn = make([]bool, len(s.world.Types))
	for _, t := range e.contested {
		e.isIn[t] = true
	}
	e.mayAsk = s.mayAsk(e.contested)
	e.anything = len(e.need) == 0 && s.deepest < 0
	return e
}

// judge returns the rule that forbids a pod as a victim, empty when none does.
func (e *exam) judge(p *Pod, r *route, priority int64) Rule {
	switch {
	case p.Protection != Unprotected:
		return protectionRules[p.Protection]
	case r.barred != "":
		return r.barred
	case p.App == e.ask.App:
		return Law3
	case priority > e.lifts[r.lca].apply(int64(e.ask.Priority)):
		return Law6
	case !e.mayAsk[r.lca]:
		return Law4
	case !mayLose(r, p.Request, e.contested):
		return Law5
	}
	return ""
}

// helps tells whether a victim frees something that is needed.
func (e *exam) helps(p *Pod, r *route, onNode bool) bool {
	if onNode {
		if e.anything {
			return true
		}
		for _, n := range e.need {
			if p.Request.at(n.typ) > 0 {
				return true
			}
		}
	}
	for d := 1; d <= r.lca; d++ {
		for _, o := range e.over[d] {
			if p.Request.at(o.typ) > 0 {
				return true
			}
		}
	}
	return false
}

// gather adds the candidates among the pods to kinds.
func (e *exam) gather(kinds []*kind, pods []*Pod, onNode bool) []*kind {
	for _, p := range pods {
		if p.Leaf == queues.NoQueue {
			e.rejected[RuleForeign]++
			continue
		}
		r := e.route(p.Leaf)
		atLCA := r.atLCA.apply(int64(p.Priority))
		if rule := e.judge(p, r, atLCA); rule != "" {
			e.rejected[rule]++
			continue
		}
		if !e.helps(p, r, onNode) {
			e.rejected[RuleNotNeeded]++
			continue
		}
		kinds = addTo(kinds, candidate{p, r, onNode, r.atFence.apply(int64(p.Priority))})
	}
	return kinds
}

func addTo(kinds []*kind, c candidate) []*kind {
	for _, k := range kinds {
		if k.same(&c) {
			k.pods = append(k.pods, c.pod)
			return kinds
		}
	}
	k := &kind{candidate: c, pods: []*Pod{c.pod}}
	for t, amount := range c.pod.Request {
		if amount > 0 {
			k.all = append(k.all, shortage{t, amount})
		}
	}
	return append(kinds, k)
}

func (k *kind) same(c *candidate) bool {
	return k.route == c.route && k.onNode == c.onNode && k.priority == c.priority &&
		k.pod.OptedOut == c.pod.OptedOut && k.pod.Originator == c.pod.Originator &&
		slices.Equal(k.pod.Request, c.pod.Request) && slices.Equal(k.pod.Budgets, c.pod.Budgets)
}

// sortKinds puts the least harm first, and in each kind the youngest pod.
func sortKinds(kinds []*kind) {
	for _, k := range kinds {
		slices.SortFunc(k.pods, func(a, b *Pod) int {
			return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.UID, b.UID))
		})
		k.pod = k.pods[0]
	}
	slices.SortFunc(kinds, func(a, b *kind) int {
		return cmp.Or(
			cmp.Compare(rankOf(a.pod.OptedOut), rankOf(b.pod.OptedOut)),
			cmp.Compare(min(len(a.pod.Budgets), 1), min(len(b.pod.Budgets), 1)),
			cmp.Compare(rankOf(a.pod.Originator), rankOf(b.pod.Originator)),
			cmp.Compare(a.priority, b.priority),
			slices.Compare(b.pod.Request, a.pod.Request),
			b.pod.Created.Compare(a.pod.Created),
			cmp.Compare(a.pod.UID, b.pod.UID),
		)
	})
}

func rankOf(b bool) int {
	if b {
		return 1
	}
	return 0
}
