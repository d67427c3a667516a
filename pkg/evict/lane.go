package evict

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/store"
)

// lanes contains the work that was taken and has not begun, by asker. The work of one
// asker is done in order, that of different askers in parallel.
type lanes struct {
	mu      sync.Mutex // guards all fields except running
	of      map[types.UID]*lane
	running sync.WaitGroup // of goroutines, one per lane
}

// lane is the work of one asker. It exists as long as its goroutine.
type lane struct{ waiting []store.Work }

// dispatch puts work into the lanes of its askers.
func (e *Executor) dispatch(ctx context.Context, work []store.Work) {
	e.lanes.mu.Lock()
	defer e.lanes.mu.Unlock()
	for _, w := range work {
		l := e.lanes.of[w.UID]
		if l == nil {
			l = &lane{}
			e.lanes.of[w.UID] = l
			e.lanes.running.Go(func() { e.follow(ctx, w.UID) })
		}
		l.add(w)
	}
}

// add appends work to the lane. Work queued again for the same hold replaces the work
// that still waits.
func (l *lane) add(w store.Work) {
	same := func(o store.Work) bool { return o.Kind == w.Kind && o.Hold.Since.Equal(w.Hold.Since) }
	if i := slices.IndexFunc(l.waiting, same); i >= 0 {
		l.waiting[i] = w
		return
	}
	l.waiting = append(l.waiting, w)
}

// follow does the work of an asker until there is none.
func (e *Executor) follow(ctx context.Context, asker types.UID) {
	for {
		w, ok := e.next(ctx, asker)
		if !ok {
			return
		}
		e.carryOut(ctx, w)
	}
}

// next takes the first work of a lane. It returns false, and the lane ends, if there is
// none or the executor stops.
func (e *Executor) next(ctx context.Context, asker types.UID) (store.Work, bool) {
	e.lanes.mu.Lock()
	defer e.lanes.mu.Unlock()
	l := e.lanes.of[asker]
	if len(l.waiting) == 0 || ctx.Err() != nil {
		delete(e.lanes.of, asker)
		return store.Work{}, false
	}
	w := l.waiting[0]
	l.waiting = l.waiting[1:]
	return w, true
}

// over reports whether the hold of the current work has ended, that is, whether its
// release already waits.
func (e *Executor) over(asker types.UID) bool {
	e.lanes.mu.Lock()
	defer e.lanes.mu.Unlock()
	l := e.lanes.of[asker]
	return l != nil && slices.ContainsFunc(l.waiting, func(w store.Work) bool { return w.Kind == store.WorkRelease })
}
