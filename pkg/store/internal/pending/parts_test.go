package pending_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
)

var epoch = time.Unix(1_700_000_000, 0)

// TestFreedUnseen: pods are brought back at most once a second for all pods that freed room
// unseen, and such a pod is forgotten once a cycle saw it as gone, or after five minutes.
func TestFreedUnseen(t *testing.T) {
	var l pending.FreedUnseen
	expect.That(t, !l.Tick(epoch) && l.Due().IsZero(), "no room was freed, and pods are brought back")
	a := pending.FreedPod{UID: "a", Node: "n1", When: epoch}
	b := pending.FreedPod{UID: "b", Node: "n1", When: epoch.Add(time.Second)}
	l.Add(a)
	expect.That(t, l.Tick(epoch) && !l.Tick(epoch.Add(time.Hour)), "pods are brought back once, at once")
	l.Add(b)
	expect.That(t, !l.Tick(epoch.Add(time.Second-1)) && l.Tick(epoch.Add(time.Second)),
		"pods are brought back again after a second")
	same := func(now time.Time, want ...types.UID) {
		t.Helper()
		var got []types.UID
		for _, p := range l.Pods(now) {
			got = append(got, p.UID)
		}
		expect.Same(t, "pods that freed room unseen", want, got)
	}
	l.Vanished([]pending.FreedPod{{UID: "a", Node: "n2", When: epoch}, {UID: "b", Node: "n1", When: epoch}})
	same(epoch, "a", "b")
	same(epoch.Add(5*time.Minute), "b")
	l.Vanished([]pending.FreedPod{b})
	same(epoch)

	// A standby only adds.
	l.Add(a)
	l.Add(pending.FreedPod{UID: "c", When: epoch.Add(5 * time.Minute)})
	same(epoch, "c")
}

// TestTooEarly: a pod is remembered once, and for a minute at least.
func TestTooEarly(t *testing.T) {
	var e pending.TooEarly
	e.Note("a", epoch)
	e.Note("b", epoch.Add(time.Minute))
	expect.That(t, e.Take("a") && !e.Take("a"), "a is remembered once")
	e.Note("c", epoch.Add(2*time.Minute))
	e.Note("d", epoch.Add(3*time.Minute))
	expect.That(t, !e.Take("b") && e.Take("c") && e.Take("d"),
		"b is forgotten after two minutes, c and d are not")
}
