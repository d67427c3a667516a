package app

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/internal/loop"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// awaitSync records when the store got everything that existed.
func (p *Process) awaitSync(ctx context.Context, w *informer.Watcher) {
	for !w.HasSynced() {
		if !loop.Pause(ctx, p.Clock, 20*time.Millisecond) {
			return
		}
	}
	close(p.synced)
}

// syncPatience limits how long scheduling cycles wait, all together, until the store has the
// objects that existed at the start.
const syncPatience = 10 * time.Second

// AwaitHolds waits until the store knows which nodes are held, at most until syncPatience
// after the first call that waited.
func (p *Process) AwaitHolds(ctx context.Context) {
	if s := p.Store(); s == nil || s.Ready() {
		return
	}
	select {
	case <-p.synced: // it waits for its configuration
		return
	default:
	}
	now := p.Clock.Now()
	until := now.Add(syncPatience)
	if !p.syncBy.CompareAndSwap(nil, &until) {
		until = *p.syncBy.Load()
	}
	left := until.Sub(now)
	if left <= 0 {
		return
	}
	timer := p.Clock.NewTimer(left)
	defer timer.Stop()
	select {
	case <-p.synced:
	case <-ctx.Done():
	case <-timer.C():
	}
}

// start starts the store once it has seen all that exists and has its queues.
func (p *Process) start(ctx context.Context, s *store.Store, f *follower, logger klog.Logger) {
	began := p.Clock.Now()
	for _, done := range []chan struct{}{f.loaded, p.synced} {
		select {
		case <-ctx.Done():
			return
		case <-done:
		}
	}
	s.Start(p.Clock.Now())
	logger.Info("Queues are ready", "after", p.Clock.Since(began).Round(time.Millisecond))
}
