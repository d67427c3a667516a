package leader

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Gate says whether this process may act on the cluster. Make one with NewGate (closed) or
// Always (open for good). Any goroutine may call Leading and Wait. Only one at a time may open or
// close the gate: the elector, which makes one call after the other, or the caller of Open, where
// there is no elector.
type Gate struct {
	born time.Time // what the moments of this gate count from

	// until is the end of validity; nil means closed, forever open without end.
	until atomic.Pointer[moment]

	opened sync.Once
	led    chan struct{} // closed when the gate opens for the first time
}

// forever is the end of validity of a gate that is open for good.
var forever = new(moment)

// NewGate returns a closed gate. It opens while a lock under Watch is held, or
// for good by Open.
func NewGate() *Gate {
	return &Gate{born: time.Now(), led: make(chan struct{})}
}

// Always returns a gate that is open for good: for a process without leader
// election, and for tests.
func Always() *Gate {
	g := NewGate()
	g.Open()
	return g
}

// Open opens the gate for good: there is no leader election.
func (g *Gate) Open() { g.open(forever) }

// open opens the gate until a moment.
func (g *Gate) open(until *moment) {
	g.until.Store(until)
	g.opened.Do(func() { close(g.led) })
}

// Leading returns whether this process holds the lease now. It takes no lock and
// costs as much as reading the clock.
func (g *Gate) Leading() bool {
	switch until := g.until.Load(); until {
	case nil:
		return false
	case forever:
		return true
	default:
		return g.now().before(*until)
	}
}

func (g *Gate) now() moment {
	return momentOf(time.Now(), g.born)
}

// Wait blocks until this process leads for the first time, and returns nil, or until the
// context ends, and returns its error. A process leads once (see the package comment).
func (g *Gate) Wait(ctx context.Context) error {
	select {
	case <-g.led:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// extend opens the gate until the given moment, or does nothing if that has
// passed. A gate that is open for good stays so.
func (g *Gate) extend(until moment) {
	if g.until.Load() != forever && g.now().before(until) {
		g.open(&until)
	}
}

// close closes the gate at once. A gate that is open for good stays so.
func (g *Gate) close() {
	if g.until.Load() != forever {
		g.until.Store(nil)
	}
}
