package daemonset_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
)

// mutants are the rules that a planner can omit. Each omission must be noticed on at
// least the given number of 8,000 random nodes. This shows that check sees the bug, and
// that the generator makes nodes on which the rule decides. If judged is set, Judge alone
// must notice some, although it does not compare plans.
var mutants = []struct {
	without string
	least   int
	judged  bool
}{
	{"bricks", 40, true}, // D1
	{"max", 20, true},    // D2
	{"never", 20, true},
	{"delay", 20, true},    // D3
	{"priority", 40, true}, // D4
	{"equal priority", 40, false},
	{string(planner.RuleDaemonSet), 20, true},
	{string(planner.RuleStatic), 20, true},
	{string(planner.RuleBinding), 20, true},
	{string(planner.RuleLeaving), 20, true},
	{string(planner.RuleTooSlow), 5, true},
	{"foreign", 40, true},
	{"peer", 40, false},
	{"foreign last", 20, false},
	{"classes", 40, false}, // D5
	{"class order", 20, false},
	{"both", 10, false},
	{"both last", 10, false},
	{"priority order", 40, false},
	{"slow", 40, false},
	{"share", 40, false},
	{"at most all", 20, false},
	{"age", 20, false},
	{"budgets", 10, false},
	{"cumulative", 2, false},
	{"once", 2, false}, // a pod of two budgets
	{"uid", 20, false},
	{"deviation", 40, true}, // D6
	{"nearest", 20, false},
	{"yardstick", 20, true},
	{"drop", 40, true},
	{"drop order", 40, false},
	{"max victims", 40, true},
	{"fallback", 40, false},
	{"order of selections", 40, false},
	{"one first", 10, false},
	{"goes on", 10, false},
	{"filters", 40, true},
	{"free", 40, true}, // D7
	{"leaving", 20, true},
	{"holders", 40, true},
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
			if n, d, p := buggy(bug.without)(m, nil); daemonset.JudgeAny(n, d.Ask, p, d) != nil {
				judged[i]++
			}
		}
	}
	for i, bug := range mutants {
		if caught[i] < bug.least {
			t.Errorf("a planner without %q is noticed %d times, want %d", bug.without, caught[i], bug.least)
		}
		if (judged[i] > 0) != bug.judged {
			t.Errorf("a planner without %q: Judge refuses %d plans, want some: %v", bug.without, judged[i], bug.judged)
		}
	}
}

// TestChanceIsNoticed plants a planner that takes whichever of two equally
// harmful pods comes first.
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

// TestOraclePlansAreAccepted shows that the mutants are rejected because of their bugs.
func TestOraclePlansAreAccepted(t *testing.T) {
	for seed := uint64(1); seed <= 2000; seed++ {
		if m := generate(seed, 8); newOracle(m).decide().stopped != daemonset.RuleNoVictims && check(m, buggy(), seed) != nil {
			t.Fatalf("generate(%d, 8): %v\n%s", seed, check(m, buggy(), seed), m)
		}
	}
}

// buggy is the oracle as a planner, without some rules.
func buggy(without ...string) planFunc {
	return func(m *model, chance *rand.Rand) (*daemonset.Node, daemonset.Decision, daemonset.Params) {
		n, ask, p := m.input(chance)
		return n, newOracle(m).decision(ask, newOracle(m, without...).decide()), p
	}
}
