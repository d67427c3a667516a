package order_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
)

// The index gives the same asks in the same order as sorting plain lists, unless it does not
// get all changes.
func TestOrderProperty(t *testing.T) {
	run := func(loses string) func(history) error {
		return func(h history) error {
			_, _, err := h.run(loses)
			return err
		}
	}
	expect.Law(t, histories(), run(""))
	for _, loses := range []string{
		"use", "application use", "block", "unblock", "close", "open", "submitted", "class",
		"settings", "capacity", "leave", "strict",
	} {
		t.Run(loses, func(t *testing.T) { expect.Broken(t, histories(), run(loses)) })
	}
}

// The order does not depend on the order of calls.
func TestOrderIsIndependentOfInsertion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := histories().Draw(t, "history")
		want, final, err := h.run("")
		if err != nil {
			t.Fatal(err)
		}
		x := final.rebuild(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		if diff := cmp.Diff(want, drain(x, (*order.Ask).UID)); diff != "" {
			t.Fatalf("told in another order (-want +got):\n%s", diff)
		}
	})
}

// A comparison that ends before names and UIDs makes the order depend on chance.
func TestOrderIsIndependentOfInsertionFindsEqualKeys(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for seed := range 300 {
		_, final, err := histories().Example(seed).run("")
		expect.OK(t, err)
		for _, a := range final.m.asks {
			a.key.UID, a.key.Created = "same", epoch
		}
		for _, a := range final.m.apps {
			a.name, a.submitted = "same", epoch
		}
		request := func(a *order.Ask) string { return a.Group().Request().String() }
		if !cmp.Equal(drain(final.rebuild(random), request), drain(final.rebuild(random), request)) {
			return
		}
	}
	t.Error("it is not found that equal keys leave the order to chance")
}

// drain removes all asks in their order, and returns what is shown of them.
func drain(x *order.Index, show func(*order.Ask) string) (out []string) {
	for a, ok := x.Next(); ok; a, ok = x.Next() {
		out = append(out, show(a))
		x.Remove(a)
	}
	return out
}
