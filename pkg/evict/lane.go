package evict

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues/store"
)

// lanes has the work that was taken and is not begun, by asker. The work of one
// asker is done in order, that of different askers side by side.
type lanes struct {
	mu      sync.Mutex // guards the rest, but for running
	of      map[types.UID]*lane
	running sync.WaitGroup // of goroutines, one for each lane
}

// lane is the work of one asker. It is there while its goroutine is.
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

// add puts work at the end of the lane. What is queued anew for the same hold
// takes the place of what waits still.
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

// next takes the first work of a lane; false if there is none, or none is to be
// done any more, and the lane is over.
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

// over tells whether the hold that is worked on has ended: its release waits
// already.
func (e *Executor) over(asker types.UID) bool {
	e.lanes.mu.Lock()
	defer e.lanes.mu.Unlock()
	l := e.lanes.of[asker]
	return l != nil && slices.ContainsFunc(l.waiting, func(w store.Work) bool { return w.Kind == store.WorkRelease })
}
