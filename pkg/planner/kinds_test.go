package planner_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/planner"
)

// A queue may be over its max because of many pods on many nodes, of which those that harm least may
// not be preempted (law 2). They are too many for an oracle over sets of pods. But they form few
// equivalence classes, and an oracle over the number of victims per class is exact.

// kinds sorts pods into equivalence classes: no law and no criterion before creation distinguishes the
// pods of a class, for an asker on a given node. The first pod of a class is taken first.
func (o *oracle) kinds(node int, pods []int) [][]int {
	byKind := map[string]int{}
	var out [][]int
	for _, i := range pods {
		p := o.pods[i]
		kind := fmt.Sprint(
			p.queue, p.app, p.request, p.budgets, p.priority, p.optedOut, p.originator, p.slow, p.node == node)
		at, known := byKind[kind]
		if !known {
			at = len(out)
			byKind[kind], out = at, append(out, nil)
		}
		out[at] = append(out[at], i)
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b int) int {
			return cmp.Or(cmp.Compare(o.pods[b].created, o.pods[a].created), strings.Compare(o.pods[a].uid, o.pods[b].uid))
		})
	}
	return out
}

// bestOfKinds is best for pods of few kinds. It does not extend sets that free enough,
// because every victim of a plan is needed.
func (o *oracle) bestOfKinds() (choice, bool) {
	var best *choice
	if o.ask.never {
		return choice{}, false
	}
	for node := range o.nodes {
		s := o.contested(node)
		kinds := o.kinds(node, o.keptPool(o.mayGo(node, s)))
		o.multisets(node, kinds, func(set []int, freed []int64) bool {
			switch {
			case !o.roomy(node, freed, o.sums):
				return true
			case !o.law2(o.sums, s):
				return false
			}
			best = o.better(best, node, set, freed)
			return false
		})
	}
	if best == nil {
		return choice{}, false
	}
	return *best, true
}

// multisets calls f with every choice of the number of victims of each kind. It extends a
// choice only if f returns true. Every victim frees a unit that the others leave lacking,
// so there are at most as many victims as lacking units.
func (o *oracle) multisets(node int, kinds [][]int, f func(set []int, freed []int64) bool) {
	need := int64(0)
	for t := range o.types {
		need += o.lacks[node][t]
		for _, q := range o.path {
			need += o.overs[q][t]
		}
	}
	o.taken(nil)
	var set []int
	freed, used := make([]int64, len(o.types)), make([]int, len(kinds))
	var grow func(from int)
	grow = func(from int) {
		if !f(set, freed) || int64(len(set)) == need {
			return
		}
		for k := from; k < len(kinds); k++ {
			if used[k] == len(kinds[k]) {
				continue
			}
			pod := kinds[k][used[k]]
			used[k]++
			set = append(set, pod)
			o.take(pod, 1)
			o.gain(freed, node, pod, 1)
			grow(k)
			o.gain(freed, node, pod, -1)
			o.take(pod, -1)
			set = set[:len(set)-1]
			used[k]--
		}
	}
	grow(0)
}

// keptPool is the planted bug of a planner that considers only the 32 least harmful pods,
// whether or not they can be preempted together.
func (o *oracle) keptPool(pods []int) []int {
	if !o.wide["pool"] || len(pods) <= 32 {
		return pods
	}
	slices.SortStableFunc(pods, func(a, b int) int {
		one := func(i int) counts {
			c := o.count(0, []int{i}, make([]int64, len(o.types)))
			c.waste = 0
			return c
		}
		return o.compareCounts(one(a), one(b))
	})
	return pods[:32]
}

// sparse makes a case with 20 to 60 pods of few kinds, on 10 to 40 nodes, and an asker
// that would exceed the max of the parent of its queue.
func sparse(seed uint64) *model {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 9)), m: &model{types: []string{"vcore"}}}
	m := g.m
	if g.chance(30) {
		m.types = append(m.types, "pods")
	}
	p := m.addQueue(m.addQueue(-1, "root"), "p")
	m.ask = mask{app: "asker", queue: m.addQueue(p, "a"), priority: int32(g.between(0, 2))}
	for _, name := range []string{"b", "c", "d"}[:g.between(2, 3)] {
		if q := m.addQueue(p, name); g.chance(20) {
			m.addQueue(q, "x")
			m.addQueue(q, "y")
		}
	}
	if g.chance(30) {
		m.addQueue(0, "q")
	}
	amounts := func(vcore int) []int64 { return []int64{int64(vcore), 1}[:len(m.types)] }
	m.ask.request = amounts(g.between(1, 4))
	for i := range g.between(10, 40) {
		m.nodes = append(m.nodes, &mnode{name: fmt.Sprintf("n%02d", i)})
	}
	g.bounded = p
	g.alike(amounts)
	g.fullNodes()
	g.tightQueues(p)
	return m
}

