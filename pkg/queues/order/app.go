package order

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// App is an application of a leaf, with its asks.
type App struct {
	leaf     *node
	used     resources.Vector
	key      AppKey
	eligible int
	at       int // in leaf.apps, -1 when it has no eligible ask
	counted  place
	groups   ranking.Heap[*Group]
	byShape  map[string]*Group
}

// Place serves the ranking of the leaf.
func (a *App) Place() *int { return &a.at }

// Group is the asks of one application that request the same. It is either in
// the order or blocked by a queue.
type Group struct {
	app       *App
	request   resources.Vector
	asks      ranking.Heap[*Ask]
	at        int // in app.groups, -1 when it is blocked or empty
	blockedAt *node
	verdict   queues.Verdict
}

// Place serves the ranking of the application.
func (g *Group) Place() *int { return &g.at }

// Ask is a pending pod that takes part in the order, or would if its group were
// not blocked.
type Ask struct {
	key   AskKey
	group *Group
	at    int
}

// Place serves the ranking of the group.
func (a *Ask) Place() *int { return &a.at }

// UID is the pod's UID.
func (a *Ask) UID() string { return a.key.UID }

// Group is the group of the ask.
func (a *Ask) Group() *Group { return a.group }

// Request is what each ask of the group requests.
func (g *Group) Request() resources.Vector { return g.request }

// Leaf is the queue of the group.
func (g *Group) Leaf() queues.ID { return g.app.leaf.id }

// Verdict is why the group is blocked; granted when it is not.
func (g *Group) Verdict() queues.Verdict {
	if g.blockedAt == nil {
		return queues.Granted
	}
	return g.verdict
}

// First returns the first ask of the group in the order; groups are never empty.
func (g *Group) First() *Ask { return g.asks.Items()[0] }

// NewApp adds an application without asks to a leaf. The name is unique in the leaf.
func (x *Index) NewApp(leaf queues.ID, name string, submitted time.Time) *App {
	a := &App{
		leaf: x.nodes[leaf], at: -1,
		key:     AppKey{Name: name, Submitted: submitted},
		byShape: map[string]*Group{},
	}
	a.groups = ranking.New(func(g, h *Group) bool { return CompareAsks(g.First().key, h.First().key) < 0 })
	return a
}

// SetSubmitted changes the submission time of an application.
func (x *Index) SetSubmitted(a *App, submitted time.Time) {
	a.key.Submitted = submitted
	x.settle(a)
}

// SetAppUsed tells what an application uses and is about to use.
func (x *Index) SetAppUsed(a *App, used resources.Vector) {
	a.used = used
	a.key.Share = x.appShare(a)
	x.settle(a)
}

// Push adds an ask to its application. It joins its group, blocked or not.
func (x *Index) Push(a *App, key AskKey, request resources.Vector) *Ask {
	shape := request.Key()
	g := a.byShape[shape]
	if g == nil {
		g = &Group{app: a, request: request, at: -1}
		g.asks = ranking.New(func(p, q *Ask) bool { return CompareAsks(p.key, q.key) < 0 })
		a.byShape[shape] = g
	}
	ask := &Ask{key: key, group: g, at: -1}
	g.asks.Update(ask, true)
	if g.blockedAt == nil {
		a.eligible++
		a.groups.Update(g, true)
		x.changed(a, 1)
	}
	return ask
}

// Remove takes an ask out of its application.
func (x *Index) Remove(ask *Ask) {
	g := ask.group
	a := g.app
	g.asks.Update(ask, false)
	empty := len(g.asks.Items()) == 0
	if empty {
		delete(a.byShape, g.request.Key())
	}
	if g.blockedAt != nil {
		if empty {
			delete(g.blockedAt.blocked, g)
			g.blockedAt = nil
		}
		return
	}
	a.eligible--
	a.groups.Update(g, !empty)
	x.changed(a, -1)
}

// Block takes a group out of the order because of a verdict that refuses it.
// A group that is blocked already gets the new verdict.
func (x *Index) Block(g *Group, v queues.Verdict) {
	if g.blockedAt != nil {
		delete(g.blockedAt.blocked, g)
	} else {
		g.app.eligible -= len(g.asks.Items())
		g.app.groups.Update(g, false)
		x.changed(g.app, -len(g.asks.Items()))
	}
	g.blockedAt, g.verdict = x.nodes[v.At], v
	g.blockedAt.blocked[g] = struct{}{}
}

// Unblock puts a blocked group back into the order.
func (x *Index) Unblock(g *Group) {
	if g.blockedAt == nil {
		return
	}
	delete(g.blockedAt.blocked, g)
	g.blockedAt, g.verdict = nil, queues.Granted
	g.app.eligible += len(g.asks.Items())
	g.app.groups.Update(g, true)
	x.changed(g.app, len(g.asks.Items()))
}

// changed follows a change of the eligible asks of an application by delta.
func (x *Index) changed(a *App, delta int) {
	if g, ok := a.groups.First(); ok {
		a.key.Priority = int64(g.First().key.Priority)
	}
	wanted := a.eligible > 0
	if wanted && a.at < 0 {
		a.key.Share = x.appShare(a)
	}
	a.leaf.below.recount(&a.counted, a.key.Priority, wanted)
	a.leaf.apps.Update(a, wanted)
	x.propagate(a.leaf, delta)
}

// settle moves an application after a change of its key other than priority.
func (x *Index) settle(a *App) {
	if a.at >= 0 {
		a.leaf.apps.Update(a, true)
	}
}
