package rest

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

const (
	// turnRest is for how many times as long as a turn took there is none.
	turnRest = 4
	// longestRest bounds that, below the patience of who waits.
	longestRest = 8 * time.Second
)

// turnstile lets one at a time do what is dear, and then nobody for a while: a
// preview looks at all nodes, and a document may be of any kind.
type turnstile struct {
	clock clock.WithTicker
	turn  chan struct{}
	next  time.Time // guarded by turn
}

func newTurnstile(c clock.WithTicker) *turnstile {
	return &turnstile{clock: c, turn: make(chan struct{}, 1)}
}

// pass waits for a turn, which keeps nobody from the desk. The caller calls done with
// how long it took.
func (t *turnstile) pass(ctx context.Context) (done func(took time.Duration), ok bool) {
	away(ctx, func() { done, ok = t.await(ctx) })
	return done, ok
}

func (t *turnstile) await(ctx context.Context) (done func(took time.Duration), ok bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	if rest := t.next.Sub(t.clock.Now()); rest > 0 {
		select {
		case <-t.clock.After(rest):
		case <-ctx.Done():
			<-t.turn
			return nil, false
		}
	}
	return func(took time.Duration) {
		t.next = t.clock.Now().Add(min(turnRest*took, longestRest))
		<-t.turn
	}, true
}
