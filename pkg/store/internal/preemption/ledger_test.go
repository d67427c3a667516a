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

// TestOwnTime: the holds of a namespace on a node share one time-out in each six, and a hold
// keeps what was left when it began to wait.
func TestOwnTime(t *testing.T) {
	const timeout = 10 * time.Minute
	var o preemption.OwnTime
	at := func(minutes int) time.Time { return epoch.Add(time.Duration(minutes) * time.Minute) }
	left := func(uid, namespace string, minutes int, want time.Duration) {
		t.Helper()
		if got := o.Left(types.UID(uid), "n", namespace, timeout, at(minutes)); got != want {
			t.Errorf("after %d minutes %s of %s may hold the node for %v, want %v", minutes, uid, namespace, got, want)
		}
	}
	begin := func(uid string, minutes int, want time.Duration, begins bool) {
		t.Helper()
		if got, began := o.Begin(types.UID(uid), "n", "ns", timeout, at(minutes)); got != want || began != begins {
			t.Errorf("after %d minutes %s has %v (%v), want %v (%v)", minutes, uid, got, began, want, begins)
		}
	}
	left("a", "ns", 0, timeout)
	o.End("a", at(0))
	begin("a", 0, timeout, true)
	begin("a", 2, timeout, false)
	left("a", "ns", 4, timeout)
	left("b", "ns", 4, 6*time.Minute)
	left("b", "other", 4, timeout)
	begin("b", 4, 6*time.Minute, true)
	o.End("a", at(7))
	left("c", "ns", 8, 2*time.Minute)
	o.End("b", at(9))
	left("c", "ns", 59, time.Minute)
	begin("c", 59, time.Minute, true)
	left("d", "ns", 59, time.Minute)
	left("d", "ns", 90, 0) // a period in use does not end
	holds := func(types.UID) bool { return true }
	expect.Holds(t, o.Check(holds))
	expect.That(t, o.Check(func(types.UID) bool { return false }) != nil,
		"a hold that is none is not noticed")
	o.End("c", at(60))
	left("d", "ns", 60, timeout)
	begin("d", 61, timeout, true)
	left("e", "ns", 62, 9*time.Minute)
	o.End("d", at(62))
	expect.Holds(t, o.Check(holds))
}
