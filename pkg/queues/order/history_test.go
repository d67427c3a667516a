package order_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// step is one random change; its numbers choose among what exists at that time.
type step struct {
	kind    string
	a, b, n int
}

type history struct {
	spec  *config.Spec
	steps []step
}

func histories() *rapid.Generator[history] {
	one := rapid.Custom(func(t *rapid.T) step {
		return step{
			kind: rapid.SampledFrom([]string{
				"push", "push", "push", "push", "remove", "use", "use", "block", "block", "unblock", "close", "open",
				"pop", "submitted", "class", "settings", "capacity", "grow", "shrink", "leave", "leave", "strict",
			}).Draw(t, "kind"),
			a: rapid.IntRange(0, 99).Draw(t, "a"),
			b: rapid.IntRange(0, 99).Draw(t, "b"),
			n: rapid.IntRange(0, 5).Draw(t, "n"),
		}
	})
	return rapid.Custom(func(t *rapid.T) history {
		n := rapid.SampledFrom([]int{5, 20, 60}).Draw(t, "length")
		return history{specs().Draw(t, "spec"), rapid.SliceOfN(one, n, n).Draw(t, "steps")}
	})
}

// runner makes each step in the model and in the index.
type runner struct {
	m     *model
	index *order.Index
	apps  map[*modelApp]*order.App
	asks  map[*modelAsk]*order.Ask
	// loses names a kind of step that the index does not get: a planted bug.
	loses string
	next  int // serial of asks
}

var (
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	full  = reasons.New(reasons.OverMax, "full")
)

func newRunner(spec *config.Spec, loses string) *runner {
	r := &runner{
		m: &model{
			draft: queues.NewDraftFrom(spec), used: map[queues.ID]resources.Vector{}, leaving: map[queues.ID]resources.Vector{},
			blocked: map[modelGroup]queues.ID{}, closed: map[modelClass]bool{},
		},
		index: order.NewIndex(), apps: map[*modelApp]*order.App{}, asks: map[*modelAsk]*order.Ask{}, loses: loses,
	}
	for q := range r.m.draft.All() {
		r.index.SetQueue(q.ID, q.Settings)
	}
	return r
}

// run makes all steps, checks the first ask and the index after each, and then empties
// the order and compares every ask. It returns the UIDs in order.
func (h history) run(loses string) ([]string, *runner, error) {
	r := newRunner(h.spec, loses)
	for i, s := range h.steps {
		r.step(s)
		if err := r.compare(); err != nil {
			return nil, r, fmt.Errorf("after step %d (%+v): %w", i, s, err)
		}
	}
	final := r.copy()
	var popped []string
	for {
		if err := r.compare(); err != nil {
			return nil, r, fmt.Errorf("after %v were taken: %w", popped, err)
		}
		a := r.m.next()
		if a == nil {
			return popped, final, nil
		}
		popped = append(popped, a.key.UID)
		r.remove(a)
	}
}

func (r *runner) compare() error {
	if err := r.index.Check(); err != nil {
		return err
	}
	want, got := "none", "none"
	if a := r.m.next(); a != nil {
		want = a.key.UID
	}
	if a, ok := r.index.Next(); ok {
		got = a.UID()
	}
	if got != want {
		return fmt.Errorf("next ask is %s, want %s", got, want)
	}
	if n := len(r.m.eligible(queues.RootID, false)); r.index.Eligible() != n {
		return fmt.Errorf("%d asks in the order, want %d", r.index.Eligible(), n)
	}
	return nil
}

func (r *runner) leaves() []queues.ID {
	var out []queues.ID
	for q := range r.m.draft.All() {
		if q.Leaf {
			out = append(out, q.ID)
		}
	}
	return out
}

func pick[T any](list []T, n int) (T, bool) {
	if len(list) == 0 {
		var zero T
		return zero, false
	}
	return list[n%len(list)], true
}

