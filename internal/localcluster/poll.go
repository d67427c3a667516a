package localcluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// poll calls check every interval until it returns true, fails, or the context ends, with
// the cause of that end.
func poll(ctx context.Context, interval time.Duration, check func(context.Context) (bool, error)) error {
	err := wait.PollUntilContextCancel(ctx, interval, true, check)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// awaitProcess polls until the check returns true. It gives up with a DiedError when the
// process ends, and after the patience with an error that names the process and its log.
func awaitProcess(ctx context.Context, p *Process, patience time.Duration, check func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, patience,
		fmt.Errorf("%s is not ready after %v, see %s", p.name, patience, p.log))
	defer cancelTimeout()
	go func() {
		select {
		case <-p.done:
			cancel(died(p))
		case <-ctx.Done():
		}
	}()
	return poll(ctx, 50*time.Millisecond, check)
}
