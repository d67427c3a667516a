package leader

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Gate says whether this process may act on the cluster. Make one with NewGate
// (closed) or Always (open for good). All methods may be called from any
// goroutine.
type Gate struct {
	born time.Time // what the moments of this gate count from

	// until is the end of validity; nil means closed, forever open without end.
	until atomic.Pointer[moment]

	mu      sync.Mutex    // guards the rest, and writes to until
	open    bool          // what the last change announced
	changed chan struct{} // closed and replaced at each change
	expiry  *time.Timer   // announces the end of validity
}

// forever is the end of validity of a gate that is open for good.
var forever = new(moment)

// NewGate returns a closed gate. It opens while a lock under Watch is held, or
// for good by Open.
func NewGate() *Gate {
	return &Gate{born: time.Now(), changed: make(chan struct{})}
}

// Always returns a gate that is open for good: for a process without leader
// election, and for tests.
func Always() *Gate {
	g := NewGate()
	g.Open()
	return g
}

// Open opens the gate for good: there is no leader election.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lockedStopExpiry()
	g.until.Store(forever)
	g.lockedAnnounce(true)
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

// Changed returns a channel that is closed at the next change of Leading. To
// follow all changes take the channel, then ask Leading, then wait.
func (g *Gate) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

// Wait blocks until this process leads, and returns nil, or until the context
// ends, and returns its error.
func (g *Gate) Wait(ctx context.Context) error {
	for {
		changed := g.Changed()
		if g.Leading() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// extend opens the gate until the given moment, or does nothing if that has
// passed. A gate that is open for good stays so.
func (g *Gate) extend(until moment) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if g.until.Load() == forever || !now.before(until) {
		return
	}
	if !g.Leading() { // the wall clock may have closed it without an announcement
		g.lockedAnnounce(false)
	}
	g.until.Store(&until)
	g.lockedStopExpiry()
	g.expiry = time.AfterFunc(until.monotonic-now.monotonic, func() { g.expire(&until) })
	g.lockedAnnounce(true)
}

// expire closes the gate at the end of validity, unless it was extended since.
func (g *Gate) expire(until *moment) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.until.Load() == until {
		g.lockedClose()
	}
}

// close closes the gate at once. A gate that is open for good stays so.
func (g *Gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.until.Load() != forever {
		g.lockedClose()
	}
}

func (g *Gate) lockedClose() {
	g.lockedStopExpiry()
	g.until.Store(nil)
	g.lockedAnnounce(false)
}

func (g *Gate) lockedStopExpiry() {
	if g.expiry != nil {
		g.expiry.Stop()
		g.expiry = nil
	}
}

// lockedAnnounce wakes the goroutines that wait for a change, if there is one.
func (g *Gate) lockedAnnounce(open bool) {
	if g.open == open {
		return
	}
	g.open = open
	close(g.changed)
	g.changed = make(chan struct{})
}
