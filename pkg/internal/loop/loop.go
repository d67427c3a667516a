// Package loop waits with a clock that tests can replace.
package loop

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Every calls a function once in each interval until the context ends.
func Every(ctx context.Context, c clock.WithTicker, interval time.Duration, do func()) {
	ticker := c.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			do()
		}
	}
}

// Pause waits for t and returns true, or returns false when the context ends before.
func Pause(ctx context.Context, c clock.Clock, t time.Duration) bool {
	timer := c.NewTimer(t)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}
