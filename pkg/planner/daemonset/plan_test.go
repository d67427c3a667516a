package daemonset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
)

// TestPlanAgainstOracle compares Plan with brute force on random nodes.
func TestPlanAgainstOracle(t *testing.T) { againstOracle(t, 20_000, 8, 1) }

func againstOracle(t *testing.T, cases uint64, pods int, first uint64) {
	t.Helper()
	seen := waitCounts{}
	for seed := first; seed < first+cases; seed++ {
		m := generate(seed, pods)
		o := newOracle(m)
		want := o.decide()
		if err := o.check(want, real, seed); err != nil {
			t.Fatalf("generate(%d, %d): %v\n%s", seed, pods, err, m)
		}
		seen.count(o, want)
	}
	seen.require(t, cases)
}

// waitCounts counts kinds of nodes, to notice a generator that makes nodes without variety.
type waitCounts map[string]uint64

func (c waitCounts) count(o *oracle, v verdict) {
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

func (c waitCounts) require(t *testing.T, cases uint64) {
	t.Helper()
	for what, perMille := range map[string]uint64{
		"fits": 20, "hold": 10, "no hold: " + string(planner.RuleTooLittle): 20, "no hold: " + string(planner.RuleFilters): 20,
		"refuse: " + string(daemonset.RuleMax): 10, "refuse: " + string(planner.RuleNeverPreempt): 5,
		"hold: " + string(daemonset.RuleDelay): 5, "hold: " + string(daemonset.RuleNoVictims): 20,
		"single 1": 20, "single 1 by filters": 10, "multiple 1": 20, "multiple 2": 20, "multiple 3": 10, "multiple 4": 2, "multiple 2 by filters": 5,
	} {
		if c[what]*1000 < perMille*cases {
			t.Errorf("only %d of %d cases are %q", c[what], cases, what)
		}
	}
	if t.Failed() {
		t.Log(c)
	}
}

// TestAskerThatRequiresAnotherPod has an asker that requires one of the pods to stay. Its decisions
// are always correct, but not always of the least harm.
func TestAskerThatRequiresAnotherPod(t *testing.T) {
	preempted := 0
	for seed := uint64(1); seed <= 5000; seed++ {
		m := generate(seed, 8)
		m.filters, m.refuse = true, false
		chance := rand.New(rand.NewPCG(seed, 3))
		n, ask, p := m.input(nil)
		if len(n.Pods) == 0 {
			continue
		}
		friend := n.Pods[chance.IntN(len(n.Pods))].Pod
		p.Fits = func(without []*planner.Pod) planner.Fit {
			if slices.Contains(without, friend) {
				return planner.Fails
			}
			return m.fits(without)
		}
		d := daemonset.Plan(n, ask, p)
		if err := daemonset.JudgeAny(n, ask, p, d); err != nil {
			t.Fatalf("generate(%d, 8): %v\n%s\n%s", seed, err, d, m)
		}
		if d.Outcome == planner.Preempt {
			preempted++
		}
	}
	if preempted < 200 {
		t.Errorf("only %d plans with victims", preempted)
	}
}

// TestNeverEndsIt: filters that reject whatever pods leave are called twice.
func TestNeverEndsIt(t *testing.T) {
	calls := 0
	n := &daemonset.Node{Name: "n1", Types: []string{"vcore"}, Allocatable: planner.Amounts{9}, Pods: []daemonset.Pod{
		{Pod: &planner.Pod{UID: "a", Request: planner.Amounts{1}}}, {Pod: &planner.Pod{UID: "b", Request: planner.Amounts{1}}},
	}}
	d := daemonset.Plan(n, &daemonset.Ask{Ask: &planner.Ask{Request: planner.Amounts{1}}}, daemonset.Params{Fits: func([]*planner.Pod) planner.Fit {
		calls++
		return planner.Never
	}})
	if d.Outcome != daemonset.NoHold || d.Stopped != planner.RuleFilters || calls != 2 {
		t.Fatalf("%s after %d calls", d, calls)
	}
}

// TestEndsOfInt64: extreme amounts saturate, and do not appear as free capacity.
func TestEndsOfInt64(t *testing.T) {
	const most = 1<<63 - 1
	n := &daemonset.Node{Name: "n1", Types: []string{"vcore"}, Allocatable: planner.Amounts{10}, Before: []planner.Amounts{{most}, {most}}}
	ask := &daemonset.Ask{Ask: &planner.Ask{Request: planner.Amounts{most}}}
	for range 3 {
		if d := daemonset.Plan(n, ask, daemonset.Params{}); d.Outcome != daemonset.NoHold {
			t.Fatal(d)
		}
		n.Pods = append(n.Pods, daemonset.Pod{Pod: &planner.Pod{UID: "p", Request: planner.Amounts{most}, Priority: 1}})
	}
}
