package state

import (
	"os"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestDocDrawsTheTable(t *testing.T) {
	doc := expect.Get(os.ReadFile("../../doc.go"))(t)
	expect.Says(t, string(doc), "//\n"+table.String()+"//\n")
}

// TestEveryStateIsReached: each state has a name, a way to it and, except Bound, one from it.
func TestEveryStateIsReached(t *testing.T) {
	seen := map[string]bool{}
	for s := range Count {
		expect.That(t, s.String() != "" && !seen[s.String()], "state %d has no name of its own", s)
		seen[s.String()] = true
		in, out := false, false
		for o := range Count {
			in = in || o != s && ok(o, s)
			out = out || o != s && ok(s, o)
		}
		expect.That(t, in && out != (s == Bound), "%s: a way to it: %v, from it: %v", s, in, out)
	}
}

func ok(from, to State) bool {
	var x Transitions
	x.Note(from, to)
	return x.Check() == nil
}
