package planner_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/planner/judge"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/record"
)

// A planFunc is search.Plan, or one with a planted bug.
type planFunc func(*model, *rand.Rand) (*planner.Snapshot, planner.Decision, planner.Params)

// real is the planner under test.
func real(m *model, chance *rand.Rand) (*planner.Snapshot, planner.Decision, planner.Params) {
	snapshot, ask, p := m.snapshot(chance)
	return snapshot, search.Plan(snapshot, ask, p), p
}

// check compares the result of a planner for a model with all independent checks: the
// oracle, Lawful, and the planner itself on the same snapshot in another order.
func check(m *model, plan planFunc, seed uint64) error {
	o := newOracle(m)
	if m.fits != nil {
		return o.checkFits(plan, seed)
	}
	want, found := o.best()
	return o.check(want, found, plan, seed)
}

func (o *oracle) check(want choice, found bool, plan planFunc, seed uint64) error {
	snapshot, d, p := plan(o.model, nil)
	if err := o.compareWith(d, want, found); err != nil {
		return err
	}
	if err := judge.Lawful(snapshot, d, p); err != nil {
		return fmt.Errorf("Lawful refuses it: %w", err)
	}
	if err := o.facts(d); err != nil {
		return err
	}
	return o.repeat(d, plan, seed)
}

// checkFits is check with filters, for which the best plan is not guaranteed.
func (o *oracle) checkFits(plan planFunc, seed uint64) error {
	snapshot, d, p := plan(o.model, nil)
	if err := fitsCheck(o.model, d); err != nil {
		return err
	}
	if err := judge.Lawful(snapshot, d, p); err != nil {
		return fmt.Errorf("Lawful refuses it: %w", err)
	}
	return o.repeat(d, plan, seed)
}

// repeat plans in the same snapshot in another order.
func (o *oracle) repeat(d planner.Decision, plan planFunc, seed uint64) error {
	_, again, _ := plan(o.model, rand.New(rand.NewPCG(seed, 1)))
	if diff := differ(essence(d), essence(again)); diff != "" {
		return fmt.Errorf("the same snapshot in another order is decided otherwise: %s", diff)
	}
	return nil
}

// differ shows how two values differ; empty lists equal nil.
func differ(want, got any) string {
	if reflect.DeepEqual(want, got) { // much faster than differ
		return ""
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty())
}

// compareWith reports whether a decision is the best plan.
func (o *oracle) compareWith(d planner.Decision, want choice, found bool) error {
	outcome := planner.Refuse
	switch {
	case found && len(want.victims) > 0:
		outcome = planner.Preempt
	case found:
		outcome = planner.Wait
	}
	if d.Outcome != outcome {
		return fmt.Errorf("outcome is %s (%s), want %s of %v on node %d", d.Outcome, d, outcome, want.victims, want.node)
	}
	if !d.Exhaustive {
		return errors.New("it is not exhaustive")
	}
	if !found {
		return nil
	}
	if d.Node != o.nodes[want.node].name {
		return fmt.Errorf("node is %s, want %s", d.Node, o.nodes[want.node].name)
	}
	if got := uids(d); !slices.Equal(got, want.cost.uids) {
		return fmt.Errorf("victims on %s are %v, want %v", d.Node, got, want.cost.uids)
	}
	return nil
}

func uids(d planner.Decision) []string {
	var out []string
	for _, v := range d.Victims {
		out = append(out, v.UID)
	}
	return out
}

// facts checks what a decision says about itself, and that every victim is needed.
func (o *oracle) facts(d planner.Decision) error {
	if diff := differ(o.mustReject(d), d.Rejected); diff != "" {
		return fmt.Errorf("rejected: %s", diff)
	}
	if d.Outcome == planner.Refuse {
		return o.compareRefusal(d)
	}
	node, set := o.chosen(d)
	s := o.contested(node)
	for t, name := range o.types {
		if s[t] != slices.Contains(d.Contested, name) {
			return fmt.Errorf("contested are %v, not %v of %v", d.Contested, s, o.types)
		}
	}
	for i := range set {
		fewer := slices.Delete(slices.Clone(set), i, i+1)
		if o.room(node, fewer, o.taken(fewer)) {
			return fmt.Errorf("victim %s is not needed", o.pods[set[i]].uid)
		}
	}
	c := o.price(node, set)
	if int64(d.OptedOut) != c.optedOut || d.Violations != c.violations {
		return fmt.Errorf("said are %d opted out and %d violations, want %d and %d", d.OptedOut, d.Violations, c.optedOut, c.violations)
	}
	planned := record.Planned(objects.Ref{}, "", &d, nil, o.types, time.Time{})
	if broken, judged := planned.Verify(); len(broken) > 0 || judged != (len(set) > 0) {
		return fmt.Errorf("judged by its own numbers, %t: %q", judged, broken)
	}
	return o.compareNumbers(d, node, set)
}

// essence is a decision without what depends on the order of types.
func essence(d planner.Decision) string {
	slices.Sort(d.Contested)
	var b []any
	for _, v := range d.Victims {
		b = append(b, v.UID, v.Node, v.Queue, v.Priority, v.Common, v.Below, v.AskBelow)
	}
	if d.Higher != nil {
		b = append(b, d.Higher.UID)
	}
	return fmt.Sprint(d.Outcome, d.Node, d.Contested, d.Changes, d.Asks, d.Loses, d.Fence, d.OverMax, d.Named, d.Rejected, d.Stopped, d.OptedOut, d.Violations, d.Exhaustive, b)
}
