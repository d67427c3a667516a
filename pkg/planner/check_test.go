package planner_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/judge"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
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
	if m.fits != nil { // the best plan is not guaranteed
		return o.judge(plan, seed, func(d planner.Decision) error { return fitsCheck(m, d) })
	}
	want, found := o.best()
	return o.check(want, found, plan, seed)
}

func (o *oracle) check(want choice, found bool, plan planFunc, seed uint64) error {
	return o.judge(plan, seed, func(d planner.Decision) error { return o.compareWith(d, want, found) })
}

// judge plans, and judges the decision: by what is expected of it, by Lawful, by what it says
// about itself, and by a plan in the same snapshot in another order.
func (o *oracle) judge(plan planFunc, seed uint64, expected func(planner.Decision) error) error {
	snapshot, d, p := plan(o.model, nil)
	if err := expected(d); err != nil {
		return err
	}
	if err := judge.Lawful(snapshot, d, p); err != nil {
		return fmt.Errorf("Lawful refuses it: %w", err)
	}
	if o.fits == nil { // with filters, fewer nodes may be examined
		if err := o.facts(d); err != nil {
			return err
		}
	}
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
	outcome, best := want.outcome(found), want.cost
	switch {
	case d.Outcome != outcome || found && (d.Node != best.node || !slices.Equal(uids(d), best.uids)):
		return fmt.Errorf("outcome is %s (%s), want %s of %v on %q", d.Outcome, d, outcome, best.uids, best.node)
	case !d.Exhaustive:
		return errors.New("it is not exhaustive")
	}
	return nil
}

func uids(d planner.Decision) []string {
	return each(d.Victims, func(v planner.Victim) string { return v.UID })
}

// facts compares what a decision says about itself with the laws, and checks that every
// victim is needed.
func (o *oracle) facts(d planner.Decision) error {
	node, set := o.chosen(d)
	for i := range set {
		fewer := slices.Delete(slices.Clone(set), i, i+1)
		if o.room(node, fewer, o.taken(fewer)) {
			return fmt.Errorf("victim %s is not needed", o.pods[set[i]].uid)
		}
	}
	want, got := o.decision(d.Ask, choice{node: node, victims: set}, d.Outcome != planner.Refuse), d
	want.Exhaustive = d.Exhaustive
	if d.Outcome == planner.Refuse {
		if err := o.protectedByLaw2(d); err != nil {
			return err
		}
		got.Changes, got.Contested, got.GroupShortage = nil, nil, nil
	}
	if diff := differ(sorted(want), sorted(got)); diff != "" {
		return fmt.Errorf("it says what is not so: %s", diff)
	}
	if d.Outcome == planner.Refuse {
		return nil
	}
	planned := record.DecisionOf(&output.Step{Kind: output.StepHeld, Decision: &d, Types: o.types})
	if broken, judged := planned.Verify(); len(broken) > 0 || judged != (len(set) > 0) {
		return fmt.Errorf("judged by its own numbers, %t: %q", judged, broken)
	}
	return nil
}

// protectedByLaw2 checks the queues that law 2 is said to have protected.
func (o *oracle) protectedByLaw2(d planner.Decision) error {
	for _, c := range d.Changes {
		q, t := o.find(c.Queue), slices.Index(o.types, c.Type)
		known := d.Stopped == planner.Law2 && q >= 0 && t >= 0
		if !known || o.queues[q].guaranteed[t] == unnamed || c != o.change(q, t, 0) {
			return fmt.Errorf("%q is said to have stopped at %+v", d.Stopped, c)
		}
	}
	return nil
}

