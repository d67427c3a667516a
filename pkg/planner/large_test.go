package planner_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/planner/judge"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// If a node has more candidates than are considered exactly, a plan is still lawful,
// needs each victim, and is the same in any order. There is a plan if taking the
// candidates in order of harm yields one.

func TestLargeCases(t *testing.T) { largeCases(t, 400, 1) }

func largeCases(t *testing.T, cases, first uint64) {
	t.Helper()
	bounded, several := 0, 0
	for seed := first; seed < first+cases; seed++ {
		m := largeCase(seed)
		d, err := sound(m, real, seed)
		if err != nil {
			t.Fatalf("largeCase(%d): %v\n%s", seed, err, m)
		}
		if !d.Exhaustive {
			bounded++
		}
		if len(d.Victims) > 2 {
			several++
		}
	}
	if bounded < int(cases)/100 || several < int(cases)/40 {
		t.Errorf("of %d cases %d are too large to weigh all, %d have several victims", cases, bounded, several)
	}
}

// largeCase has up to 60 pods that are all different, so that the search cannot group
// them.
func largeCase(seed uint64) *model {
	m := generate(seed, 60)
	for i, p := range m.pods {
		p.request = slices.Clone(p.request)
		p.request[0] = p.request[0]*100 + int64(i)
	}
	m.ask.request[0] *= 300
	for _, q := range m.queues {
		for _, quota := range [][]int64{q.guaranteed, q.max} {
			quota[0] = max(quota[0]*100, quota[0])
		}
	}
	for n, node := range m.nodes {
		node.allocatable[0] = 0
		node.allocatable[0] = -m.free(n, 0)
	}
	return m
}

// sound checks a decision that need not be the best.
func sound(m *model, plan planFunc, seed uint64) (planner.Decision, error) {
	o := newOracle(m)
	snapshot, d, p := plan(m, nil)
	if err := judge.Lawful(snapshot, d, p); err != nil {
		return d, fmt.Errorf("Lawful refuses it: %w", err)
	}
	if err := o.facts(d); err != nil {
		return d, err
	}
	if d.Outcome == planner.Refuse && !m.ask.never {
		for node := range m.nodes {
			if set := o.greedy(node); set != nil && !d.Exhaustive {
				return d, fmt.Errorf("refused (%s), but %v may go on node %d", d.Stopped, set, node)
			}
		}
	}
	return d, o.repeat(d, plan, seed)
}

// greedy takes lawful candidates, the largest first, until enough is freed.
func (o *oracle) greedy(node int) []int {
	s := o.contested(node)
	order := upTo(len(o.pods))
	slices.SortStableFunc(order, func(a, b int) int { return int(o.pods[b].request[0] - o.pods[a].request[0]) })
	var set []int
	for _, i := range order {
		if o.room(node, set, o.taken(set)) {
			return set
		}
		if more := append(slices.Clone(set), i); o.forbids(i, node, s) == "" && o.law2(o.taken(more), s) {
			set = more
		}
	}
	return nil
}

// TestUnsoundPlansAreNoticed plants planners that violate the guarantees for large
// cases. Each changes the decision of the real one, with all its fields.
func TestUnsoundPlansAreNoticed(t *testing.T) {
	for _, c := range []struct {
		bug, want string
		// plant returns other victims, nil for a refusal, and false if it cannot.
		plant func(o *oracle, node int, set []int) ([]int, bool)
	}{
		{"a victim too many", "is not needed", func(o *oracle, node int, set []int) ([]int, bool) { return o.oneMore(node, set, true) }},
		{"a victim that a law keeps", "Lawful refuses it", func(o *oracle, node int, set []int) ([]int, bool) { return o.oneMore(node, set, false) }},
		{"a victim too few", "Lawful refuses it", func(_ *oracle, _ int, set []int) ([]int, bool) { return set[1:], len(set) > 1 }},
		{"a refusal", "may go on node", func(o *oracle, node int, _ []int) ([]int, bool) { return nil, o.greedy(node) != nil }},
	} {
		noticed := 0
		for seed := uint64(1); seed <= 2000 && noticed < 20; seed++ {
			m := largeCase(seed)
			planted := false
			_, err := sound(m, func(m *model, chance *rand.Rand) (*planner.Snapshot, planner.Decision, planner.Params) {
				snapshot, d, p := real(m, chance)
				if d.Outcome == planner.Preempt {
					o := newOracle(m)
					node, set := o.chosen(d)
					if set, planted = c.plant(o, node, set); planted {
						d = o.decision(snapshot, d.Ask, choice{node: node, victims: set}, set != nil)
						d.Exhaustive = false
					}
				}
				return snapshot, d, p
			}, seed)
			if !planted {
				continue
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("largeCase(%d) with %s: %v", seed, c.bug, err)
			}
			noticed++
		}
		if noticed < 20 {
			t.Errorf("%s was planted %d times only", c.bug, noticed)
		}
	}
}