// alike adds pods of few kinds. Most are of the first kind, which mostly does the least harm.
func (g *generator) alike(amounts func(vcore int) []int64) {
	m := g.m
	var kinds []mpod
	for i := range g.between(2, 5) {
		kinds = append(kinds, mpod{
			app: fmt.Sprint("app", i), queue: g.leaf(m.ask.queue), request: amounts([]int{1, 1, 1, 2, 3}[g.IntN(5)]),
			priority: int32(g.IntN(2)), optedOut: g.chance(15), originator: g.chance(10),
		})
	}
	crowd := []int{50, 90}[g.IntN(2)]
	if g.chance(60) {
		kinds[0].priority, kinds[0].optedOut, kinds[0].originator = -1, false, false
	}
	for i := range g.between(20, 60) {
		p := kinds[g.IntN(len(kinds))]
		if g.chance(crowd) {
			p = kinds[0]
		}
		p.uid, p.node, p.created = fmt.Sprintf("p%02d", i), g.IntN(len(m.nodes)), g.IntN(5)
		m.pods = append(m.pods, &p)
	}
}

// fullNodes leaves free capacity for the asker on few nodes, or on most.
func (g *generator) fullNodes() {
	lacking := []int{10, 10, 80}[g.IntN(3)]
	for n, node := range g.m.nodes {
		node.allocatable = make([]int64, len(g.m.types))
		for t, want := range g.m.ask.request {
			free := want + int64(g.IntN(3))
			if t == 0 && g.chance(lacking) {
				free = g.Int64N(want)
			}
			node.allocatable[t] = max(free-g.m.free(n, t), 0)
		}
	}
}

// tightQueues sets guarantees that let queues lose little, and a max of their parent.
func (g *generator) tightQueues(parent int) {
	m := g.m
	for i, q := range m.queues {
		used := g.used(i, 0)
		switch {
		case i == m.ask.queue:
			q.guaranteed[0] = used + int64(g.between(1, 4))
		case i == parent:
			q.max[0] = max(used+m.ask.request[0]-int64(g.between(1, 4)), 0)
			if g.chance(20) {
				q.guaranteed[0] = max(used+int64(g.between(-3, 5)), 0)
			}
		case i > 0 && g.chance(75):
			q.guaranteed[0] = max(used-int64(g.between(0, 3)), 0)
		case i > 0 && g.chance(40):
			q.guaranteed[0] = 0
		}
		if g.chance(10) {
			q.policies.PriorityOffset = int32(g.between(-1, 1))
		}
	}
}

// checkSparse compares the result of a planner for a case of few kinds with the oracle.
// The planner must find a plan if there is one, and the best one if it reports that it
// was exhaustive. checkSparse returns the best plan and whether it is the planner's.
func checkSparse(m *model, plan planFunc, seed uint64) (want choice, best bool, err error) {
	o := newOracle(m)
	want, found := o.bestOfKinds()
	err = o.judge(plan, seed, func(d planner.Decision) error {
		best = !found || d.Node == want.cost.node && slices.Equal(uids(d), want.cost.uids)
		if refused := d.Outcome == planner.Refuse; refused == found {
			return fmt.Errorf("outcome is %s (%s), want %v on node %d", d.Outcome, d, want.cost.uids, want.node)
		}
		if !best && d.Exhaustive {
			return fmt.Errorf("all is said to be weighed: %s: want %v on %s", d, want.cost.uids, want.cost.node)
		}
		return nil
	})
	return want, best, err
}

// TestManyAlikePodsOnManyNodes finds plans for a queue over its max among many pods of few kinds.
func TestManyAlikePodsOnManyNodes(t *testing.T) { sparseCases(t, 1_500, 1) }

func sparseCases(t *testing.T, cases, first uint64) {
	t.Helper()
	seen := tally{}
	for seed := first; seed < first+cases; seed++ {
		m := sparse(seed)
		want, best, err := checkSparse(m, real, seed)
		if err != nil {
			t.Fatalf("sparse(%d): %v\n%s", seed, err, m)
		}
		seen.note("a plan", len(want.victims) > 0)
		seen.note("the best plan", len(want.victims) > 0 && best)
		seen.note("victims elsewhere", slices.ContainsFunc(want.victims, func(i int) bool { return m.pods[i].node != want.node }))
	}
	t.Log(seen)
	seen.require(t, cases, map[string]uint64{"a plan": 250, "victims elsewhere": 125})
	seen.require(t, seen["a plan"], map[string]uint64{"the best plan": 950})
}

// TestSmallPoolsAreNoticed plants a planner that considers 32 pods and reports that it
// was exhaustive. It misses plans, or has worse ones.
func TestSmallPoolsAreNoticed(t *testing.T) {
	for part, finds := range map[string]bool{"outcome is refuse": false, "all is said": true} {
		notices(t, "a pool of 32 pods", part, 5, func(seed uint64) (bool, error) {
			m := sparse(seed)
			want, found := newOracle(m).bestOfKinds()
			c, foundToo := newOracle(m, "wide pool").bestOfKinds()
			same := foundToo && want.node == c.node && slices.Equal(want.victims, c.victims)
			if !found || same || foundToo != finds {
				return false, nil
			}
			_, _, err := checkSparse(m, func(m *model, _ *rand.Rand) (*planner.Snapshot, planner.Decision, planner.Params) {
				snapshot, ask, p := m.snapshot(nil)
				return snapshot, newOracle(m).decision(ask, c, foundToo), p
			}, seed)
			return true, err
		})
	}
}