// sorted is a decision with its types in the order of their names.
func sorted(d planner.Decision) planner.Decision {
	d.Contested, d.Victims = slices.Sorted(slices.Values(d.Contested)), slices.Clone(d.Victims)
	for i := range d.Victims {
		d.Victims[i].Uses = slices.Sorted(slices.Values(d.Victims[i].Uses))
	}
	return d
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

// mutants are planners that omit a law or criterion, or interpret a law too broadly, or consider too
// little. Each must be noticed on at least the given number of 6,000 random cases. This shows
// that check sees the bug, and that the generator makes cases in which the law decides. Law 5 is
// not among those that can be omitted: if resources are the obstacle, a needed victim uses a
// contested type, and then law 2 is stricter (but see TestLawfulAgreesWithTheLaws).
var mutants = []struct {
	bug   string
	least int // how often it is noticed at least
}{
	{"opted out", 40}, // law 1
	{"law 2", 40}, {"law 2 common", 4}, {"law 2 shortage", 10}, {"law 3", 10}, {"law 4", 40}, {"law 6", 40},
	{"law 4 group", 10}, {"law 2 group", 2}, // for pods that start together with the asker
	{"law 7", 10}, {"max", 40}, // the explicit and the implicit fence
	{"P3", 40}, {"arriving", 4}, {"own deletes", 4}, {"priority fence", 10}, {"priority offset", 10},
	{"disabled", 10}, {"protection", 40}, {"never", 10},
	{"violations", 10}, {"once", 2}, // a pod of two budgets
	{"originators", 10}, {"priority", 10}, {"slow", 10},
	{"victims", 10}, // minimality
	{"waste", 10}, {"creation", 10}, {"edges", 2}, {"node", 2}, {"uids", 2},

	// These refuse what is lawful: each must miss an existing plan.
	{"wide law 1", 40},         // pods that opted out are never preempted
	{"wide law 2", 4},          // a queue keeps uncontested types of which it already has too little
	{"wide law 2 common", 4},   // a common ancestor that is already below its guarantee loses nothing
	{"wide law 2 shortage", 4}, // a shortage may not move
	{"wide law 3", 40},         // no pod in a sibling of the asker's queue is preempted
	{"wide law 4", 40},         // every contested type must be guaranteed
	{"wide law 4 after", 40},   // the asker may not raise its queue above the guarantee
	{"wide law 5", 10},         // over the guarantee in all types that a victim uses, not in one
	{"wide law 6", 40},         // pods of equal priority are protected
	{"wide law 7", 4},          // a fence also protects from askers outside
	{"wide max", 4},            // all victims must be below the queue over its max
	{"wide disabled", 4},       // inherited from a queue that does not hand it down
	{"wide P3", 4},             // no pod on other nodes is preempted
	{"wide large", 4},          // the search stops at the first victim that is large enough
	{"wide half", 40},          // half of the candidates are considered
	{"wide nodes", 40},         // one node is considered
}

// TestPlantedBugsAreNoticed: each mutant is noticed on every case on which it has an effect, until
// it was noticed as often as it says.
func TestPlantedBugsAreNoticed(t *testing.T) {
	noticed := make([]int, len(mutants))
	for seed := uint64(1); seed <= 6000; seed++ {
		m := generate(seed, 8)
		o := newOracle(m)
		want, found := o.best()
		for i, mutant := range mutants {
			refuses := strings.HasPrefix(mutant.bug, "wide ")
			if noticed[i] == mutant.least || refuses && len(want.victims) == 0 {
				continue
			}
			got, foundToo := newOracle(m, mutant.bug).best()
			same := want.node == got.node && slices.Equal(want.victims, got.victims)
			if found == foundToo && (refuses || same) {
				continue
			}
			if o.check(want, found, buggy(mutant.bug), seed) == nil {
				t.Fatalf("generate(%d, 8): a planner without %q goes unnoticed", seed, mutant.bug)
			}
			noticed[i]++
		}
	}
	for i, mutant := range mutants {
		expect.That(t, noticed[i] >= mutant.least,
			"a planner without %q is noticed %d times, want %d", mutant.bug, noticed[i], mutant.least)
	}
}

// notices checks that a planted bug is noticed in the given number of random cases on which it has
// an effect, with an error that has the part. try returns the error, and whether it has one.
func notices(t *testing.T, bug, part string, times int, try func(seed uint64) (planted bool, err error)) {
	t.Helper()
	for seed := uint64(1); seed <= 8000 && times > 0; seed++ {
		planted, err := try(seed)
		if !planted {
			continue
		}
		if times--; err == nil || !strings.Contains(err.Error(), part) {
			t.Fatalf("seed %d with %s: %v, want %q", seed, bug, err, part)
		}
	}
	expect.That(t, times <= 0, "%s was planted too seldom, %d times are missing", bug, times)
}

// TestChanceIsNoticed plants a planner that takes whichever of two equally harmful plans comes first.
func TestChanceIsNoticed(t *testing.T) {
	notices(t, "the order of equally harmful plans", "another order", 1, func(seed uint64) (bool, error) {
		m := generate(seed, 8)
		order, _ := newOracle(m, "creation", "edges", "node", "uids").best()
		total, found := newOracle(m).best()
		if slices.Equal(order.cost.uids, total.cost.uids) {
			return false, nil // the order of the model hides it from the other checks
		}
		return true, check(m, func(m *model, chance *rand.Rand) (*planner.Snapshot, planner.Decision, planner.Params) {
			snapshot, ask, p := m.snapshot(chance)
			taken := order
			if chance == nil {
				taken = total
			}
			return snapshot, newOracle(m).decision(ask, taken, found), p
		}, seed)
	})
}

// buggy is the oracle as a planner, without some laws or criteria.
func buggy(without ...string) planFunc {
	return func(m *model, chance *rand.Rand) (*planner.Snapshot, planner.Decision, planner.Params) {
		snapshot, ask, p := m.snapshot(chance)
		c, found := newOracle(m, without...).best()
		return snapshot, newOracle(m).decision(ask, c, found), p
	}
}

// decision converts a choice to a planner's decision.
func (o *oracle) decision(ask *planner.Ask, c choice, found bool) planner.Decision {
	d := planner.Decision{}
	if !found {
		d = o.refusal()
	}
	d.Ask, d.Outcome, d.Exhaustive = ask, c.outcome(found), true
	if found {
		d.Node = o.nodes[c.node].name
	}
	d.Rejected = o.mustReject(d)
	if !found {
		return d
	}
	price := o.price(c.node, c.victims)
	d.OptedOut, d.Violations = int(price.optedOut), price.violations
	for t, in := range o.contested(c.node) {
		if in {
			d.Contested = append(d.Contested, o.types[t])
		}
	}
	d.Victims = each(c.victims, func(i int) planner.Victim { return o.victim(i, c.node) })
	slices.SortFunc(d.Victims, func(a, b planner.Victim) int { return strings.Compare(a.UID, b.UID) })
	o.numbers(&d, c.node, c.victims)
	return d
}
