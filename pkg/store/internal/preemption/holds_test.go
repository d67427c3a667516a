package preemption_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

func claimed(uid, node string) *objects.Pod {
	return &objects.Pod{
		Identity: objects.Identity{UID: types.UID(uid), Namespace: "ns", Name: uid},
		Status:   objects.Status{Claim: &reservations.Claim{Node: node, Since: epoch, Victims: []types.UID{"v"}}},
	}
}

func hold(uid, node string) reservations.Hold {
	return reservations.Hold{
		Asker: types.UID(uid), Namespace: "ns", Name: uid, Node: node, Since: epoch,
		Chosen: []types.UID{"v"}, Victims: []types.UID{"v"},
	}
}

// TestClaimsHoldBeforeBegin: until Begin the claims on pods are published, afterwards the
// holds.
func TestClaimsHoldBeforeBegin(t *testing.T) {
	h := preemption.New().Holds
	held := func(what string, want ...string) {
		t.Helper()
		h.Publish()
		var nodes []string
		for _, x := range h.View().All() {
			nodes = append(nodes, x.Node)
		}
		if slices.Sort(nodes); !slices.Equal(nodes, want) {
			t.Errorf("%s: %v is held, want %v", what, nodes, want)
		}
		checked(t, h)
	}
	held("at first")
	h.Claimed(claimed("a", "n1"))
	h.Claimed(claimed("b", "n2"))
	h.Claimed(claimed("invalid", ""))
	held("two claims", "n1", "n2")
	h.Claimed(claimed("a", "n3"))
	held("another node", "n2", "n3")
	bound := claimed("a", "n3")
	bound.Node = "n3"
	h.Claimed(bound)
	held("bound", "n2")
	expect.OK(t, h.Place(hold("b", "n2")))
	expect.OK(t, h.Place(hold("c", "n4")))
	held("holds before Begin", "n2")
	if nodes := h.Begin(); !slices.Equal(nodes, []string{"n2"}) {
		t.Errorf("claims held %v", nodes)
	}
	held("after Begin", "n2", "n4")
	h.Claimed(claimed("d", "n5"))
	held("a claim after Begin", "n2", "n4")
	if _, had := h.End("nothing"); had {
		t.Error("a hold ended that did not exist")
	}
	h.End("b")
	if len(h.View().All()) != 2 {
		t.Error("an end is seen before it is published")
	}
	held("one ended", "n4")
}

// TestHoldsTimeOut: the next time-out follows the holds, and what the store says of times.
func TestHoldsTimeOut(t *testing.T) {
	h := preemption.New().Holds
	asked := 0
	late := time.Duration(0)
	from := func(_ types.UID, own time.Time) (time.Time, bool) {
		asked++
		return own.Add(late), true
	}
	due := func(what string, want time.Duration) {
		t.Helper()
		if got := h.Due(time.Minute, from); got != epoch.Add(want) {
			t.Errorf("%s: due at %v, want %v", what, got.Sub(epoch), want)
		}
	}
	if got := h.Due(time.Minute, from); !got.IsZero() {
		t.Errorf("due at %v without holds", got)
	}
	expect.OK(t, h.Place(hold("a", "n1")))
	due("one hold", time.Minute)
	late = time.Second
	due("nothing was said", time.Minute)
	if asked != 1 {
		t.Errorf("computed %d times", asked)
	}
	h.TimesChange()
	due("times changed", time.Minute+time.Second)
	h.VictimGone("v", epoch.Add(time.Hour))
	due("clear", time.Hour+time.Minute+time.Second)
	h.Publish()
	checked(t, h)
}

// TestHoldsCheck: a change that was not published is noticed.
func TestHoldsCheck(t *testing.T) {
	h := preemption.New().Holds
	h.Begin()
	h.Publish()
	expect.OK(t, h.Place(hold("a", "n1")))
	if h.Check() == nil {
		t.Error("a published copy that is behind is not noticed")
	}
}
