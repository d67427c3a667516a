package preemption_test

import (
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
		Chosen: []types.UID{"v"}, Waits: reservations.Waits{Awaited: []types.UID{"v"}},
	}
}

// TestClaimsOfPodsThatWaitNoMore: before EndRestore the claim on a pending pod holds a node, and
// no longer once the pod is bound or being deleted.
func TestClaimsOfPodsThatWaitNoMore(t *testing.T) {
	for name, changed := range map[string]func(p *objects.Pod){
		"bound":         func(p *objects.Pod) { p.Node = "n1" },
		"being deleted": func(p *objects.Pod) { p.Deleting = true },
	} {
		l, p := preemption.New().Ledger, claimed("a", "n1")
		l.Claimed(claimed("a", "n1"))
		l.Publish()
		held := len(l.View().All())
		changed(p)
		freed := l.Claimed(p)
		l.Publish()
		if left := len(l.View().All()); held != 1 || left != 0 || freed != "n1" {
			t.Errorf("%s: %d nodes are held before, %d after, and %q is free", name, held, left, freed)
		}
		checked(t, l)
	}
}

// TestLedgerTimesOut: the next time-out follows the holds, and what the store says of times.
func TestLedgerTimesOut(t *testing.T) {
	h := preemption.New().Ledger
	asked := 0
	late := time.Duration(0)
	from := func(_ types.UID, own time.Time) (time.Time, bool) {
		asked++
		return own.Add(late), true
	}
	due := func(what string, want time.Duration) {
		t.Helper()
		expect.Same(t, what+": due after", want, h.Due(time.Minute, from).Sub(epoch))
	}
	expect.Same(t, "without holds it is due at", time.Time{}, h.Due(time.Minute, from))
	expect.OK(t, h.Place(hold("a", "n1")))
	due("one hold", time.Minute)
	late = time.Second
	due("nothing was said", time.Minute)
	expect.Same(t, "computations", 1, asked)
	h.TimesChange()
	due("times changed", time.Minute+time.Second)
	h.VictimGone("v", epoch.Add(time.Hour))
	due("clear", time.Hour+time.Minute+time.Second)
	h.Publish()
	checked(t, h)
}

// TestLedgerCheck: a change that was not published is noticed.
func TestLedgerCheck(t *testing.T) {
	h := preemption.New().Ledger
	h.EndRestore()
	h.Publish()
	expect.OK(t, h.Place(hold("a", "n1")))
	expect.That(t, h.Check() != nil, "a published copy that is behind is not noticed")
}
