package planner_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
)

// filters is a fake of the real filters: the asker passes on a node only without some
// pods, such as those that use its port.
type filters struct {
	// away are the pods, by UID, that must not be on the node, and stay those without which
	// the asker does not run there (affinity).
	away, stay []string
	// never and refuses are nodes on which the asker never passes. For those of refuses
	// the filters return Fails instead of Never.
	never, refuses []string
	model          *model
	calls          int
}

func (f *filters) fits(node string, without []string) planner.Fit {
	f.calls++
	switch {
	case slices.Contains(f.never, node):
		return planner.Never
	case slices.Contains(f.refuses, node):
		return planner.Fails
	}
	for _, p := range f.model.pods {
		here, gone := f.model.nodes[p.node].name == node, slices.Contains(without, p.uid)
		if here && (!gone && slices.Contains(f.away, p.uid) || gone && slices.Contains(f.stay, p.uid)) {
			return planner.Fails
		}
	}
	return planner.Passes
}

func (f *filters) plan(m *model, most int) planner.Decision {
	f.model, m.fits = m, f.fits
	snapshot, ask, p := m.snapshot(nil)
	p.MaxFits = most
	return search.Plan(snapshot, ask, p)
}

// TestFitsThatPassChangeNothing: the filters are called once.
func TestFitsThatPassChangeNothing(t *testing.T) {
	for seed := uint64(1); seed <= 3000; seed++ {
		m := generate(seed, 8)
		_, want, _ := real(m, nil)
		f := &filters{}
		got := f.plan(m, 0)
		calls := 0
		if want.Outcome != planner.Refuse {
			calls = 1
		}
		if f.calls != calls || got.FitsCalls != calls {
			t.Fatalf("generate(%d, 8): %d calls, said are %d, want %d", seed, f.calls, got.FitsCalls, calls)
		}
		want.Rejected, got.Rejected = nil, nil // with filters, fewer nodes may be examined
		if diff := cmp.Diff(essence(want), essence(got)); diff != "" {
			t.Fatalf("generate(%d, 8): %s\n%s", seed, diff, m)
		}
	}
}

// TestFitsOnRandomCases has blocking pods that the planner does not know of.
func TestFitsOnRandomCases(t *testing.T) {
	seen := tally{}
	for seed := uint64(1); seed <= 8000; seed++ {
		m, f := inTheWay(seed)
		d := f.plan(m, 200)
		if err := f.check(m, d); err != nil {
			t.Fatalf("inTheWay(%d): %v\naway %v, never %v\n%s", seed, err, f.away, f.never, m)
		}
		seen.note("widened", d.Outcome == planner.Preempt && !d.Exhaustive)
		seen.note("refused by the filters", d.Stopped == planner.RuleFilters)
	}
	seen.require(t, 8000, map[string]uint64{"widened": 25, "refused by the filters": 25})
}

// inTheWay is a random case in which the filters reject the asker on a node with certain
// pods, or on some nodes.
func inTheWay(seed uint64) (*model, *filters) {
	m := generate(seed, 8)
	m.budgets = append(m.budgets, 0)
	chance := rand.New(rand.NewPCG(seed, 5))
	f := &filters{}
	for _, p := range m.pods {
		if chance.IntN(4) == 0 {
			f.away = append(f.away, p.uid)
		}
	}
	if chance.IntN(3) == 0 {
		f.never = []string{m.nodes[0].name}
	}
	if seed%2 == 1 {
		f.never, f.refuses = nil, f.never
	}
	return m, f
}

// check is fitsCheck, and compares the number of filter calls with the reported one.
func (f *filters) check(m *model, d planner.Decision) error {
	if d.FitsCalls != f.calls || f.calls > 200 {
		return fmt.Errorf("%d calls, said are %d", f.calls, d.FitsCalls)
	}
	return fitsCheck(m, d)
}

