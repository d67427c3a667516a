package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/planner"
)

// TestScenarios runs the scenarios of testdata, see package scenario. After each plan it
// also runs brute force, Lawful and the planner on the snapshot in another order, and reads
// the decision as it is printed. A line that begins with !! reports a difference.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		story := scenario.Tell(deciding(real))
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			out, err := story.Command(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

// TestScenariosNoticeAWrongPlanner shows that these checks report differences: for a
// planner without law 2, and for one that does not run filters.
func TestScenariosNoticeAWrongPlanner(t *testing.T) {
	for _, test := range []struct {
		plan                   planFunc
		guaranteed, group, ask string
		says                   string
	}{
		{buggy("law 2"), " guaranteed.vcore=3", "", "", "!! outcome is preempt"},
		{buggy(), "", " group=db", " apart=db", "passes false"},
	} {
		story := scenario.Tell(deciding(test.plan))
		out := ""
		datadriven.RunTestFromString(t, `
queues
root
  prod guaranteed.vcore=2
  test`+test.guaranteed+`
----

node n1 vcore=5
----

pods
t1 queue=root.test vcore=2 node=n1
t2 queue=root.test vcore=2 node=n1`+test.group+`
----

ask p1 queue=root.prod vcore=2`+test.ask+`
----

plan p1
----
`, func(t *testing.T, d *datadriven.TestData) string {
			out = expect.Get(story.Command(d))(t)
			return ""
		})
		if !strings.Contains(out, "victim t1") || !strings.Contains(out, "!! ") || !strings.Contains(out, test.says) {
			t.Errorf("%s: %s", test.says, out)
		}
	}
}

// deciding runs a planner in a scenario.
func deciding(plan planFunc) scenario.Decide {
	return func(state *scenario.State, a scenario.Ask, strict bool) (scenario.Outcome, string, error) {
		m := modelOf(state, a, strict)
		_, d, _ := plan(m, nil)
		d.Ask.Name = a.Name
		outcome, out := outcomeOf(&d), printed(&d)
		if read, err := scenario.ReadOutcome(a.Name, out); err != nil || !cmp.Equal(outcome, read) {
			out += fmt.Sprintf("!! it is read as %v: %v\n", read, err)
		}
		for seed := range uint64(3) {
			if err := check(m, plan, seed); err != nil {
				out += "!! " + strings.ReplaceAll(err.Error(), "\n", "\n!! ") + "\n"
				break
			}
		}
		return outcome, out, nil
	}
}

// modelOf is the state of a scenario as a model.
func modelOf(state *scenario.State, a scenario.Ask, strict bool) *model {
	m := &model{types: scenario.Types(), strict: strict}
	for q := range state.Root.All() {
		i := m.addQueue(m.find(q.Path[:max(strings.LastIndexByte(q.Path, '.'), 0)]), q.Name)
		m.queues[i].policies = q.Policies
		for t, name := range m.types {
			if g, ok := q.Guaranteed.Get(name); ok {
				m.queues[i].guaranteed[t] = int64(g)
			}
			if most, ok := q.Max.Get(name); ok {
				m.queues[i].max[t] = int64(most)
			}
		}
	}
	for _, n := range state.Nodes {
		m.nodes = append(m.nodes, &mnode{n.Name, amountsOf(n.Allocatable)})
	}
	for _, b := range state.Budgets {
		m.budgets = append(m.budgets, b.Allowed)
	}
	for i := range state.Pods {
		m.pods = append(m.pods, m.podOf(state, &state.Pods[i]))
	}
	for _, x := range state.Waiting {
		m.waiting = append(m.waiting, mwaiting{m.find(x.Queue), m.node(x.Node), amountsOf(x.Request)})
	}
	m.ask = mask{a.App, m.find(a.Queue), amountsOf(a.Request), a.Priority, a.Never, nil}
	if places(state, &a) {
		m.fits = func(node string, without []string) planner.Fit { return fit(state, &a, node, without) }
	}
	return m
}

func (m *model) podOf(state *scenario.State, p *scenario.Pod) *mpod {
	const now = 1_000_000
	out := &mpod{
		uid: p.Name, app: p.App, queue: m.find(p.Queue), node: m.node(p.Node), request: amountsOf(p.Request),
		priority: p.Priority, created: now - int(p.Age.Seconds()),
		optedOut: p.OptedOut, originator: p.Originator, protection: p.Protection,
	}
	for _, name := range p.Budgets {
		out.budgets = append(out.budgets, slices.IndexFunc(state.Budgets, func(b scenario.Budget) bool { return b.Name == name }))
	}
	return out
}

func (m *model) node(name string) int {
	return slices.IndexFunc(m.nodes, func(n *mnode) bool { return n.name == name })
}

func amountsOf(a scenario.Amounts) []int64 {
	var out []int64
	for _, name := range scenario.Types() {
		out = append(out, int64(a[name]))
	}
	return out
}