func (r *runner) step(s step) {
	switch s.kind {
	case "push":
		r.push(s)
	case "remove":
		if a, ok := pick(r.m.asks, s.a); ok {
			r.remove(a)
		}
	case "pop":
		if a := r.m.next(); a != nil {
			r.use(a.app, a.request)
			r.remove(a)
		}
	case "use":
		if app, ok := pick(r.m.apps, s.a); ok {
			r.use(app, amounts(s.b, s.n))
		}
	case "leave":
		if app, ok := pick(r.m.apps, s.a); ok {
			r.leave(app.leaf, amounts(s.b, s.n))
		}
	case "strict":
		r.m.strict = s.a%2 == 0
		r.unless(s.kind, func() { r.index.SetStrict(r.m.strict) })
	case "block", "unblock":
		r.block(s)
	case "close", "open":
		r.shut(s)
	case "submitted":
		if app, ok := pick(r.m.apps, s.a); ok {
			app.submitted = epoch.Add(time.Duration(s.n) * time.Second)
			r.unless(s.kind, func() { r.index.SetSubmitted(r.apps[app], app.submitted) })
		}
	case "class":
		if app, ok := pick(r.m.apps, s.a); ok {
			app.class = class(s.n)
			r.m.dropBlocks()
			r.unless(s.kind, func() { r.index.SetClass(r.apps[app], app.class) })
		}
	case "settings", "grow", "shrink":
		r.reshape(s)
	case "capacity":
		r.m.capacity = amounts(s.a, s.n)
		r.unless(s.kind, func() { r.index.SetCapacity(r.m.capacity) })
	}
}

// unless makes a change of a kind in the index, unless that is the planted bug.
func (r *runner) unless(kind string, change func()) {
	if r.loses != kind {
		change()
	}
}

func amounts(kind, n int) resources.Vector {
	names := [][]string{{"vcore"}, {"memory"}, {"vcore", "memory", "pods"}}[kind%3]
	m := map[string]resources.Amount{}
	for _, name := range names {
		m[name] = resources.Amount(n)
	}
	return resources.VectorFrom(m)
}

func class(n int) order.Class {
	return order.Class{Counted: n%2 == 0, Owner: queues.Owner{User: []string{"", "alice", "bob"}[n%3]}}
}

func (r *runner) push(s step) {
	leaf, ok := pick(r.leaves(), s.a)
	if !ok {
		return
	}
	r.next++
	r.ask(&modelAsk{
		app: r.app(leaf, fmt.Sprintf("app%d", s.b%3), epoch.Add(time.Duration(s.b%2)*time.Second), class(s.b)),
		key: order.AskKey{
			Priority: int32(s.n%3) - 1, Created: epoch.Add(time.Duration(s.a%3) * time.Second), UID: fmt.Sprintf("ask%03d", (r.next*37)%997),
		},
		request: amounts(s.a, 1+s.n%2), hash: hashOf(s.n),
	})
}

// app returns an application of a leaf; it is made if it is not there.
func (r *runner) app(leaf queues.ID, name string, submitted time.Time, class order.Class) *modelApp {
	for _, a := range r.m.apps {
		if a.leaf == leaf && a.name == name {
			return a
		}
	}
	a := &modelApp{leaf: leaf, name: name, submitted: submitted, class: class}
	r.m.apps = append(r.m.apps, a)
	r.apps[a] = r.index.NewApp(leaf, name, submitted, class)
	return a
}

func (r *runner) ask(a *modelAsk) {
	r.m.asks = append(r.m.asks, a)
	r.asks[a] = r.index.Push(r.apps[a.app], a.key, a.request, a.hash)
}

func hashOf(n int) string { return []string{"", "large"}[n%2] }

// shut closes or opens a hash of an application, whether or not it has asks.
func (r *runner) shut(s step) {
	app, ok := pick(r.m.apps, s.a)
	if !ok {
		return
	}
	request, closed := amounts(s.b, 1+s.n%2), s.kind == "close"
	k := modelClass{app, request.String(), hashOf(s.n)}
	delete(r.m.closed, k)
	if closed {
		r.m.closed[k] = true
	}
	r.m.dropBlocks()
	r.unless(s.kind, func() { r.index.SetClosed(r.apps[app], request, hashOf(s.n), closed) })
}

func (r *runner) remove(a *modelAsk) {
	r.m.remove(a)
	r.index.Remove(r.asks[a])
	delete(r.asks, a)
}

// use increases the usage of an application, and so of its queues.
func (r *runner) use(app *modelApp, v resources.Vector) {
	app.used = app.used.Add(v)
	r.unless("application use", func() { r.index.SetAppUsed(r.apps[app], app.used) })
	for q := range r.m.draft.Ancestors(app.leaf) {
		r.m.used[q.ID] = r.m.used[q.ID].Add(v)
		r.unless("use", func() { r.tell(r.index, q.ID) })
	}
}

// leave makes pods of a leaf with the given usage leave.
func (r *runner) leave(leaf queues.ID, v resources.Vector) {
	for q := range r.m.draft.Ancestors(leaf) {
		r.m.leaving[q.ID] = v
		r.unless("leave", func() { r.tell(r.index, q.ID) })
	}
}

