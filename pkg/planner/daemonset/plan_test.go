package daemonset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
)

// TestPlanAgainstOracle compares Plan with brute force on random nodes.
func TestPlanAgainstOracle(t *testing.T) { againstOracle(t, 20_000, 8, 1) }

func againstOracle(t *testing.T, cases uint64, pods int, first uint64) {
	t.Helper()
	seen := tally{}
	for seed := first; seed < first+cases; seed++ {
		m := generate(seed, pods)
		o := newOracle(m)
		want := o.decide()
		if err := o.check(want, real, seed); err != nil {
			t.Fatalf("generate(%d, %d): %v\n%s", seed, pods, err, m)
		}
		seen.count(o, want)
	}
	seen.require(t, cases, everyDay)
}

// tally counts kinds of nodes, to notice a generator that makes nodes without variety.
type tally map[string]uint64

func (c tally) count(o *oracle, v verdict) {
	what := fmt.Sprint(v.outcome)
	if v.stopped != "" {
		what += ": " + string(v.stopped)
	}
	if v.outcome == planner.Preempt {
		what = fmt.Sprintf("%s %d", v.selection, min(len(v.victims), 4))
		if !o.short() {
			what += " by filters"
		}
	}
	c[what]++
}

// everyDay is the minimal frequency of kinds of nodes, in thousandths.
var everyDay = map[string]uint64{
	"hold": 30, "no hold: " + string(planner.RuleTooLittle): 20, "no hold: " + string(planner.RuleFilters): 20,
	"refuse: " + string(daemonset.RuleMax): 10, "refuse: " + string(planner.RuleNeverPreempt): 5,
	"hold: " + string(daemonset.RuleDelay): 5, "hold: " + string(daemonset.RuleNoVictims): 20,
	"single 1": 20, "single 1 by filters": 10, "multiple 1": 20, "multiple 2": 20, "multiple 3": 10, "multiple 4": 2, "multiple 2 by filters": 5,
}

// require fails unless there was at least the given share, in thousandths, of each kind of node.
func (c tally) require(t *testing.T, cases uint64, shares map[string]uint64) {
	t.Helper()
	for what, least := range shares {
		expect.That(t, c[what]*1000 >= least*cases, "only %d of %d cases are %q: %v", c[what], cases, what, c)
	}
}

// TestAskerThatRequiresAnotherPod has an asker that requires one of the pods to stay. Its plans
// with victims are always lawful, but not always of the least harm.
func TestAskerThatRequiresAnotherPod(t *testing.T) {
	seen := tally{}
	for seed := uint64(1); seed <= 5000; seed++ {
		m := generate(seed, 8)
		m.filters, m.refuse = true, false
		chance := rand.New(rand.NewPCG(seed, 3))
		n, ask, p := m.input(nil)
		if len(n.Pods) == 0 {
			continue
		}
		friend := n.Pods[chance.IntN(len(n.Pods))]
		p.Fits = func(without []*planner.Pod) planner.Fit {
			if slices.Contains(without, friend) {
				return planner.Fails
			}
			return m.fits(without)
		}
		d := daemonset.Plan(n, ask, p)
		if d.Outcome == planner.Hold && d.Stopped == "" && p.Fits(nil) != planner.Passes {
			t.Fatalf("generate(%d, 8): %s\n%s", seed, d, m)
		}
		if seen[string(d.Outcome)]++; d.Outcome != planner.Preempt {
			continue
		}
		if err := daemonset.Judge(n, ask, p, d); err != nil || p.Fits(d.Chosen()) != planner.Passes {
			t.Fatalf("generate(%d, 8): %v\n%s\n%s", seed, err, d, m)
		}
	}
	seen.require(t, 5000, map[string]uint64{string(planner.Preempt): 40})
}

// TestNeverEndsIt: filters that reject whatever pods leave are called twice.
func TestNeverEndsIt(t *testing.T) {
	calls := 0
	n := &daemonset.Node{Name: "n1", Types: []string{"vcore"}, Allocatable: planner.Amounts{9}, Pods: []*planner.Pod{
		{UID: "a", Request: planner.Amounts{1}}, {UID: "b", Request: planner.Amounts{1}},
	}}
	d := daemonset.Plan(n, &daemonset.Ask{Ask: &planner.Ask{Request: planner.Amounts{1}}}, daemonset.Params{Fits: func([]*planner.Pod) planner.Fit {
		calls++
		return planner.Never
	}})
	expect.That(t, d.Outcome == daemonset.NoHold && d.Stopped == planner.RuleFilters && calls == 2,
		"%s after %d calls", d, calls)
}