// TestDeafPlansAreNoticed plants planners that violate the guarantees of plans with
// filters. Each returns false if its bug has no effect.
func TestDeafPlansAreNoticed(t *testing.T) {
	for _, c := range []struct {
		bug, want string
		plan      func(m *model, f *filters) (planner.Decision, bool)
	}{
		{"a planner that asks no filter", "passes false", func(m *model, f *filters) (planner.Decision, bool) {
			m.fits = nil
			_, d, _ := real(m, nil)
			f.model, m.fits = m, f.fits
			o := newOracle(m)
			node, set := o.chosen(d)
			return d, d.Outcome != planner.Refuse && !o.passes(node, set)
		}},
		{"a planner that gives up at the first refusal", "though without", func(m *model, f *filters) (planner.Decision, bool) {
			if d := f.plan(m, 200); d.Outcome == planner.Refuse {
				return d, false
			}
			snapshot, ask, p := m.snapshot(nil)
			p.Fits = func(node string, without []*planner.Pod) planner.Fit {
				if f.fits(node, uidsOf(without)) == planner.Passes {
					return planner.Passes
				}
				return planner.Never
			}
			d := search.Plan(snapshot, ask, p)
			o := newOracle(m)
			all := slices.ContainsFunc(upTo(len(m.nodes)), func(node int) bool {
				set := o.all(node)
				return o.law2(o.taken(set), o.contested(node)) && o.passes(node, set)
			})
			return d, d.Outcome == planner.Refuse && all
		}},
		{"a planner that lets no pod back", "is not needed", func(m *model, f *filters) (planner.Decision, bool) {
			return f.swap(m, func(o *oracle, node int, set []int) ([]int, bool) {
				all := o.all(node)
				return all, len(all) > len(set) && o.lawful(node, all) && o.passes(node, all)
			})
		}},
		{"a planner that takes pods in the way, lawful or not", "lawful false", func(m *model, f *filters) (planner.Decision, bool) {
			return f.swap(m, func(o *oracle, node int, set []int) ([]int, bool) { return o.oneMore(node, set, false) })
		}},
	} {
		notices(t, c.bug, c.want, 20, func(seed uint64) (bool, error) {
			m, f := inTheWay(seed)
			d, planted := c.plan(m, f)
			return planted, fitsCheck(m, d)
		})
	}
	m, f := inTheWay(1)
	d := f.plan(m, 200)
	d.FitsCalls--
	expect.Fails(t, f.check(m, d), "said are") // a planner that miscounts
}

// swap changes the victims of a plan.
func (f *filters) swap(m *model, plant func(o *oracle, node int, set []int) ([]int, bool)) (planner.Decision, bool) {
	d := f.plan(m, 200)
	if d.Outcome != planner.Preempt {
		return d, false
	}
	o := newOracle(m)
	node, set := o.chosen(d)
	set, planted := plant(o, node, set)
	if planted {
		d = o.decision(d.Ask, choice{node: node, victims: set}, true)
	}
	return d, planted
}

// all are the pods that may be preempted if the asker runs on a node, each judged alone.
func (o *oracle) all(node int) []int {
	s := o.contested(node)
	return slices.DeleteFunc(upTo(len(o.pods)), func(i int) bool { return o.forbids(i, node, s) != "" })
}

// fitsCheck judges a decision: the plan is lawful, frees enough, passes the filters, and
// needs each victim. There must be a plan if preempting all permitted pods would suffice.
func fitsCheck(m *model, d planner.Decision) error {
	o := newOracle(m)
	if d.Outcome != planner.Refuse {
		node, set := o.chosen(d)
		if !o.lawful(node, set) || !o.passes(node, set) {
			return fmt.Errorf("%s: lawful %v, passes %v", d, o.lawful(node, set), o.passes(node, set))
		}
		for i := range set {
			if o.passes(node, slices.Delete(slices.Clone(set), i, i+1)) {
				return fmt.Errorf("%s: %s is not needed", d, m.pods[set[i]].uid)
			}
		}
		return nil
	}
	for node := range m.nodes {
		all := o.all(node)
		if !m.ask.never && o.law2(o.taken(all), o.contested(node)) && o.passes(node, all) {
			return fmt.Errorf("refused (%s), though without %v node %s passes", d.Stopped, all, m.nodes[node].name)
		}
	}
	return nil
}

// passes reports whether the asker runs on a node without a set of pods.
func (o *oracle) passes(node int, set []int) bool {
	var gone []string
	for _, i := range set {
		if o.pods[i].node == node {
			gone = append(gone, o.pods[i].uid)
		}
	}
	return o.room(node, set, o.taken(set)) && o.fits(o.nodes[node].name, gone) == planner.Passes
}

// crowd is a node with many pods of root.b, of which the given ones block an asker of
// root.a. The asker fits by amounts.
func crowd(pods int, away ...int) (*model, *filters) {
	m := pair()
	m.nodes[0].allocatable[0] = 1000
	m.pods = nil
	f := &filters{}
	for i := range pods {
		m.pods = append(m.pods, &mpod{uid: fmt.Sprintf("v%03d", i), app: "b", queue: 2, request: []int64{2}, created: i, originator: i%2 == 0})
	}
	f.away = each(away, func(i int) string { return m.pods[i].uid })
	return m, f
}

