package required_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/victims"
	"github.com/paddock-scheduler/paddock/pkg/victims/required"
)

// TestPlanAgainstOracle compares Plan with brute force on random nodes.
func TestPlanAgainstOracle(t *testing.T) { againstOracle(t, 20_000, 8, 1) }

func againstOracle(t *testing.T, worlds uint64, pods int, first uint64) {
	t.Helper()
	seen := waitCounts{}
	for seed := first; seed < first+worlds; seed++ {
		m := generate(seed, pods)
		o := newOracle(m)
		want := o.decide()
		if err := o.check(want, real, seed); err != nil {
			t.Fatalf("generate(%d, %d): %v\n%s", seed, pods, err, m)
		}
		seen.count(o, want)
	}
	seen.require(t, worlds)
}

// waitCounts counts kinds of nodes, to notice a generator that makes nodes without variety.
type waitCounts map[string]uint64

func (c waitCounts) count(o *oracle, v verdict) {
	what := fmt.Sprint(v.outcome)
	if v.stopped != "" {
		what += ": " + string(v.stopped)
	}
	if v.outcome == victims.Preempt {
		what = fmt.Sprintf("%s %d", v.selection, min(len(v.victims), 4))
		if !o.short() {
			what += " by filters"
		}
	}
	c[what]++
}

func (c waitCounts) require(t *testing.T, worlds uint64) {
	t.Helper()
	for what, perMille := range map[string]uint64{
		"fits": 20, "hold": 10, "no hold: " + string(victims.RuleTooLittle): 20, "no hold: " + string(victims.RuleFilters): 20,
		"refuse: " + string(required.RuleMax): 10, "refuse: " + string(victims.RuleNeverPreempt): 5,
		"hold: " + string(required.RuleDelay): 5, "hold: " + string(required.RuleNoVictims): 20,
		"single 1": 20, "single 1 by filters": 10, "multiple 1": 20, "multiple 2": 20, "multiple 3": 10, "multiple 4": 2, "multiple 2 by filters": 5,
	} {
		if c[what]*1000 < perMille*worlds {
			t.Errorf("only %d of %d worlds are %q", c[what], worlds, what)
		}
	}
	if t.Failed() {
		t.Log(c)
	}
}

// TestFiltersThatMiss has an asker that requires one of the pods to stay. Its decisions
// are always correct, but not always of the least harm.
func TestFiltersThatMiss(t *testing.T) {
	preempted := 0
	for seed := uint64(1); seed <= 5000; seed++ {
		m := generate(seed, 8)
		m.filters, m.refuse = true, false
		chance := rand.New(rand.NewPCG(seed, 3))
		n, ask, p := m.world(nil)
		if len(n.Pods) == 0 {
			continue
		}
		friend := n.Pods[chance.IntN(len(n.Pods))].Pod
		p.Fits = func(without []*victims.Pod) victims.Fit {
			if slices.Contains(without, friend) {
				return victims.Fails
			}
			return m.fits(without)
		}
		d := required.Plan(n, ask, p)
		if err := required.Judge(n, ask, p, d); err != nil {
			t.Fatalf("generate(%d, 8): %v\n%s\n%s", seed, err, d, m)
		}
		if d.Outcome == victims.Preempt {
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
	n := &required.Node{Name: "n1", Types: []string{"vcore"}, Allocatable: victims.Amounts{9}, Pods: []required.Pod{
		{Pod: &victims.Pod{UID: "a", Request: victims.Amounts{1}}}, {Pod: &victims.Pod{UID: "b", Request: victims.Amounts{1}}},
	}}
	d := required.Plan(n, &required.Ask{Ask: &victims.Ask{Request: victims.Amounts{1}}}, required.Params{Fits: func([]*victims.Pod) victims.Fit {
		calls++
		return victims.Never
	}})
	if d.Outcome != required.NoHold || d.Stopped != victims.RuleFilters || calls != 2 {
		t.Fatalf("%s after %d calls", d, calls)
	}
}

// TestEndsOfInt64: extreme amounts saturate, and do not appear as free capacity.
func TestEndsOfInt64(t *testing.T) {
	const most = 1<<63 - 1
	n := &required.Node{Name: "n1", Types: []string{"vcore"}, Allocatable: victims.Amounts{10}, Before: []victims.Amounts{{most}, {most}}}
	ask := &required.Ask{Ask: &victims.Ask{Request: victims.Amounts{most}}}
	for range 3 {
		if d := required.Plan(n, ask, required.Params{}); d.Outcome != required.NoHold {
			t.Fatal(d)
		}
		n.Pods = append(n.Pods, required.Pod{Pod: &victims.Pod{UID: "p", Request: victims.Amounts{most}, Priority: 1}})
	}
}
