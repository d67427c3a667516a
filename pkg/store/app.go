package store

import (
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
)

// appName identifies an application. Users choose application IDs, so two namespaces may
// use the same ID without sharing a queue.
type appName struct {
	namespace, id string
	// queue is the queue named by the pods, if their ID was generated. Such pods share an
	// application only if they name the same queue.
	queue string
}

// inLeaf is the name inside one leaf, where the queue named by the pods does not matter.
func (n appName) inLeaf() appName { return appName{namespace: n.namespace, id: n.id} }

func (n appName) String() string { return n.namespace + "/" + n.id + "/" + n.queue }

// app is an application: the pods with one application ID in one queue. It is charged to
// the user of its first pod, and stays in that pod's queue as long as it has pods.
type app struct {
	cacheApp
	name             appName
	aliases          []appName // other names under which it is in Store.apps
	ordered          *order.App
	standing         *standing
	equivalenceClass map[classKey]*equivalenceClass // nil until one of its pods found no node

	// What readers see: a number, what was published, when it was given its queue, and
	// when its first pod was bound.
	serial uint64
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
		s.notePod(Asked, p)
	}
	s.live(p, !p.Deleting)
	if oldest {
		s.index.SetSubmitted(a.ordered, a.Submitted)
		s.lane.SubmittedAt(a, a.Submitted)
		s.asking.Order.SubmittedAt(a, a.Submitted)
	}
}

// leave takes a pod, already uncharged, out of its application. It ends the application
// when the pod was the last one.
func (s *Store) leave(p *pod, now time.Time) {
	a := p.app
	s.live(p, false)
	s.waitCounts.untally(p)
	if p.asked {
		s.notePod(AskGone, p)
	}
	p.app, p.asked = nil, false
	if last := a.Leave(&p.cachePod); !last {
		return
	}
	s.count(a)
	s.register.apps.Remove(a, a.serial)
	s.noteApp(AppRemoved, a)
	for _, name := range append(a.aliases, a.name) {
		if s.apps[name] = slices.DeleteFunc(s.apps[name], func(o *app) bool { return o == a }); len(s.apps[name]) == 0 {
			delete(s.apps, name)
		}
	}
	s.lane.Forget(a)
	s.asking.Order.Forget(a)
	delete(s.leaves[a.Leaf], a.name.inLeaf())
	s.cache.Books.AddApplications(a.Leaf, -1)
	if len(s.leaves[a.Leaf]) == 0 {
		delete(s.leaves, a.Leaf)
		delete(s.waitCounts.leaves, a.Leaf)
		s.cache.Empty.Note(s.draft.Queue(a.Leaf), now)
	}
	s.release(a.Leaf)
}

// leaveForGood takes a pod that is gone out of its application. If it was the last
// one, the application is finished.
func (s *Store) leaveForGood(p *pod, now time.Time) {
	a := p.app
	if a.Pods() == 1 {
		s.register.finish(s.recordOfApp(a), now)
		s.noteApp(AppCompleted, a)
	}
	s.leave(p, now)
}

// joinable returns the record that a new pod of an application joins: the oldest one in a
// queue that takes pods; nil if there is none. A pending pod does not join a record in
// the recovery queue, because that queue has no quota.
func (s *Store) joinable(name appName, running bool) *app {
	var recovered *app
	for _, a := range s.apps[name] {
		switch q := s.draft.Queue(a.Leaf); {
		case q.Path == queues.RecoveryPath && running:
			recovered = a
		case q.Path != queues.RecoveryPath && q.Leaf:
			return a
		}
	}
	return recovered
}

// rejoin returns the record that a placed application has in the leaf; nil if it has
// none. The record may be under another name: with an ID generated for the pods of a
// namespace, the pods may write the name of their queue in several ways.
func (s *Store) rejoin(leaf queues.ID, name appName) *app {
	a := s.leaves[leaf][name.inLeaf()]
	if a != nil && !slices.Contains(s.apps[name], a) {
		a.aliases = append(a.aliases, name)
		s.apps[name] = append(s.apps[name], a)
	}
	return a
}

// newApp makes an application without pods.
func (s *Store) newApp(name appName, leaf queues.ID, user string, groups []string, submitted time.Time) *app {
	owner := queues.Owner{User: user, Group: queues.GroupFor(s.draft, leaf, groups)}
	a := &app{name: name, cacheApp: cache.NewApp(leaf, owner, groups, submitted), standing: s.waitCounts.of(leaf)}
	a.ordered = s.index.NewApp(leaf, name.String(), submitted, s.class(a))
	s.apps[name] = append(s.apps[name], a)
	if s.leaves[leaf] == nil {
		s.leaves[leaf] = map[appName]*app{}
	}
	s.leaves[leaf][name.inLeaf()] = a
	s.cache.Empty.Forget(leaf)
	s.register.enroll(a)
	s.rename(a)
	s.noteApp(AppAdded, a)
	s.cache.Books.AddApplications(leaf, 1)
	return a
}

// count updates whether the application counts as running.
func (s *Store) count(a *app) {
	if !s.cache.Books.Recount(&a.cacheApp) {
		return
	}
	s.register.apps.Add(a)
	s.index.SetClass(a.ordered, s.class(a))
	if !a.Counted() { // another application may start
		s.release(a.Leaf)
	}
}

// class is what quota verdicts on the application depend on; see judge.
func (s *Store) class(a *app) order.Class {
	c := order.Class{Counted: a.Counted()}
	if s.draft.Queue(a.Leaf).PathLimited {
		c.Owner = a.Owner
	}
	return c
}
