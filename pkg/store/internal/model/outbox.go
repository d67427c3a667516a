package model

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Outbox has the work for callers of the store, until they take it, and the
// channels that tell them.
type Outbox struct {
	Activate     []objects.Ref // pods that were admitted
	Vacated      []string      // nodes that are kept for fewer pods than before
	Work         []output.Work // for the executor
	LastDeadline time.Time     // the next deadline as last returned to the caller
	Wake         chan struct{} // activate, vacated, or the deadline
	WorkReady    chan struct{} // work
}

// Moved tells whether the next deadline is earlier than the one last returned; zero is no
// deadline.
func (o *Outbox) Moved(next time.Time) bool {
	return !next.IsZero() && (o.LastDeadline.IsZero() || next.Before(o.LastDeadline))
}

// AddWork adds an item, unless this process is a standby.
func (x *Model) AddWork(w output.Work) {
	if !x.Standby {
		x.Out.Work = append(x.Out.Work, w)
	}
}
