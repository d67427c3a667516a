package preemption_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

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