// chosen returns the node and the victims of a decision.
func (o *oracle) chosen(d planner.Decision) (node int, set []int) {
	for _, v := range d.Victims {
		set = append(set, slices.IndexFunc(o.pods, func(p *mpod) bool { return p.uid == v.UID }))
	}
	return slices.IndexFunc(o.nodes, func(n *mnode) bool { return n.name == d.Node }), set
}

// oneMore adds a pod of the node to a sufficient set: one with which the set stays
// lawful, or one that a law protects.
func (o *oracle) oneMore(node int, set []int, lawful bool) ([]int, bool) {
	s := o.contested(node)
	for i, p := range o.pods {
		if p.node != node || p.queue < 0 || slices.Contains(set, i) || lawful != (o.forbids(i, node, s) == "") {
			continue
		}
		if more := append(slices.Clone(set), i); !lawful || o.lawful(node, more) {
			return more, true
		}
	}
	return nil, false
}

// TestAlikePodsAreWeighedTogether: many pods of few shapes are searched exactly.
func TestAlikePodsAreWeighedTogether(t *testing.T) {
	m, _ := crowd(60)
	m.nodes[0].allocatable[0] = 120
	m.ask.request = []int64{40}
	m.queues[1].guaranteed[0] = 100
	_, d, _ := real(m, nil)
	if len(d.Victims) != 20 || !d.Exhaustive {
		t.Fatalf("%d victims, exhaustive %v", len(d.Victims), d.Exhaustive)
	}
	for _, v := range d.Victims {
		if v.Originator || v.Created.Before(epoch.Add(21*time.Second)) {
			t.Errorf("%s is not among the youngest that are no originators", v.UID)
		}
	}
}

// TestDegenerateCases has cases for which no plan is possible; Plan must not panic.
func TestDegenerateCases(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*model, *planner.Snapshot, *planner.Ask)
		outcome planner.Outcome
		stopped planner.Rule
	}{
		{"no nodes", func(_ *model, snapshot *planner.Snapshot, _ *planner.Ask) { snapshot.Nodes = nil }, planner.Refuse, ""},
		{"no pods", func(_ *model, snapshot *planner.Snapshot, _ *planner.Ask) { snapshot.Nodes[0].Pods = nil }, planner.Refuse, ""},
		{"no queue", func(_ *model, _ *planner.Snapshot, a *planner.Ask) { a.Leaf = 77 }, planner.Refuse, planner.RuleNoQueue},
		{"no request", func(_ *model, _ *planner.Snapshot, a *planner.Ask) { a.Request = nil }, planner.Wait, ""},
		{"huge request", func(_ *model, _ *planner.Snapshot, a *planner.Ask) { a.Request[0] = math.MaxInt64 }, planner.Refuse, planner.RuleTooLittle},
		{"node overcommitted without end", func(_ *model, snapshot *planner.Snapshot, _ *planner.Ask) { snapshot.Nodes[0].Free[0] = math.MinInt64 }, planner.Refuse, planner.RuleTooLittle},
		{"huge pods", func(_ *model, snapshot *planner.Snapshot, _ *planner.Ask) {
			for _, p := range snapshot.Nodes[0].Pods {
				p.Request[0] = math.MaxInt64
			}
		}, planner.Refuse, planner.Law2},
		{"pod of a queue that is gone", func(_ *model, snapshot *planner.Snapshot, _ *planner.Ask) {
			for _, p := range snapshot.Nodes[0].Pods {
				p.Leaf = 55
			}
		}, planner.Refuse, planner.RuleForeign},
		{"queue that became a parent", func(_ *model, snapshot *planner.Snapshot, _ *planner.Ask) {
			for _, p := range snapshot.Nodes[0].Pods {
				p.Leaf = queues.RootID
			}
		}, planner.Refuse, planner.Law3},
		{"max without end", func(m *model, snapshot *planner.Snapshot, a *planner.Ask) {
			m.queues[1].max[0] = 1
			snapshot.Queues = m.view(upTo(3))
			a.Request[0] = math.MaxInt64
		}, planner.Refuse, planner.RuleTooLittle},
	} {
		m := pair()
		m.queues[2].guaranteed[0] = 0
		snapshot, ask, p := m.snapshot(nil)
		c.change(m, snapshot, ask)
		for i, n := range snapshot.Nodes {
			snapshot.Nodes[i] = planner.NewNode(n.Name, n.Allocatable, n.Free, n.Pods)
		}
		d := search.Plan(snapshot, ask, p)
		if d.Outcome != c.outcome || d.Stopped != c.stopped {
			t.Errorf("%s: %s %q, want %s %q", c.name, d.Outcome, d.Stopped, c.outcome, c.stopped)
		}
		if err := judge.Lawful(snapshot, d, p); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
