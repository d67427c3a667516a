package store

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
)

// app is an application: the pods with one application ID in one queue. It is charged to
// the user of its first pod, and stays in that pod's queue as long as it has pods.
type app struct {
	cacheApp
	ordered *order.App

	// What readers see: what was published, when it was given its queue, and when its
	// first pod was bound.
	history.Mark[AppRecord]
	accepted, began time.Time
	told            *AppName // its name in events (history.go)
	// warned is set once a warning that its gang is ignored was issued.
	warned bool
}

// cacheApp is embedded under a name that is not exported.
type cacheApp = cache.App

// join adds a pod to an application and charges its request as pending.
func (s *Store) join(a *app, p *pod) {
	p.app = a
	oldest := a.Join(&p.cachePod)
	s.charge(p, p.Request, cache.Pending)
	if p.asked = p.Node == ""; p.asked {
		s.history.notePod(Asked, p)
	}
	s.live(p, !p.Deleting)
	if oldest {
		s.pending.SubmittedAt(a, a.ordered, a.Submitted)
		s.asking.Order.SubmittedAt(a, a.Submitted)
	}
}

// leave takes a pod, already uncharged, out of its application. It ends the application
// when the pod was the last one.
func (s *Store) leave(p *pod, now time.Time) {
	a := p.app
	s.live(p, false)
	s.history.waits.Update(&p.tallied, history.Tally{})
	if p.asked {
		s.history.notePod(AskGone, p)
	}
	p.app, p.asked = nil, false
	if last := a.Leave(&p.cachePod); !last {
		return
	}
	s.count(a)
	s.history.apps.Remove(a, a.Serial)
	s.history.noteApp(AppRemoved, a)
	s.pending.ForgetApp(a)
	s.asking.Order.Forget(a)
	s.cache.Books.AddApplications(a.Leaf, -1)
	if lastOfLeaf := s.apps.Remove(a); lastOfLeaf {
		s.history.waits.Close(a.Leaf)
		s.cache.Empty.Note(s.cache.Tree().Queue(a.Leaf), now)
	}
	s.pending.Release(s.cache.Tree(), a.Leaf)
}

// leaveForGood takes a pod that is gone out of its application. If it was the last
// one, the application is finished.
func (s *Store) leaveForGood(p *pod, now time.Time) {
	a := p.app
	if a.Pods() == 1 {
		s.history.finish(s.recordOfApp(a), now)
		s.history.noteApp(AppCompleted, a)
	}
	s.leave(p, now)
}

// newApp makes an application without pods.
func (s *Store) newApp(name cache.AppName, leaf queues.ID, user string, groups []string, submitted time.Time) *app {
	owner := queues.Owner{User: user, Group: queues.GroupFor(s.cache.Tree(), leaf, groups)}
	a := &app{cacheApp: cache.NewApp(name, leaf, owner, groups, submitted)}
	a.ordered = s.pending.Order.NewApp(leaf, name.String(), submitted, a.class(s.cache.Tree()))
	s.apps.Add(a)
	s.history.waits.Open(leaf)
	s.cache.Empty.Forget(leaf)
	s.history.enroll(a)
	s.history.rename(a, s.cache.Path(a.Leaf))
	s.history.noteApp(AppAdded, a)
	s.cache.Books.AddApplications(leaf, 1)
	return a
}

// count updates whether the application counts as running.
func (s *Store) count(a *app) {
	if !s.cache.Books.Recount(&a.cacheApp) {
		return
	}
	s.history.apps.Add(a)
	s.pending.Order.SetClass(a.ordered, a.class(s.cache.Tree()))
	if !a.Counted() { // another application may start
		s.pending.Release(s.cache.Tree(), a.Leaf)
	}
}

// class is what quota verdicts on the application depend on; see judge.
func (a *app) class(tree *queues.Draft) order.Class {
	c := order.Class{Counted: a.Counted()}
	if tree.Queue(a.Leaf).PathLimited {
		c.Owner = a.Owner
	}
	return c
}
