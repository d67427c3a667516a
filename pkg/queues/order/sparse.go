package order

import (
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Sparse is an additional index, of asks that are not in the main one. It is small and
// mostly empty, so it gets the usage of queues and applications only while it has asks. Its
// callers name applications as the main index has them.
type Sparse struct {
	*Index
	apps map[*App]*App // those of this index by those of the main one
	// used is what counts as used in this order; stays is the part of it that no plan
	// takes.
	used, stays func(*queues.Queue) resources.Vector
}

// NewSparse returns an index without queues.
func NewSparse(used, stays func(*queues.Queue) resources.Vector) Sparse {
	return Sparse{Index: NewIndex(), apps: map[*App]*App{}, used: used, stays: stays}
}

// Push adds an ask of an application. It is [Index.Push].
func (x *Sparse) Push(tree *queues.Draft, a *App, key AskKey, request resources.Vector) *Ask {
	in := x.apps[a]
	if in == nil {
		in = x.NewApp(a.leaf.id, a.key.Name, a.key.Submitted, Class{}) // no quota blocks asks here
		x.apps[a] = in
	}
	ask := x.Index.Push(in, key, request, "")
	x.Tell(tree, a)
	return ask
}

// Tell takes over the usage of an application from the main index, and that of its queues.
func (x *Sparse) Tell(tree *queues.Draft, a *App) {
	if x.Eligible() == 0 {
		return
	}
	if in := x.apps[a]; in != nil {
		x.SetAppUsed(in, a.used)
	}
	for q := range tree.Ancestors(a.leaf.id) {
		x.SetUsed(q.ID, x.used(q), x.stays(q))
	}
}

// SubmittedAt takes over when an application was submitted.
func (x *Sparse) SubmittedAt(a *App) {
	if in := x.apps[a]; in != nil {
		x.SetSubmitted(in, a.key.Submitted)
	}
}

// Forget forgets an application without asks.
func (x *Sparse) Forget(a *App) { delete(x.apps, a) }

// SetQueue sets the settings and the usage of a queue.
func (x *Sparse) SetQueue(q *queues.Queue) {
	x.Index.SetQueue(q.ID, q.Settings)
	x.SetUsed(q.ID, x.used(q), x.stays(q))
}
