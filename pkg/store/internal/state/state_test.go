package state_test

import (
	"os"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// TestDocDrawsTheTable: doc.go of package store shows the transition table.
func TestDocDrawsTheTable(t *testing.T) {
	doc := expect.Get(os.ReadFile("../../doc.go"))(t)
	var want strings.Builder
	for line := range strings.Lines(state.Drawing()) {
		want.WriteString("//\t" + line)
	}
	if !strings.Contains(string(doc), "//\n"+want.String()+"//\n") {
		t.Errorf("doc.go of package store does not show the table of package state:\n%s", want.String())
	}
}

// TestTransitions: a transition that is not in the table is an error.
func TestTransitions(t *testing.T) {
	var x state.Transitions
	for _, c := range []struct {
		from, to state.State
		ok       bool
	}{
		{state.Queued, state.Queued, true},
		{state.Scheduling, state.Assumed, true},
		{state.GroupBlocked, state.Queued, true},
		{state.Bound, state.Queued, false},
		{state.GroupBlocked, state.Admitted, false},
		{state.Queued, state.Scheduling, false},
		{state.Assumed, state.Queued, false},
	} {
		var one state.Transitions
		one.Note(c.from, c.to)
		x.Note(c.from, c.to)
		if err := one.Check(); (err == nil) != c.ok {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
		}
	}
	if err := x.Check(); err == nil || !strings.Contains(err.Error(), "4 transitions are not in the table; the first one is Bound to Queued") {
		t.Error(err)
	}
}

// TestEveryStateIsReached: each state has a name, a way to it and, but for Bound, one from
// it.
func TestEveryStateIsReached(t *testing.T) {
	seen := map[string]bool{}
	for s := range state.Count {
		if s.String() == "" || seen[s.String()] {
			t.Errorf("state %d has no name of its own", s)
		}
		seen[s.String()] = true
		in, out := false, false
		for o := range state.Count {
			in = in || o != s && ok(o, s)
			out = out || o != s && ok(s, o)
		}
		if !in || out == (s == state.Bound) {
			t.Errorf("%s: a way to it: %v, from it: %v", s, in, out)
		}
	}
}

func ok(from, to state.State) bool {
	var x state.Transitions
	x.Note(from, to)
	return x.Check() == nil
}
