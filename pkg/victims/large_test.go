package victims_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// Where a node has more candidates than are weighed exactly, a plan is still
// lawful, without idle victims and the same in any order; and there is one where
// the candidates in order of harm make one.

func TestLargeWorlds(t *testing.T) {
	largeWorlds(t, 400, 1)
}

func largeWorlds(t *testing.T, worlds, first uint64) {
	t.Helper()
	bounded, several := 0, 0
	for seed := first; seed < first+worlds; seed++ {
		m := generate(seed, 60)
		for i, p := range m.pods { // all different, so that they are not taken together
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
		w, d, p := real(m, nil)
		if err := sound(m, w, d, p); err != nil {
			t.Fatalf("generate(%d, 60): %v\n%s", seed, err, m)
		}
		_, again, _ := real(m, rand.New(rand.NewPCG(seed, 1)))
		if diff := cmp.Diff(essence(d), essence(again)); diff != "" {
			t.Fatalf("generate(%d, 60): in another order: %s\n%s", seed, diff, m)
		}
		if !d.Exhaustive {
			bounded++
		}
		if len(d.Victims) > 2 {
			several++
		}
	}
	if bounded < int(worlds)/100 || several < int(worlds)/40 {
		t.Errorf("of %d worlds %d are too large to weigh all, %d have several victims", worlds, bounded, several)
	}
}

// sound checks a decision that need not be the best.
func sound(m *model, w *victims.World, d victims.Decision, p victims.Params) error {
	o := newOracle(m)
	if err := victims.Lawful(w, d, p); err != nil {
		return err
	}
	if err := o.facts(d); err != nil {
		return err
	}
	if d.Outcome == victims.Refuse && !m.ask.never {
		for node := range m.nodes {
			if set := o.greedy(node); set != nil && !d.Exhaustive {
				return fmt.Errorf("refused (%s), but %v may go on node %d", d.Stopped, set, node)
			}
		}
	}
	return nil
}

// greedy takes what is lawful, the largest first, until there is room.
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

// TestAlikePodsAreWeighedTogether: many pods of few shapes are no large world.
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

// TestDegenerateWorlds has what cannot be planned for, and must not panic.
func TestDegenerateWorlds(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*model, *victims.World, *victims.Ask)
		outcome victims.Outcome
		stopped victims.Rule
	}{
		{"no nodes", func(_ *model, w *victims.World, _ *victims.Ask) { w.Nodes = nil }, victims.Refuse, ""},
		{"no pods", func(_ *model, w *victims.World, _ *victims.Ask) { w.Nodes[0].Pods = nil }, victims.Refuse, ""},
		{"no queue", func(_ *model, _ *victims.World, a *victims.Ask) { a.Leaf = 77 }, victims.Refuse, victims.RuleNoQueue},
		{"no request", func(_ *model, _ *victims.World, a *victims.Ask) { a.Request = nil }, victims.Hold, ""},
		{"huge request", func(_ *model, _ *victims.World, a *victims.Ask) { a.Request[0] = math.MaxInt64 }, victims.Refuse, victims.RuleTooLittle},
		{"node overcommitted without end", func(_ *model, w *victims.World, _ *victims.Ask) { w.Nodes[0].Free[0] = math.MinInt64 }, victims.Refuse, victims.RuleTooLittle},
		{"huge pods", func(_ *model, w *victims.World, _ *victims.Ask) {
			for _, p := range w.Nodes[0].Pods {
				p.Request[0] = math.MaxInt64
			}
		}, victims.Refuse, victims.Law2},
		{"pod of a queue that is gone", func(_ *model, w *victims.World, _ *victims.Ask) {
			for _, p := range w.Nodes[0].Pods {
				p.Leaf = 55
			}
		}, victims.Refuse, victims.RuleForeign},
		{"queue that became a parent", func(_ *model, w *victims.World, _ *victims.Ask) {
			for _, p := range w.Nodes[0].Pods {
				p.Leaf = queues.RootID
			}
		}, victims.Refuse, victims.Law3},
		{"max without end", func(m *model, w *victims.World, a *victims.Ask) {
			m.queues[1].max[0] = 1
			w.Queues = m.view(upTo(3))
			a.Request[0] = math.MaxInt64
		}, victims.Refuse, victims.RuleTooLittle},
	} {
		m := pair()
		m.queues[2].guaranteed[0] = 0
		w, ask, p := m.world(nil)
		c.change(m, w, ask)
		d := victims.Plan(w, ask, p)
		if d.Outcome != c.outcome || d.Stopped != c.stopped {
			t.Errorf("%s: %s %q, want %s %q", c.name, d.Outcome, d.Stopped, c.outcome, c.stopped)
		}
		if err := victims.Lawful(w, d, p); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
