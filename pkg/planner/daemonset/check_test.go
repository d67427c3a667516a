package daemonset_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// A planFunc is daemonset.Plan, or one with a planted bug.
type planFunc func(*model, *rand.Rand) (*daemonset.Node, daemonset.Decision, daemonset.Params)

// real is the planner under test.
func real(m *model, chance *rand.Rand) (*daemonset.Node, daemonset.Decision, daemonset.Params) {
	n, ask, p := m.input(chance)
	return n, daemonset.Plan(n, ask, p), p
}

// check compares the result of a planner for a model with all independent checks: the
// oracle, Judge, and the planner itself on the same input in another order.
func check(m *model, plan planFunc, seed uint64) error {
	o := newOracle(m)
	return o.check(o.decide(), plan, seed)
}

func (o *oracle) check(want verdict, plan planFunc, seed uint64) error {
	n, d, p := plan(o.model, nil)
	if err := o.compareWith(d, want); err != nil {
		return err
	}
	if d.Outcome == planner.Preempt {
		if err := daemonset.Judge(n, d.Ask, p, d); err != nil {
			return fmt.Errorf("Judge refuses it: %w", err)
		}
	}
	if err := o.facts(d); err != nil {
		return err
	}
	_, again, _ := plan(o.model, rand.New(rand.NewPCG(seed, 1)))
	if diff := cmp.Diff(essence(d), essence(again)); diff != "" {
		return fmt.Errorf("the same input in another order is decided otherwise: %s", diff)
	}
	return nil
}

// compareWith reports whether a decision is the one by the rules.
func (o *oracle) compareWith(d daemonset.Decision, want verdict) error {
	if d.Outcome != want.outcome || d.Stopped != want.stopped {
		return fmt.Errorf("outcome is %s (%s), want %s (%s) of %v", d.Outcome, d, want.outcome, want.stopped, want.victims)
	}
	if got := o.indexes(d); !slices.Equal(got, want.victims) || d.Selection != want.selection {
		return fmt.Errorf("victims of %q are %v, want %v of %q", d.Selection, got, want.victims, want.selection)
	}
	return nil
}

func (o *oracle) indexes(d daemonset.Decision) []int {
	return each(d.Victims, func(v daemonset.Victim) int {
		return slices.IndexFunc(o.pods, func(p *mpod) bool { return p.uid == v.UID })
	})
}

// facts checks what a decision says about itself, and that every victim is needed.
func (o *oracle) facts(d daemonset.Decision) error {
	set := o.indexes(d)
	want := o.decision(d.Ask, verdict{d.Outcome, set, d.Selection, d.Stopped})
	options := cmp.Options{
		cmpopts.IgnoreFields(daemonset.Decision{}, "Tried", "FitsCalls", "Ask"), cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(daemonset.Victim{}, "Pod"),
	}
	if diff := cmp.Diff(want, d, options); diff != "" {
		return fmt.Errorf("it says what is not so: %s", diff)
	}
	if most := 4*d.Candidates + 1; d.FitsCalls > most || d.FitsCalls > 0 && !o.filters {
		return fmt.Errorf("%d calls of the filters, want at most %d", d.FitsCalls, most)
	}
	for i := range set {
		if o.enough(slices.Delete(slices.Clone(set), i, i+1)) {
			return fmt.Errorf("victim %s is not needed", d.Victims[i].UID)
		}
	}
	return o.tried(d)
}

// tried checks that every selection without a result says why.
func (o *oracle) tried(d daemonset.Decision) error {
	if d.Stopped == daemonset.RuleNoVictims && len(d.Tried) == 0 {
		return errors.New("nothing was tried")
	}
	for _, t := range d.Tried {
		pods := 0
		for _, r := range t.Rejected {
			pods += r.Pods
		}
		most := int(ptr.Deref(o.settings.MaxVictims, 0))
		if t.Selection == daemonset.Single && pods != d.Candidates || t.Selection == daemonset.Multiple && (pods <= most || pods > d.Candidates) {
			return fmt.Errorf("of %d candidates, %v rejected %v", d.Candidates, t.Selection, t.Rejected)
		}
	}
	return nil
}

// decision converts a verdict to a planner's decision.
func (o *oracle) decision(ask *daemonset.Ask, v verdict) daemonset.Decision {
	d := daemonset.Decision{Ask: ask, Node: o.node, Outcome: v.outcome, Stopped: v.stopped, Selection: v.selection, Candidates: len(o.candidates())}
	if o.filters {
		d.FitsCalls = 1
	}
	if v.stopped == daemonset.RuleDelay {
		d.Wait = o.settings.StartDelay - o.ask.held
	}
	for t, name := range o.types {
		if want := o.ask.request[t]; want > 0 {
			d.Need = append(d.Need, daemonset.Need{
				Type: name, Request: resources.Amount(want), Free: resources.Amount(o.free(t)), Short: resources.Amount(o.needs[t]),
			})
		}
	}
	slices.SortFunc(d.Need, func(a, b daemonset.Need) int { return strings.Compare(a.Type, b.Type) })
	d.Rejected = o.rejected()
	consumed := make([]int64, len(o.budgets))
	for i, pod := range v.victims {
		d.Victims = append(d.Victims, o.victim(pod, slices.Delete(slices.Clone(v.victims), i, i+1)))
		d.Violations += int64(o.violates(o.pods[pod], consumed))
		for _, b := range o.pods[pod].budgets {
			consumed[b]++
		}
		if o.pods[pod].optedOut {
			d.OptedOut++
		}
	}
	return d
}

func (o *oracle) rejected() []planner.Rejection {
	counts := map[planner.Rule]int{}
	for i := range o.pods {
		if rule := o.forbids(i); rule != "" {
			counts[rule]++
		}
	}
	return each(slices.Sorted(maps.Keys(counts)), func(rule planner.Rule) planner.Rejection {
		return planner.Rejection{Rule: rule, Pods: counts[rule]}
	})
}

func (o *oracle) victim(i int, others []int) daemonset.Victim {
	p := o.pods[i]
	v := daemonset.Victim{
		Pod: &planner.Pod{UID: p.uid, Namespace: "default", Name: p.uid, Priority: p.priority}, ForRoom: !o.covered(others),
	}
	v.Class, _ = o.class(p)
	for t, name := range o.types {
		if p.request[t] > 0 && o.needs[t] > 0 {
			v.Frees = append(v.Frees, resources.Entry{Name: name, Amount: resources.Amount(p.request[t])})
		}
	}
	slices.SortFunc(v.Frees, func(a, b resources.Entry) int { return strings.Compare(a.Name, b.Name) })
	return v
}

// essence is all content of a decision.
func essence(d daemonset.Decision) string {
	s := fmt.Sprintln(d, d.Outcome, d.Need, d.Selection, d.Stopped, d.Wait, d.Tried, d.Candidates, d.Rejected, d.OptedOut, d.Violations, d.FitsCalls)
	for i, v := range d.Victims {
		s += fmt.Sprintln(v.UID, v.Class, v.Frees, v.ForRoom, d.VictimNote(i))
	}
	return s
}
