package required_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/victims"
	"github.com/paddock-scheduler/paddock/pkg/victims/required"
)

// TestJudgeAgainstOracle judges arbitrary sets of pods, most of them wrong.
func TestJudgeAgainstOracle(t *testing.T) {
	lawful, unlawful := 0, 0
	for seed := uint64(1); seed <= 8000; seed++ {
		m := generate(seed, 6)
		o, chance := newOracle(m), rand.New(rand.NewPCG(seed, 9))
		n, ask, p := m.world(nil)
		for range 8 {
			var set []int
			for i := range m.pods {
				if chance.IntN(2) == 0 {
					set = append(set, i)
				}
			}
			by := []required.Selection{required.Single, required.Multiple}[chance.IntN(2)]
			d := o.decision(ask, verdict{outcome: victims.Preempt, victims: set, selection: by})
			err, want := required.Judge(n, ask, p, d), o.lawful(set, by)
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

// TestJudgeNoticesEachRule breaks one rule after the other, in a plan that is otherwise
// correct and was made on an older state.
func TestJudgeNoticesEachRule(t *testing.T) {
	ten, one := int32(10), int32(1)
	for _, test := range []struct {
		name   string
		change func(n *required.Node, ask *required.Ask, p *required.Params, d *required.Decision)
		want   string
	}{
		{"nothing", func(*required.Node, *required.Ask, *required.Params, *required.Decision) {}, ""},
		{"another node", func(n *required.Node, _ *required.Ask, _ *required.Params, _ *required.Decision) { n.Name = "n2" }, "about node n1"},
		{"over max", func(_ *required.Node, ask *required.Ask, _ *required.Params, _ *required.Decision) {
			ask.OverMax = "root.a"
		}, "D2: queue root.a"},
		{"never", func(_ *required.Node, ask *required.Ask, _ *required.Params, _ *required.Decision) { ask.Never = true }, "D2: the asker"},
		{"too early", func(_ *required.Node, _ *required.Ask, p *required.Params, _ *required.Decision) { p.StartDelay = 1 }, "D3"},
		{"gone", func(n *required.Node, _ *required.Ask, _ *required.Params, _ *required.Decision) { n.Pods = n.Pods[1:] }, "is not on node"},
		{"leaving", func(n *required.Node, _ *required.Ask, _ *required.Params, _ *required.Decision) {
			n.Pods[0].Protection = victims.Leaving
		}, "never a victim"},
		{"twice", func(_ *required.Node, _ *required.Ask, _ *required.Params, d *required.Decision) {
			d.Victims[1] = d.Victims[0]
		}, "listed twice"},
		{"nobody", func(_ *required.Node, _ *required.Ask, _ *required.Params, d *required.Decision) { d.Victims = nil }, "preempts nobody"},
		{"foreign", func(n *required.Node, _ *required.Ask, _ *required.Params, _ *required.Decision) {
			n.Pods[0].Protection = victims.Foreign
		}, "preemptForeign"},
		{"priority", func(_ *required.Node, ask *required.Ask, _ *required.Params, _ *required.Decision) { ask.Priority = -1 }, "its priority is 0, the asker's -1"},
		{"opted out since", func(n *required.Node, _ *required.Ask, _ *required.Params, _ *required.Decision) {
			n.Pods[0].OptedOut = true
		}, "D5"},
		{"originator since", func(n *required.Node, _ *required.Ask, _ *required.Params, _ *required.Decision) {
			n.Pods[0].Originator = true
		}, "D5"},
		{"not needed any more", func(n *required.Node, _ *required.Ask, _ *required.Params, _ *required.Decision) {
			n.Allocatable[0] += 2
		}, "D6: there is room without it"},
		{"too many", func(_ *required.Node, _ *required.Ask, p *required.Params, _ *required.Decision) { p.MaxVictims = &one }, "maxVictims"},
		{"two of single", func(_ *required.Node, _ *required.Ask, _ *required.Params, d *required.Decision) {
			d.Selection = required.Single
		}, "2 victims of the selection single"},
		{"deviation", func(n *required.Node, _ *required.Ask, p *required.Params, d *required.Decision) {
			n.Allocatable[0], n.Pods[0].Request[0] = 9, 7
			d.Selection, d.Victims, p.SingleDeviationPercent = required.Single, d.Victims[:1], &ten
		}, "D6: its victim has 7 vcore, more than 10% off 5"},
		{"a holder before", func(n *required.Node, _ *required.Ask, _ *required.Params, _ *required.Decision) {
			n.Before = []victims.Amounts{{1}}
		}, "D7"},
		{"filters", func(_ *required.Node, _ *required.Ask, p *required.Params, _ *required.Decision) {
			p.Fits = func([]*victims.Pod) victims.Fit { return victims.Fails }
		}, "the filters refuse"},
		{"no outcome", func(_ *required.Node, _ *required.Ask, _ *required.Params, d *required.Decision) { d.Outcome = "" }, "no outcome"},
		{"no room", func(_ *required.Node, _ *required.Ask, _ *required.Params, d *required.Decision) {
			d.Outcome = required.Fits
		}, "D1: 1 vcore are left"},
		{"not before others", func(n *required.Node, _ *required.Ask, _ *required.Params, d *required.Decision) {
			n.Before, d.Outcome = []victims.Amounts{{}}, required.Fits
		}, "D1: others hold"},
		{"a hold in vain", func(n *required.Node, _ *required.Ask, _ *required.Params, d *required.Decision) {
			n.Allocatable[0], d.Outcome, d.Stopped = 0, victims.Hold, required.RuleDelay
		}, "D1: even without 2 pods"},
		{"a hold for nobody who leaves", func(_ *required.Node, _ *required.Ask, _ *required.Params, d *required.Decision) {
			d.Outcome = victims.Hold
		}, "D1: even without 0 pods"},
		{"a hold", func(_ *required.Node, _ *required.Ask, _ *required.Params, d *required.Decision) {
			d.Outcome, d.Stopped = victims.Hold, required.RuleDelay
		}, ""},
		{"no hold", func(n *required.Node, _ *required.Ask, _ *required.Params, d *required.Decision) {
			n.Name, d.Outcome = "n2", required.NoHold
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := &required.Node{Name: "n1", Types: []string{"vcore"}, Allocatable: victims.Amounts{5}, Pods: []required.Pod{
				{Pod: &victims.Pod{UID: "a", Request: victims.Amounts{2}}}, {Pod: &victims.Pod{UID: "b", Request: victims.Amounts{2}}},
			}}
			ask, p := &required.Ask{Ask: &victims.Ask{Request: victims.Amounts{5}}}, required.Params{}
			d := required.Plan(n, ask, p)
			if len(d.Victims) != 2 {
				t.Fatal(d)
			}
			slices.SortFunc(d.Victims, func(a, b required.Victim) int { return strings.Compare(a.UID, b.UID) })
			test.change(n, ask, &p, &d)
			err := required.Judge(n, ask, p, d)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
		})
	}
}
