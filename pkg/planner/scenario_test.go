package planner_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/resources"
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
	all := scenario.Cases(t, "testdata")
	for says, plan := range map[string]planFunc{
		"!! outcome is preempt": buggy("law 2"), "passes false": buggy(),
	} {
		said := func(c scenario.Case) bool {
			_, out, err := deciding(plan)(c.State, c.Ask, c.Strict)
			return err == nil && strings.Contains(out, says)
		}
		expect.That(t, slices.ContainsFunc(all, said), "no scenario says %q", says)
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
	m.nodes = each(state.Nodes, func(n scenario.Node) *mnode { return &mnode{n.Name, amountsOf(n.Allocatable)} })
	m.budgets = each(state.Budgets, func(b scenario.Budget) int64 { return b.Allowed })
	m.pods = each(state.Pods, func(p scenario.Pod) *mpod { return m.podOf(state, &p) })
	m.waiting = each(state.Waiting, func(x scenario.Waiting) mwaiting {
		return mwaiting{m.find(x.Queue), m.node(x.Node), amountsOf(x.Request)}
	})
	m.ask = mask{a.App, m.find(a.Queue), amountsOf(a.Request), a.Priority, a.Never, nil}
	placed := slices.ContainsFunc(state.Pods, func(p scenario.Pod) bool { return p.Place != scenario.Place{} })
	if placed || a.Place != (scenario.Place{}) { // room is not all that counts
		m.fits = func(node string, without []string) planner.Fit { return fit(state, &a, node, without) }
	}
	return m
}

func (m *model) podOf(state *scenario.State, p *scenario.Pod) *mpod {
	const now = 1_000_000
	return &mpod{
		uid: p.Name, app: p.App, queue: m.find(p.Queue), node: m.node(p.Node), request: amountsOf(p.Request),
		priority: p.Priority, created: now - int(p.Age.Seconds()),
		optedOut: p.OptedOut, originator: p.Originator, protection: p.Protection,
		budgets: each(p.Budgets, func(name string) int {
			return slices.IndexFunc(state.Budgets, func(b scenario.Budget) bool { return b.Name == name })
		}),
	}
}

func (m *model) node(name string) int {
	return slices.IndexFunc(m.nodes, func(n *mnode) bool { return n.name == name })
}

func amountsOf(a scenario.Amounts) []int64 {
	return each(scenario.Types(), func(name string) int64 { return int64(a[name]) })
}

// fit is the filters' answer for an asker on a node, amounts aside, without the named
// pods and the leaving pods of the node. Pods that wait for a held node are ignored.
func fit(state *scenario.State, a *scenario.Ask, node string, without []string) planner.Fit {
	stays := func(p *scenario.Pod) bool {
		return p.Protection != planner.Leaving && (p.Node != node || !slices.Contains(without, p.Name))
	}
	inTheWay := func(p scenario.Pod) bool {
		return p.Node == node && stays(&p) && (excludes(&a.Place, &p.Place) || excludes(&p.Place, &a.Place))
	}
	members := func(group, node string) (n int) {
		for i := range state.Pods {
			if p := &state.Pods[i]; p.Node == node && p.Group == group && stays(p) {
				n++
			}
		}
		return n
	}
	switch {
	case slices.ContainsFunc(state.Pods, inTheWay):
		return planner.Fails
	case a.Beside != "" && members(a.Beside, node) == 0:
		return planner.Never // no leaving pod brings it there
	case a.Spread == "":
		return planner.Passes
	}
	most := math.MaxInt
	for i := range state.Nodes {
		most = min(most, 1+members(a.Spread, state.Nodes[i].Name))
	}
	now := members(a.Spread, node)
	if a.Group == a.Spread {
		now++
	}
	if now > most {
		return planner.Fails
	}
	return planner.Passes
}

// excludes tells whether a pod may not be on the node of another.
func excludes(p, other *scenario.Place) bool {
	return p.Port != 0 && p.Port == other.Port || p.Group != "" && p.Group == other.Apart
}

// outcomeOf reduces a decision to its visible part.
func outcomeOf(d *planner.Decision) scenario.Outcome {
	o := scenario.Outcome{Asker: d.Ask.Name, Kind: d.Outcome, Node: d.Node, Rule: d.Stopped}
	o.Victims = each(d.Victims, func(v planner.Victim) string { return v.Name })
	slices.Sort(o.Victims)
	return o
}

// printed returns a decision in the format of the files.
func printed(d *planner.Decision) string {
	var b strings.Builder
	switch d.Outcome {
	case planner.Wait:
		fmt.Fprintf(&b, "wait for %s\n", d.Node)
	case planner.Refuse:
		fmt.Fprintf(&b, "refused: %s\n", d.Stopped)
		for _, r := range d.Rejected {
			fmt.Fprintf(&b, "  %d of %s\n", r.Pods, r.Rule)
		}
	case planner.Preempt:
		fmt.Fprintf(&b, "preempt for %s on %s, short of %s\n", d.Ask.Name, d.Node, strings.Join(d.Contested, " "))
		for _, v := range d.Victims {
			elsewhere := ""
			if v.Node != d.Node {
				elsewhere = " on " + v.Node
			}
			fmt.Fprintf(&b, "  victim %s of %s%s\n", v.Name, v.Queue, elsewhere)
		}
		if d.OptedOut > 0 {
			fmt.Fprintf(&b, "  opted out: %d\n", d.OptedOut)
		}
		if d.Violations > 0 {
			fmt.Fprintf(&b, "  budgets violated: %d\n", d.Violations)
		}
		for _, c := range d.Changes {
			fmt.Fprintf(&b, "  %s\n", change(c))
		}
	}
	return b.String()
}

func change(c planner.Change) string {
	amounts := resources.Format(c.Type, c.Used) + " - " + resources.Format(c.Type, c.Taken)
	if c.Ask {
		amounts += " + " + resources.Format(c.Type, c.Asked)
	}
	return fmt.Sprintf("%s %s %s, guaranteed %s", c.Queue, c.Type, amounts, resources.Format(c.Type, c.Guaranteed))
}
