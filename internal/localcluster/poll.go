package localcluster

import (
	"context"
	"fmt"
	"time"
)

// poll calls check every interval until it returns true, fails, or the context ends.
func poll(ctx context.Context, interval time.Duration, check func(context.Context) (bool, error)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		ok, err := check(ctx)
		if err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// awaitProcess polls until the check returns true. It gives up with a DiedError when the
// process ends, and after the patience with an error that names the process and its log.
func awaitProcess(ctx context.Context, p *Process, patience time.Duration, check func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, patience,
		fmt.Errorf("%s is not ready after %v, see %s", p.name, patience, p.log))
	defer cancelTimeout()
	finished := make(chan struct{})
	defer close(finished)
	go func() {
		select {
		case <-p.done:
			cancel(died(p))
		case <-finished:
		}
	}()
	return poll(ctx, 50*time.Millisecond, check)
}