func (r *runner) tell(x *order.Index, id queues.ID) {
	x.SetUsed(id, r.m.used[id], r.m.used[id].Sub(r.m.leaving[id]))
}

// block blocks the group of a random ask somewhere on its path, or unblocks it.
func (r *runner) block(s step) {
	a, ok := pick(r.m.asks, s.a)
	if !ok || r.m.closed[a.of()] {
		return
	}
	if s.kind == "unblock" {
		delete(r.m.blocked, a.group())
		r.unless(s.kind, func() { r.index.Unblock(r.asks[a].Group()) })
		return
	}
	q, _ := pick(slices.Collect(r.m.draft.Ancestors(a.app.leaf)), s.b)
	r.m.blocked[a.group()] = q.ID
	r.unless(s.kind, func() { r.index.Block(r.asks[a].Group(), queues.Verdict{At: q.ID, Reason: full}) })
}

// reshape changes the settings of a queue, adds one, or removes an unused one.
func (r *runner) reshape(s step) {
	all := slices.Collect(r.m.draft.All())
	q, _ := pick(all, s.a)
	switch s.kind {
	case "settings":
		n := *q.Settings
		n.Policies.PrioritySort = s.b%4 != 0
		n.Policies.PriorityOffset = int32(s.n)
		n.Policies.PriorityFence = s.b%5 == 0
		if s.b%2 == 0 {
			n.Policies.ApplicationSort = config.SortFair
		}
		n.Guaranteed = resources.GuaranteeFrom(amounts(s.b, s.n).Map())
		r.m.draft.SetSettings(q.ID, n)
		r.unless(s.kind, func() { r.index.SetQueue(q.ID, r.m.draft.Queue(q.ID).Settings) })
	case "grow":
		name := fmt.Sprintf("g%d", s.b%3)
		if q.Leaf && s.n > 0 {
			return // rare: a leaf that became a parent
		}
		if _, exists := r.m.draft.Find(q.Path + "." + name); !exists {
			id := r.m.draft.Add(queues.Settings{
				Settings: config.Settings{Name: name, Path: q.Path + "." + name, Leaf: s.n%2 == 0, Policies: config.DefaultPolicies()},
				Parent:   q.ID,
			})
			r.index.SetQueue(id, r.m.draft.Queue(id).Settings)
		}
	case "shrink":
		if slices.ContainsFunc(r.m.apps, func(a *modelApp) bool { return a.leaf == q.ID }) {
			return
		}
		if r.m.draft.Remove(q.ID) {
			delete(r.m.used, q.ID)
			delete(r.m.leaving, q.ID)
			r.index.RemoveQueue(q.ID)
		}
	}
}

// copy returns a runner with a copy of the model and no index.
func (r *runner) copy() *runner {
	m := *r.m
	m.apps, m.asks = slices.Clone(m.apps), slices.Clone(m.asks)
	m.blocked, m.closed = maps.Clone(m.blocked), maps.Clone(m.closed)
	return &runner{m: &m}
}

// rebuild makes an index of the same state with calls in a random order (parents before
// children, applications before their asks).
func (r *runner) rebuild(random *rand.Rand) *order.Index {
	x := order.NewIndex()
	for q := range r.m.draft.All() {
		x.SetQueue(q.ID, q.Settings)
	}
	apps := map[*modelApp]*order.App{}
	tell := []func(){func() { x.SetCapacity(r.m.capacity) }, func() { x.SetStrict(r.m.strict) }}
	for q := range r.m.draft.All() {
		tell = append(tell, func() { r.tell(x, q.ID) })
	}
	for _, app := range r.m.apps {
		apps[app] = x.NewApp(app.leaf, app.name, app.submitted, app.class)
		tell = append(tell, func() { x.SetAppUsed(apps[app], app.used) })
	}
	for k := range r.m.closed {
		for _, a := range r.m.asks {
			if a.of() == k {
				tell = append(tell, func() { x.SetClosed(apps[a.app], a.request, a.hash, true) })
			}
		}
	}
	for _, a := range r.m.asks {
		tell = append(tell, func() {
			ask := x.Push(apps[a.app], a.key, a.request, a.hash)
			if at, is := r.m.blocked[a.group()]; is && ask.Group() != nil {
				x.Block(ask.Group(), queues.Verdict{At: at, Reason: full})
			}
		})
	}
	random.Shuffle(len(tell), func(i, j int) { tell[i], tell[j] = tell[j], tell[i] })
	for _, f := range tell {
		f()
	}
	return x
}
