package state_test

import (
	"os"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

func TestDocDrawsTheTable(t *testing.T) {
	doc := expect.Get(os.ReadFile("../../doc.go"))(t)
	expect.Says(t, string(doc), "//\n"+state.Table()+"//\n")
}

// TestEveryStateIsReached: each state has a name, a way to it and, except Bound, one from it.
func TestEveryStateIsReached(t *testing.T) {
	seen := map[string]bool{}
	for s := range state.Count {
		expect.That(t, s.String() != "" && !seen[s.String()], "state %d has no name of its own", s)
		seen[s.String()] = true
		in, out := false, false
		for o := range state.Count {
			in = in || o != s && ok(o, s)
			out = out || o != s && ok(s, o)
		}
		expect.That(t, in && out != (s == state.Bound), "%s: a way to it: %v, from it: %v", s, in, out)
	}
}

func ok(from, to state.State) bool {
	var x state.Transitions
	x.Note(from, to)
	return x.Check() == nil
}