// TestEndsOfInt64: extreme amounts saturate, and do not appear as free capacity.
func TestEndsOfInt64(t *testing.T) {
	const most = 1<<63 - 1
	n := &daemonset.Node{Name: "n1", Types: []string{"vcore"}, Allocatable: planner.Amounts{10}, Before: []planner.Amounts{{most}, {most}}}
	ask := &daemonset.Ask{Ask: &planner.Ask{Request: planner.Amounts{most}}}
	for range 3 {
		d := daemonset.Plan(n, ask, daemonset.Params{})
		expect.That(t, d.Outcome == daemonset.NoHold, "%d pods: %s", len(n.Pods), d)
		n.Pods = append(n.Pods, &planner.Pod{UID: "p", Request: planner.Amounts{most}, Priority: 1})
	}
}

// TestJudgeAgainstOracle judges arbitrary sets of pods, most of them wrong.
func TestJudgeAgainstOracle(t *testing.T) {
	seen := tally{}
	for seed := uint64(1); seed <= 8000; seed++ {
		m := generate(seed, 6)
		o, chance := newOracle(m), rand.New(rand.NewPCG(seed, 9))
		n, ask, p := m.input(nil)
		for range 8 {
			var set []int
			for i := range m.pods {
				if chance.IntN(2) == 0 {
					set = append(set, i)
				}
			}
			by := []daemonset.Selection{daemonset.Single, daemonset.Multiple}[chance.IntN(2)]
			d := o.decision(ask, verdict{outcome: planner.Preempt, victims: set, selection: by})
			err, want := daemonset.Judge(n, ask, p, d), o.lawful(set, by)
			if (err == nil) != want {
				t.Fatalf("generate(%d, 6): %v of %s: lawful %v, judged %v\n%s", seed, set, by, want, err, m)
			}
			seen[fmt.Sprint("lawful ", want)]++
		}
	}
	seen.require(t, 8000, map[string]uint64{"lawful true": 125, "lawful false": 125})
}

// judged is a plan, and the state in which it is judged.
type judged struct {
	n   *daemonset.Node
	ask *daemonset.Ask
	p   daemonset.Params
	d   daemonset.Decision
}

// TestJudgeNoticesEachRule breaks one rule after the other, in a plan that is otherwise
// correct and was made on an older state.
func TestJudgeNoticesEachRule(t *testing.T) {
	ten, one := int32(10), int32(1)
	for _, test := range []struct {
		name   string
		change func(x *judged)
		want   string
	}{
		{"nothing", func(*judged) {}, ""},
		{"another node", func(x *judged) { x.n.Name = "n2" }, "about node n1"},
		{"over max", func(x *judged) { x.ask.OverMax = "root.a" }, "D2: queue root.a"},
		{"never", func(x *judged) { x.ask.Never = true }, "D2: the asker"},
		{"too early", func(x *judged) { x.p.StartDelay = 1 }, "D3"},
		{"gone", func(x *judged) { x.n.Pods = x.n.Pods[1:] }, "is not on node"},
		{"leaving", func(x *judged) { x.n.Pods[0].Protection = planner.Leaving }, "never a victim"},
		{"twice", func(x *judged) { x.d.Victims[1] = x.d.Victims[0] }, "listed twice"},
		{"no victim", func(x *judged) { x.d.Victims = nil }, "preempts no pod"},
		{"foreign", func(x *judged) { x.n.Pods[0].Protection = planner.Foreign }, "preemptForeign"},
		{"priority", func(x *judged) { x.ask.Priority = -1 }, "its priority is 0, the asker's -1"},
		{"opted out since", func(x *judged) { x.n.Pods[0].OptedOut = true }, "D5"},
		{"originator since", func(x *judged) { x.n.Pods[0].Originator = true }, "D5"},
		{"not needed any more", func(x *judged) { x.n.Allocatable[0] += 2 }, "D6: there is room without it"},
		{"too many", func(x *judged) { x.p.MaxVictims = &one }, "maxVictims"},
		{"two of single", func(x *judged) { x.d.Selection = daemonset.Single }, "2 victims of the selection single"},
		{"deviation", func(x *judged) {
			x.n.Allocatable[0], x.n.Pods[0].Request[0] = 9, 7
			x.d.Selection, x.d.Victims, x.p.SingleDeviationPercent = daemonset.Single, x.d.Victims[:1], &ten
		}, "D6: its victim has 0.007 vcore, more than 10% off 0.005"},
		{"a holder before", func(x *judged) { x.n.Before = []planner.Amounts{{1}} }, "D7"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := &daemonset.Node{Name: "n1", Types: []string{"vcore"}, Allocatable: planner.Amounts{5}, Pods: []*planner.Pod{
				{UID: "a", Request: planner.Amounts{2}}, {UID: "b", Request: planner.Amounts{2}},
			}}
			x := judged{n: n, ask: &daemonset.Ask{Ask: &planner.Ask{Request: planner.Amounts{5}}}}
			x.d = daemonset.Plan(x.n, x.ask, x.p)
			if len(x.d.Victims) != 2 {
				t.Fatal(x.d)
			}
			slices.SortFunc(x.d.Victims, func(a, b daemonset.Victim) int { return strings.Compare(a.UID, b.UID) })
			test.change(&x)
			err := daemonset.Judge(x.n, x.ask, x.p, x.d)
			if test.want == "" {
				expect.OK(t, err)
			} else {
				expect.Fails(t, err, test.want)
			}
		})
	}
}

