package store

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
)

// outbox has what is to be done outside the store, until its callers take it, and the
// channels that tell them.
type outbox struct {
	activate []objects.Ref // pods that were admitted
	vacated  []string      // nodes where a hold ended
	work     []Work        // for the executor
	told     time.Time     // the next deadline as last returned to the caller
	wake     chan struct{} // activate, vacated, or the deadline
	toWrite  chan struct{} // work
}

func newOutbox() outbox {
	return outbox{wake: make(chan struct{}, 1), toWrite: make(chan struct{}, 1)}
}

// freed notes a node with more room, if it is one: pods that were refused it may try again.
func (o *outbox) freed(node string, is bool) {
	if is {
		o.vacated = append(o.vacated, node)
	}
}

// moved tells whether the next deadline is earlier than the one last returned; zero is no
// deadline.
func (o *outbox) moved(next time.Time) bool {
	if next.IsZero() || (!o.told.IsZero() && !next.Before(o.told)) {
		return false
	}
	o.told = next
	return true
}

// take empties a list and returns what it had.
func take[T any](list *[]T) []T {
	taken := *list
	*list = nil
	return taken
}

// signal sends a value unless the receiver has one that it has not taken yet.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
