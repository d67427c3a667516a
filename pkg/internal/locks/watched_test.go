//go:build lockorder

package locks_test

import (
	"io"
	"testing"

	"github.com/sasha-s/go-deadlock"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
)

// TestTwoOrdersAreFound takes two locks in one order, and then in the other one.
func TestTwoOrdersAreFound(t *testing.T) {
	found, before := 0, deadlock.Opts
	defer func() { deadlock.Opts = before }()
	deadlock.Opts.LogBuf, deadlock.Opts.OnPotentialDeadlock = io.Discard, func() { found++ }
	var a, b locks.Mutex
	inOrder := func() {
		a.Lock()
		defer a.Unlock()
		b.Lock()
		defer b.Unlock()
	}
	inOrder()
	inOrder()
	expect.That(t, found == 0, "%d finds in one order", found)
	func() {
		b.Lock()
		defer b.Unlock()
		a.Lock()
		defer a.Unlock()
	}()
	expect.That(t, found == 1, "%d finds in both orders, want 1", found)
}
