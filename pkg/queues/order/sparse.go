package order

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Sparse is an additional index, of asks that are not in the main one. It is small and
// mostly empty, so it gets the usage of queues and applications only while it has asks. A
// is the caller's record of an application.
type Sparse[A comparable] struct {
	*Index
	apps map[A]*App
	// used is what counts as used in this order; stays is the part of it that no plan
	// takes.
	used, stays func(*queues.Queue) resources.Vector
}

// AppInfo is an application as an index knows it.
type AppInfo struct {
	Leaf      queues.ID
	Name      string
	Submitted time.Time
	Used      resources.Vector
}

// NewSparse returns an index without queues.
func NewSparse[A comparable](used, stays func(*queues.Queue) resources.Vector) Sparse[A] {
	return Sparse[A]{Index: NewIndex(), apps: map[A]*App{}, used: used, stays: stays}
}

// Push adds an ask of an application. It is [Index.Push].
func (x *Sparse[A]) Push(tree *queues.Draft, a A, info AppInfo, key AskKey, request resources.Vector) *Ask {
	in := x.apps[a]
	if in == nil {
		in = x.NewApp(info.Leaf, info.Name, info.Submitted, Class{}) // no quota blocks asks here
		x.apps[a] = in
	}
	ask := x.Index.Push(in, key, request, "")
	x.Tell(tree, a, info.Leaf, info.Used)
	return ask
}

// Tell updates the usage of an application and of its queues.
func (x *Sparse[A]) Tell(tree *queues.Draft, a A, leaf queues.ID, used resources.Vector) {
	if x.Eligible() == 0 {
		return
	}
	if in := x.apps[a]; in != nil {
		x.SetAppUsed(in, used)
	}
	for q := range tree.Ancestors(leaf) {
		x.SetUsed(q.ID, x.used(q), x.stays(q))
	}
}

// SubmittedAt sets when an application was submitted.
func (x *Sparse[A]) SubmittedAt(a A, submitted time.Time) {
	if in := x.apps[a]; in != nil {
		x.SetSubmitted(in, submitted)
	}
}

// Forget forgets an application without asks.
func (x *Sparse[A]) Forget(a A) { delete(x.apps, a) }

// SetQueue sets the settings and the usage of a queue.
func (x *Sparse[A]) SetQueue(q *queues.Queue) {
	x.Index.SetQueue(q.ID, q.Settings)
	x.SetUsed(q.ID, x.used(q), x.stays(q))
}