// TestFitsTooOften: if the limit on filter calls is too low, no pod is preempted, rather
// than one that is not needed. A limit below the number of pods can be enough.
func TestFitsTooOften(t *testing.T) {
	for most := 1; most <= 60; most++ {
		m, f := crowd(64, 3, 9, 27, 40, 63)
		d := f.plan(m, most)
		if f.calls > most || d.FitsCalls != f.calls || d.Exhaustive {
			t.Fatalf("at most %d calls: %d, said are %d; %s", most, f.calls, d.FitsCalls, d)
		}
		want := []string{"v003", "v009", "v027", "v040", "v063"}
		if d.Outcome == planner.Preempt && !slices.Equal(uids(d), want) {
			t.Fatalf("at most %d calls: %s", most, d)
		}
		if done := d.Outcome == planner.Preempt; done != (most >= 54) && (most < 30 || most == 60) {
			t.Fatalf("at most %d calls: %s after %d", most, d, f.calls)
		}
	}
}

// TestFitsAffinity: a pod that the asker requires on its node is not preempted.
func TestFitsAffinity(t *testing.T) {
	m := pair()
	f := &filters{stay: []string{"v1"}}
	d := f.plan(m, 0)
	// Arithmetic chooses v1, the younger; without all pods, the filters fail as well.
	expect.That(t, d.Outcome == planner.Refuse && d.Stopped == planner.RuleFilters && f.calls == 2,
		"%s after %d calls", d, f.calls)
	f = &filters{stay: []string{"v0"}}
	d = f.plan(m, 0)
	expect.Same(t, "victims of "+d.String(), []string{"v1"}, uids(d))
}

// TestFitsNextNode: a node that the filters reject whatever pods leave costs two calls, or one call if
// they return Never. The next node is taken, and the rejected nodes are named.
func TestFitsNextNode(t *testing.T) {
	m := pair()
	for _, name := range []string{"a", "b", "c"} {
		m.nodes = append(m.nodes, &mnode{name, []int64{2}})
		m.pods = append(m.pods, &mpod{uid: "on-" + name, app: "b", queue: 2, node: len(m.nodes) - 1, request: []int64{2}, created: 9})
	}
	for _, c := range []struct {
		name    string
		filters filters
		calls   int
	}{
		{"refuses two", filters{refuses: []string{"a", "b"}}, 5},
		{"never on two", filters{never: []string{"a", "b"}}, 3},
		{"never on one, refuses one", filters{never: []string{"a"}, refuses: []string{"b"}}, 4},
	} {
		f := &c.filters
		d := f.plan(m, 0)
		expect.Same(t, c.name+": node and victims of "+d.String(),
			[]string{"c", "on-c"}, append([]string{d.Node}, uids(d)...))
		expect.Same(t, c.name+": calls", c.calls, f.calls)
		expect.Same(t, c.name+": nodes that do not fit", []string{"a", "b"}, d.Unfit)
		f.calls = 0
		expect.Same(t, c.name+": with a call less", planner.Refuse, f.plan(m, c.calls-1).Outcome)
		expect.Same(t, c.name+": calls then", c.calls-1, f.calls)
	}
}

// TestFitsManyNodes: however many nodes the filters reject for good, the plan is the one
// for the snapshot without these nodes.
func TestFitsManyNodes(t *testing.T) {
	seen := tally{}
	for seed := uint64(1); seed <= 400; seed++ {
		chance := rand.New(rand.NewPCG(seed, 6))
		c := city{nodes: 6 + chance.IntN(12), podsPerNode: 1 + chance.IntN(6), shapes: chance.IntN(3) * 4, slack: 100_000, want: 1000 + chance.Int64N(15_000)}
		snapshot, ask := c.snapshot(t)
		never := map[string]bool{}
		for _, n := range snapshot.Nodes {
			never[n.Name] = chance.IntN(10) < 8
		}
		without, asked, want := *snapshot, 0, planner.Decision{}
		for without.Nodes = slices.Clone(snapshot.Nodes); ; asked++ {
			if want = search.Plan(&without, ask, planner.Params{}); !never[want.Node] {
				break
			}
			without.Nodes = slices.DeleteFunc(without.Nodes, func(n *planner.Node) bool { return n.Name == want.Node })
		}
		seen.note("more than the first few plans refused", asked > 4)
		got := search.Plan(snapshot, ask, planner.Params{Fits: func(node string, _ []*planner.Pod) planner.Fit {
			if never[node] {
				return planner.Never
			}
			return planner.Passes
		}})
		if got.Node != want.Node || !slices.Equal(uids(got), uids(want)) || len(got.Unfit) != asked {
			t.Fatalf("%d: %+v\n%s, unfit %v, want\n%s after %d", seed, c, got, got.Unfit, want, asked)
		}
	}
	seen.require(t, 400, map[string]uint64{"more than the first few plans refused": 100})
}
