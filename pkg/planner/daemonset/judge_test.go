package daemonset_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
)

// TestJudgeAgainstOracle judges arbitrary sets of pods, most of them wrong.
func TestJudgeAgainstOracle(t *testing.T) {
	lawful, unlawful := 0, 0
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
			err, want := daemonset.JudgeAny(n, ask, p, d), o.lawful(set, by)
			if (err == nil) != want {
				t.Fatalf("generate(%d, 6): %v of %s: lawful %v, judged %v\n%s", seed, set, by, want, err, m)
			}
			if want {
				lawful++
			} else {
				unlawful++
			}
		}
	}
	if lawful < 1000 || unlawful < 1000 {
		t.Errorf("%d lawful and %d unlawful sets", lawful, unlawful)
	}
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
		{"filters", func(x *judged) {
			x.p.Fits = func([]*planner.Pod) planner.Fit { return planner.Fails }
		}, "the filters refuse"},
		{"no outcome", func(x *judged) { x.d.Outcome = "" }, "no outcome"},
		{"no room", func(x *judged) { x.d.Outcome = daemonset.Fits }, "D1: 0.001 vcore are left, and the asker requests 0."},
		{"not before others", func(x *judged) {
			x.n.Before, x.d.Outcome = []planner.Amounts{{}}, daemonset.Fits
		}, "D1: others hold"},
		{"a hold in vain", func(x *judged) {
			x.n.Allocatable[0], x.d.Outcome, x.d.Stopped = 0, planner.Hold, daemonset.RuleDelay
		}, "D1: even without 2 pods"},
		{"a hold without a pod that leaves", func(x *judged) { x.d.Outcome = planner.Hold }, "D1: even without 0 pods"},
		{"a hold", func(x *judged) { x.d.Outcome, x.d.Stopped = planner.Hold, daemonset.RuleDelay }, ""},
		{"no hold", func(x *judged) { x.n.Name, x.d.Outcome = "n2", daemonset.NoHold }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := &daemonset.Node{Name: "n1", Types: []string{"vcore"}, Allocatable: planner.Amounts{5}, Pods: []daemonset.Pod{
				{Pod: &planner.Pod{UID: "a", Request: planner.Amounts{2}}}, {Pod: &planner.Pod{UID: "b", Request: planner.Amounts{2}}},
			}}
			x := judged{n: n, ask: &daemonset.Ask{Ask: &planner.Ask{Request: planner.Amounts{5}}}}
			x.d = daemonset.Plan(x.n, x.ask, x.p)
			if len(x.d.Victims) != 2 {
				t.Fatal(x.d)
			}
			slices.SortFunc(x.d.Victims, func(a, b daemonset.Victim) int { return strings.Compare(a.UID, b.UID) })
			test.change(&x)
			err := daemonset.JudgeAny(x.n, x.ask, x.p, x.d)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
		})
	}
}
