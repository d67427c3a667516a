package pending_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
)

var epoch = time.Unix(1_700_000_000, 0)

// fails checks that an error has the text; an empty text stands for no error.
func fails(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case err == nil && want != "":
		t.Errorf("no error, want %q", want)
	case err != nil && (want == "" || !strings.Contains(err.Error(), want)):
		t.Errorf("got %q, want %q", err, want)
	}
}

func set(pods ...string) map[string]struct{} {
	out := map[string]struct{}{}
	for _, p := range pods {
		out[p] = struct{}{}
	}
	return out
}

// TestWindowFollowsResults: the window doubles after as many placed pods as it has slots,
// up to its largest size, and shrinks at the first one that is not placed.
func TestWindowFollowsResults(t *testing.T) {
	w := pending.NewWindow[string](2, 5)
	sizes := []int{w.Slots(0)}
	for range 8 {
		w.Placed()
		sizes = append(sizes, w.Slots(0))
	}
	if want := []int{2, 2, 4, 4, 4, 4, 5, 5, 5}; !slices.Equal(sizes, want) {
		t.Errorf("sizes %v, want %v", sizes, want)
	}
	w.Failed()
	if got := w.Slots(0); got != 2 {
		t.Errorf("%d slots after a failure, want 2", got)
	}
	fails(t, w.Check(set()), "")
}

// TestWindowHasRoom: each leaf with work has a slot at least, and a pod has one slot.
func TestWindowHasRoom(t *testing.T) {
	w := pending.NewWindow[string](1, 4)
	w.Enter("a")
	w.Enter("a")
	if w.Taken() != 1 || w.HasRoom(1) || !w.HasRoom(2) {
		t.Errorf("%d taken; room with one leaf: %v, with two: %v", w.Taken(), w.HasRoom(1), w.HasRoom(2))
	}
	w.Enter("b")
	if got := slices.Sorted(w.Pods()); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("pods %v", got)
	}
	fails(t, w.Check(set("a", "b")), "")
	fails(t, w.Check(set("a", "c")), "2 slots taken, 2 pods admitted")
	w.Leave("a")
	w.Leave("a")
	fails(t, w.Check(set("b")), "")
}

// TestClassLimit: one member at a time, doubled with each one that is placed.
func TestClassLimit(t *testing.T) {
	l := pending.NewClassLimit(3)
	full := func(want bool) {
		t.Helper()
		if l.Full() != want {
			t.Errorf("full: %v, want %v", l.Full(), want)
		}
	}
	full(false)
	l.Admitted(1)
	full(true)
	l.Placed()
	l.Admitted(1)
	full(true)
	l.Placed()
	l.Admitted(1)
	full(true) // 3, not 4
	fails(t, l.Check(3), "")
	fails(t, l.Check(2), "3 pods counted, there are 2")
	l.Failed()
	l.Admitted(-2)
	full(true)
	l.Admitted(-1)
	full(false)
	if l.NoteReopened(); l.Reopened() != 1 {
		t.Errorf("reopened %d times", l.Reopened())
	}
}

// TestKeysStay: the key of a pod does not change while the scheduler has the pod.
func TestKeysStay(t *testing.T) {
	var k pending.Keys
	k.Add("a", 7, 1)
	k.Add("b", 7, 2)
	k.Add("a", 8, 3)
	if key, ok := k.Get("a"); !ok || key != (pending.Key{Rank: 7, Time: 1, Seq: 1}) {
		t.Errorf("a has %+v, %v", key, ok)
	}
	all := func(types.UID) bool { return true }
	fails(t, errors.Join(k.Check(all)...), "")
	fails(t, errors.Join(k.Check(func(uid types.UID) bool { return uid != "b" })...), "sort key of b, which is gone")
	k.Remove("a")
	k.Remove("a")
	k.Add("a", 8, 4)
	if key, _ := k.Get("a"); key != (pending.Key{Rank: 8, Time: 4, Seq: 4}) {
		t.Errorf("a has %+v", key)
	}
	if _, ok := k.Get("c"); ok {
		t.Error("c has a key")
	}
	fails(t, errors.Join(k.Check(all)...), "")
}

// TestTimersInOrder: by time, then by UID; a timer that is set again moves.
func TestTimersInOrder(t *testing.T) {
	timers := pending.NewTimers[string]()
	of := map[string]*pending.Timer[string]{}
	for _, p := range []string{"c", "b", "a"} {
		timer := pending.NewTimer(p, types.UID(p))
		of[p] = &timer
		timers.Set(of[p], epoch)
	}
	timers.Set(of["a"], epoch.Add(time.Minute))
	if at := timers.Next(); !at.Equal(epoch) {
		t.Errorf("the next one ends at %v", at)
	}
	if _, ok := timers.Due(epoch.Add(-1)); ok {
		t.Error("a timer ended too early")
	}
	fails(t, timers.Check(), "")
	var ended []string
	for p, ok := timers.Due(epoch); ok; p, ok = timers.Due(epoch) {
		ended = append(ended, p)
	}
	if at := timers.Next(); !slices.Equal(ended, []string{"b", "c"}) || !at.Equal(epoch.Add(time.Minute)) {
		t.Errorf("%v ended, and the next one ends at %v", ended, at)
	}
	if of["b"].IsSet() || !of["a"].IsSet() || !of["b"].When().Equal(epoch) {
		t.Error("a timer that ended is set, or has another time")
	}
	timers.Clear(of["a"])
	timers.Clear(of["a"])
	if at := timers.Next(); !at.IsZero() {
		t.Errorf("no timer is set, and the next one ends at %v", at)
	}
	fails(t, timers.Check(), "")
}

// TestLost: pods are brought back at most once a second for all lost pods, and a lost pod
// is forgotten once a cycle saw it as gone, or after five minutes.
func TestLost(t *testing.T) {
	var l pending.FreedUnseen
	if l.Tick(epoch) || !l.Due().IsZero() {
		t.Error("none is lost, and pods are brought back")
	}
	a := pending.FreedPod{UID: "a", Node: "n1", When: epoch}
	b := pending.FreedPod{UID: "b", Node: "n1", When: epoch.Add(time.Second)}
	l.Add(a)
	if !l.Tick(epoch) || l.Tick(epoch.Add(time.Hour)) {
		t.Error("pods are brought back once, at once")
	}
	l.Add(b)
	if l.Tick(epoch.Add(time.Second-1)) || !l.Tick(epoch.Add(time.Second)) {
		t.Error("pods are brought back again after a second")
	}
	same := func(now time.Time, want ...types.UID) {
		t.Helper()
		var got []types.UID
		for _, p := range l.Pods(now) {
			got = append(got, p.UID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("lost: %v, want %v", got, want)
		}
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
	if !e.Take("a") || e.Take("a") {
		t.Error("a is remembered once")
	}
	e.Note("c", epoch.Add(2*time.Minute))
	e.Note("d", epoch.Add(3*time.Minute))
	if e.Take("b") || !e.Take("c") || !e.Take("d") {
		t.Error("b is forgotten after two minutes, c and d are not")
	}
}
