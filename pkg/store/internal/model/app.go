package model

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// App is an application: the pods with one application ID in one queue. It is charged to
// the user of its first pod, and stays in that pod's queue as long as it has pods.
type App struct {
	CacheApp
	Ordered *order.App

	// What readers see: what was published, when it was given its queue, and when its
	// first pod was bound.
	history.Mark[output.AppRecord]
	accepted, began time.Time
	EventName       *output.AppName // its name in events
	// warned is set once a warning that its gang is ignored was issued.
	warned bool
}

// CacheApp is embedded under a name that is not exported.
type CacheApp = cache.App

// Join adds a pod to an application. It charges the request of a pod without a node as pending;
// States.ToAllocated charges the others.
func (x *Model) Join(a *App, p *Pod) {
	p.App = a
	oldest := a.Join(&p.CachePod)
	if p.Asked = p.Node == ""; p.Asked {
		x.Charge(p, p.Request, cache.Pending)
		x.History.NotePod(output.Asked, p)
	}
	x.SetLives(p, !p.Deleting)
	if oldest {
		x.Pending.Order.SetSubmitted(a.Ordered, a.Submitted)
		for _, o := range x.sparse {
			o.SubmittedAt(a.Ordered)
		}
	}
}

// Leave takes a pod, already uncharged, out of its application. It ends the application
// when the pod was the last one.
func (x *Model) Leave(p *Pod, now time.Time) {
	a := p.App
	x.SetLives(p, false)
	x.History.Waits.Update(&p.Tallied, history.Tally{})
	if p.Asked {
		x.History.NotePod(output.AskGone, p)
	}
	p.App, p.Asked = nil, false
	if last := a.Leave(&p.CachePod); !last {
		return
	}
	x.updateCounted(a)
	x.History.Apps.Remove(a, a.Serial)
	x.History.noteApp(output.AppRemoved, a)
	for _, o := range x.sparse {
		o.Forget(a.Ordered)
	}
	x.Cache.Books.AddApplications(a.Leaf, -1)
	if lastOfLeaf := x.Apps.Remove(a); lastOfLeaf {
		x.History.Waits.Close(a.Leaf)
		x.Cache.Empty.Note(x.Cache.Tree().Queue(a.Leaf), now)
	}
	x.Pending.NoteMoreRoom(x.Cache.Tree(), a.Leaf)
}

// LeaveForGood takes a pod that is gone out of its application. If it was the last
// one, the application is finished.
func (x *Model) LeaveForGood(p *Pod, now time.Time) {
	a := p.App
	if a.Pods() == 1 {
		x.History.finish(x.RecordOfApp(a), now)
		x.History.noteApp(output.AppCompleted, a)
	}
	x.Leave(p, now)
}

// NewApp makes an application without pods.
func (x *Model) NewApp(name cache.AppName, leaf queues.ID, user string, groups []string, submitted, now time.Time) *App {
	owner := queues.Owner{User: user, Group: queues.GroupFor(x.Cache.Tree(), leaf, groups)}
	a := &App{CacheApp: cache.NewApp(name, leaf, owner, groups, submitted), accepted: now}
	a.Ordered = x.Pending.Order.NewApp(leaf, name.String(), submitted, a.Class(x.Cache.Tree()))
	x.Apps.Add(a)
	x.Cache.Empty.Forget(leaf)
	x.History.Counts.Accepted++
	x.History.Apps.Add(a)
	x.History.Rename(a, x.Cache.Path(a.Leaf))
	x.History.noteApp(output.AppAdded, a)
	x.Cache.Books.AddApplications(leaf, 1)
	return a
}

// updateCounted updates whether an application counts against maxapplications.
func (x *Model) updateCounted(a *App) {
	if !x.Cache.Books.UpdateCounted(&a.CacheApp) {
		return
	}
	x.History.Apps.Add(a)
	x.Pending.Order.SetClass(a.Ordered, a.Class(x.Cache.Tree()))
	if !a.Counted() { // another application may start
		x.Pending.NoteMoreRoom(x.Cache.Tree(), a.Leaf)
	}
}

// Class is what quota verdicts on the application depend on besides the request.
func (a *App) Class(tree *queues.Draft) order.Class {
	c := order.Class{Counted: a.Counted()}
	if tree.Queue(a.Leaf).PathLimited {
		c.Owner = a.Owner
	}
	return c
}
