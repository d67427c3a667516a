package history_test

import (
	"slices"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// TestWaitCounts checks that the counts follow two pods, and that Check finds a pod that
// is not counted, one that is gone, and a leaf too many or too few.
func TestWaitCounts(t *testing.T) {
	c := history.NewWaitCounts()
	leaf := queues.ID(3)
	var p, q history.Tally
	c.Update(&p, history.Tally{In: true, State: state.NoQueue, Code: reasons.PlacementRuleFailed, Leaf: queues.NoQueue})
	c.Update(&q, history.Tally{In: true, State: state.Queued, Leaf: leaf})
	for code, n := range c.Unplaced() {
		if code != reasons.PlacementRuleFailed || n != 1 {
			t.Errorf("%d pods without a queue for %s", n, code)
		}
	}
	c.Update(&p, history.Tally{In: true, State: state.BackingOff, Leaf: leaf})
	at := time.Unix(9, 0)
	c.Refuse(leaf, reasons.PreemptionRefused, at)
	if x := c.Of(leaf); x.In[state.Queued] != 1 || x.In[state.BackingOff] != 1 || c.Total(state.NoQueue) != 0 || x.Refused != reasons.PreemptionRefused || x.Until != at {
		t.Errorf("counts %+v", x)
	}
	check := func(leaves []queues.ID, pods ...history.Tally) error { return c.Check(slices.Values(pods), leaves) }
	expect.Holds(t, check([]queues.ID{leaf}, p, q))
	if check([]queues.ID{leaf}, p) == nil || check([]queues.ID{leaf}, p, q, q) == nil || check([]queues.ID{4}, p, q) == nil {
		t.Error("Check does not find wrong counts")
	}
	c.Update(&p, history.Tally{})
	c.Update(&q, history.Tally{})
	if check(nil) == nil {
		t.Error("Check does not find a leaf without applications")
	}
	c.Close(leaf)
	if err := check(nil); err != nil || c.Of(leaf) != (history.LeafCounts{}) {
		t.Error("after the last application:", err)
	}
}
