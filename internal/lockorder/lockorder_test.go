package lockorder

import (
	"slices"
	"strings"
	"sync"
	"testing"
)

type (
	lockOf_a_mu struct{} //nolint:revive // named as the overlay names them
	lockOf_b_mu struct{} //nolint:revive // the same
	lockOf_c_mu struct{} //nolint:revive // the same
)

func inOrder(locks ...sync.Locker) {
	for _, l := range locks {
		l.Lock()
	}
	for _, l := range slices.Backward(locks) {
		l.Unlock()
	}
}

func TestOrders(t *testing.T) {
	for _, test := range []struct {
		name  string
		takes func(a, a2, b, c sync.Locker)
		wrong string // empty for nothing
	}{
		{"one after the other", func(a, _, b, c sync.Locker) { inOrder(a); inOrder(b); inOrder(a); inOrder(c) }, ""},
		{"always the same order", func(a, _, b, c sync.Locker) { inOrder(a, b, c); inOrder(a, c); inOrder(b, c) }, ""},
		{"two orders", func(a, _, b, _ sync.Locker) { inOrder(a, b); inOrder(b, a) }, "lockorder.a.mu is taken while lockorder.b.mu is held"},
		{"a circle of three", func(a, _, b, c sync.Locker) { inOrder(a, b); inOrder(b, c); inOrder(c, a) }, "lockorder.a.mu is taken while lockorder.c.mu is held"},
		{"another one of the same field", func(a, a2, _, _ sync.Locker) { inOrder(a, a2) }, "lockorder.a.mu is taken while lockorder.a.mu is held"},
		{"a lock of others, told twice", func(a, _, _, _ sync.Locker) {
			defer Enter("theirs")()
			defer Enter("theirs")()
			inOrder(a)
		}, ""},
		{"a lock of others", func(a, _, _, _ sync.Locker) {
			done := Enter("theirs")
			inOrder(a)
			done()
			a.Lock()
			Enter("theirs")()
			a.Unlock()
		}, "theirs is taken while lockorder.a.mu is held"},
	} {
		t.Run(test.name, func(t *testing.T) {
			Reset()
			defer Reset()
			test.takes(&Mutex[lockOf_a_mu]{}, &Mutex[lockOf_a_mu]{}, &Mutex[lockOf_b_mu]{}, &RWMutex[lockOf_c_mu]{})
			err := Wrong()
			if (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("got %v, want %q", err, test.wrong)
			}
		})
	}
}

// Orders count though the goroutines never meet.
func TestOrdersOfDifferentGoroutines(t *testing.T) {
	Reset()
	defer Reset()
	var a Mutex[lockOf_a_mu]
	var b Mutex[lockOf_b_mu]
	for _, order := range [][]sync.Locker{{&a, &b}, {&b, &a}} {
		var done sync.WaitGroup
		done.Go(func() { inOrder(order...) })
		done.Wait()
	}
	if Wrong() == nil {
		t.Errorf("nothing is wrong with %v", Seen())
	}
}
