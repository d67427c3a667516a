package preemption_test

import (
	"errors"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// TestLostHolds: a hold is lost if it had a cost and its preemptor got no node.
func TestLostHolds(t *testing.T) {
	free, binding := hold("a", "n1"), hold("a", "n1")
	binding.Committed = true
	for _, c := range []struct {
		name   string
		hold   reservations.Hold
		ending preemption.Ending
		want   bool
	}{
		{"nothing was disrupted", free, preemption.Ending{End: reservations.Superseded}, false},
		{"pods were disrupted", binding, preemption.Ending{End: reservations.Superseded}, true},
		{"it timed out", free, preemption.Ending{End: reservations.TimedOut}, true},
		{"the executor failed", free, preemption.Ending{End: reservations.GivenUp, Failed: true}, true},
		{"it is bound", binding, preemption.Ending{End: reservations.Bound}, false},
		{"it is deleted", binding, preemption.Ending{End: reservations.Deleted}, false},
		{"it has another node", binding, preemption.Ending{End: reservations.Superseded, Node: "n2"}, false},
	} {
		if got := c.ending.IsLost(&c.hold); got != c.want {
			t.Errorf("%s: lost is %v", c.name, got)
		}
	}
}

// TestLists: long lists are cut, and errors are one line.
func TestLists(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	if got := preemption.Listed(names[:5]); got != "a, b, c, d, e" {
		t.Error(got)
	}
	if got := preemption.Listed(names); got != "a, b, c, d, e, and 2 more" || names[5] != "f" {
		t.Error(got, names)
	}
	if got := preemption.OneLine(errors.Join(errors.New("x"), errors.New("y"))); got != "x;y" {
		t.Error(got)
	}
}