// mutants are the rules that a planner can omit. Each omission must be noticed on at
// least the given number of 8,000 random nodes. This shows that check sees the bug, and
// that the generator makes nodes on which the rule decides. If judged is set, Judge alone
// must notice some, although it does not compare plans.
var mutants = []struct {
	without string
	least   int
	judged  bool
}{
	{"bricks", 40, false},                  // D1
	{"max", 20, true}, {"never", 20, true}, // D2
	{"delay", 20, true}, // D3
	// D4
	{"priority", 40, true}, {"equal priority", 40, false},
	{string(planner.RuleDaemonSet), 20, true}, {string(planner.RuleStatic), 20, true},
	{string(planner.RuleBinding), 20, true}, {string(planner.RuleLeaving), 20, true},
	{string(planner.RuleTooSlow), 5, true}, {"foreign", 40, true}, {"peer", 40, false}, {"foreign last", 20, false},
	// D5; once is about a pod of two budgets
	{"classes", 40, false}, {"class order", 20, false}, {"both", 10, false}, {"both last", 10, false},
	{"priority order", 40, false}, {"slow", 40, false}, {"share", 40, false}, {"at most all", 20, false},
	{"age", 20, false}, {"budgets", 10, false}, {"cumulative", 2, false}, {"once", 2, false}, {"uid", 20, false},
	// D6
	{"deviation", 40, true}, {"nearest", 20, false}, {"yardstick", 20, true}, {"drop", 40, true},
	{"drop order", 40, false}, {"max victims", 40, true}, {"fallback", 40, false},
	{"order of selections", 40, false}, {"one first", 10, false}, {"goes on", 10, false}, {"filters", 40, false},
	// D7
	{"free", 40, true}, {"leaving", 20, true}, {"holders", 40, true},
}

func TestPlantedBugsAreNoticed(t *testing.T) {
	caught, judged := make([]int, len(mutants)), make([]int, len(mutants))
	for seed := uint64(1); seed <= 8000; seed++ {
		m := generate(seed, 8)
		o := newOracle(m)
		want := o.decide()
		for i, bug := range mutants {
			if caught[i] >= bug.least && (judged[i] > 0 || !bug.judged) {
				continue
			}
			if want.equal(newOracle(m, bug.without).decide()) {
				continue // the bug has no effect here
			}
			if o.check(want, buggy(bug.without), seed) == nil {
				t.Fatalf("generate(%d, 8): a planner without %q goes unnoticed", seed, bug.without)
			}
			caught[i]++
			n, d, p := buggy(bug.without)(m, nil)
			if d.Outcome == planner.Preempt && daemonset.Judge(n, d.Ask, p, d) != nil {
				judged[i]++
			}
		}
	}
	for i, bug := range mutants {
		expect.That(t, caught[i] >= bug.least,
			"a planner without %q is noticed %d times, want %d", bug.without, caught[i], bug.least)
		expect.That(t, (judged[i] > 0) == bug.judged,
			"a planner without %q: Judge refuses %d plans, want some: %v", bug.without, judged[i], bug.judged)
	}
}

// TestChanceIsNoticed plants a planner that takes whichever of two equally harmful pods comes first.
func TestChanceIsNoticed(t *testing.T) {
	for seed := uint64(1); seed <= 8000; seed++ {
		m := generate(seed, 8)
		want, first := newOracle(m).decide(), newOracle(m, "uid").decide()
		if want.equal(first) {
			continue // the order of the model hides it from the other checks
		}
		plan := func(m *model, chance *rand.Rand) (*daemonset.Node, daemonset.Decision, daemonset.Params) {
			n, ask, p := m.input(chance)
			if chance == nil {
				return n, newOracle(m).decision(ask, want), p
			}
			return n, newOracle(m).decision(ask, first), p
		}
		if err := check(m, plan, seed); err == nil || !strings.Contains(err.Error(), "another order") {
			t.Fatalf("generate(%d, 8): %v", seed, err)
		}
		return
	}
	t.Fatal("no node has two equally harmful pods")
}

// buggy is the oracle as a planner, without some rules.
func buggy(without ...string) planFunc {
	return func(m *model, chance *rand.Rand) (*daemonset.Node, daemonset.Decision, daemonset.Params) {
		n, ask, p := m.input(chance)
		return n, newOracle(m).decision(ask, newOracle(m, without...).decide()), p
	}
}
