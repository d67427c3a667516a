package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// move is one random thing that happens; its numbers choose among what there is
// then.
type move struct {
	kind    string
	a, b, n int
}

// life is a random history of a world.
type life struct {
	specs []*config.Spec
	moves []move
}

var kinds = []string{
	"create", "create", "create", "deliver", "deliver", "deliver", "repeat", "drop",
	"see", "see", "activate", "activate", "lose", "pop", "pop", "cycle", "cycle", "error", "bind", "bind", "bind fails",
	"hint", "back", "tick", "remove", "deleting", "finish", "resize", "relabel", "steal", "ungate", "fit",
	"reload", "turn", "turn", "namespace", "restart",
}

func lives() *rapid.Generator[life] {
	specs := queuestest.Specs(queuestest.Features{
		Guaranteed: true, Max: true, MaxApplications: true, Limits: true, Policies: true, Templates: true, Depth: 2,
	})
	one := rapid.Custom(func(t *rapid.T) move {
		return move{
			kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
			a:    rapid.IntRange(0, 99).Draw(t, "a"),
			b:    rapid.IntRange(0, 99).Draw(t, "b"),
			n:    rapid.IntRange(0, 9).Draw(t, "n"),
		}
	})
	return rapid.Custom(func(t *rapid.T) life {
		n := rapid.SampledFrom([]int{10, 40, 120}).Draw(t, "length")
		l := life{moves: rapid.SliceOfN(one, n, n).Draw(t, "moves")}
		for range 3 {
			spec := specs.Draw(t, "spec")
			spec.Rules, _ = queuestest.Rules(rapid.SampledFrom([]string{"provided", "provided create", "provided create\ntag namespace create"}).Draw(t, "rules"))
			l.specs = append(l.specs, spec)
		}
		return l
	})
}

// run lives the life, lets everything settle, and judges it.
func (l life) run(plant func(*Store) live) error {
	w := newWorld(l.specs[0], plant)
	for i, m := range l.moves {
		if err := w.move(m, l.specs); err != nil {
			return fmt.Errorf("move %d (%+v): %w", i, m, err)
		}
		if err := w.store.Check(); err != nil {
			return fmt.Errorf("after move %d (%+v): %w", i, m, err)
		}
	}
	if err := w.settle(); err != nil {
		return fmt.Errorf("while settling: %w", err)
	}
	if err := w.judge(); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	return nil
}

// some returns one of the objects that have what is asked for.
func (w *world) some(n int, wanted func(*object) bool) *object {
	var fit []*object
	for _, o := range w.objects {
		if wanted(o) {
			fit = append(fit, o)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return fit[n%len(fit)]
}

func (w *world) move(m move, specs []*config.Spec) error {
	switch m.kind {
	case "create":
		w.create(m)
	case "activate":
		w.activate(w.live.TakeActivations())
	case "lose":
		w.live.TakeActivations()
	case "pop":
		w.pop()
	case "cycle":
		return w.cycle()
	case "error": // of a plugin that is not ours
		if o := w.popped; o != nil {
			w.popped = nil
			w.giveUp(o, backoff)
		}
	case "tick":
		w.now = w.now.Add(time.Duration(m.n*m.n) * 500 * time.Millisecond)
		w.live.Tick(w.now)
	case "reload":
		w.spec, w.unturned = specs[m.a%len(specs)], nil
		w.live.Configure(w.spec, w.now)
	case "turn":
		w.turn(m.a)
		w.live.Configure(w.spec, w.now)
	case "namespace":
		quota := map[string]string{placement.KeyNamespaceMax: fmt.Sprintf(`{"cpu":"%dm"}`, 1+m.n)}
		if m.b%2 == 0 {
			quota = nil
		}
		w.live.UpsertNamespace(namespaces[m.a%2], quota, w.now)
	case "restart":
		if m.n == 0 {
			w.restart()
			for _, o := range w.objects {
				w.deliver(o)
			}
			w.live.Start(w.now)
		}
	default:
		w.moveOne(m)
	}
	return nil
}

// turn makes a parent of a leaf, or takes that back.
func (w *world) turn(n int) {
	if w.unturned != nil {
		w.spec, w.unturned = w.unturned, nil
		return
	}
	w.spec, w.unturned = queuestest.Turned(w.spec, n), w.spec
}

// moveOne makes a move of one object.
func (w *world) moveOne(m move) {
	wanted := map[string]func(*object) bool{
		"deliver":    func(o *object) bool { return len(o.events) > 0 },
		"repeat":     func(o *object) bool { return o.last != nil },
		"drop":       func(o *object) bool { return len(o.events) > 1 },
		"see":        func(o *object) bool { return o.stage == unseen && !o.gone },
		"bind":       func(o *object) bool { return o.stage == binding },
		"bind fails": func(o *object) bool { return o.stage == binding },
		"hint":       func(o *object) bool { return o.stage == held },
		"back":       func(o *object) bool { return o.stage == backoff },
		"remove":     func(o *object) bool { return !o.gone },
		"deleting":   func(o *object) bool { return !o.gone && !o.Deleting },
		"finish":     func(o *object) bool { return !o.gone && o.Node != "" && !o.Terminal },
		"resize":     func(o *object) bool { return !o.gone && !o.Terminal },
		"relabel":    func(o *object) bool { return !o.gone && !o.Terminal },
		"steal":      func(o *object) bool { return o.pending() && !o.Gated },
		"ungate":     func(o *object) bool { return !o.gone && o.Gated },
		"fit":        func(o *object) bool { return true },
	}[m.kind]
	o := w.some(m.a, wanted)
	if o == nil {
		return
	}
	switch m.kind {
	case "deliver":
		w.deliver(o)
	case "repeat":
		w.hand(*o.last)
	case "drop": // a watch that broke and listed again
		o.events = o.events[len(o.events)-1:]
		o.events[0].lost = o.events[0].deleted && (o.last == nil || o.last.pod.Node == "")
	case "see", "hint", "back":
		w.gate(o)
	case "bind":
		w.bind(o, false)
	case "bind fails":
		w.bind(o, true)
	case "fit":
		o.unfit = !o.unfit
		if o.kind != "" {
			w.unfit[o.kind] = !w.unfit[o.kind]
		}
	case "remove":
		w.remove(o)
	default:
		w.edit(o, m)
		w.changed(o)
	}
}

// edit changes the truth of an object.
func (w *world) edit(o *object, m move) {
	switch m.kind {
	case "deleting":
		o.Deleting = true
	case "finish":
		o.Terminal = true
	case "resize":
		o.Request = request(m)
	case "relabel":
		if m.n == 0 {
			o.Priority = int32(m.b % 3)
			return
		}
		o.Labels = labels(m)
	case "steal":
		o.Node = "n7"
	case "ungate":
		o.Gated = false
	}
}

var namespaces = []string{"red", "blue"}

func request(m move) resources.Vector {
	return resources.VectorOf(resources.Entry{Name: "vcore", Amount: resources.Amount(1 + m.n%3)},
		resources.Entry{Name: "memory", Amount: resources.Amount(m.n % 2)}, resources.Entry{Name: "pods", Amount: 1})
}

func labels(m move) map[string]string {
	of := m.a
	if of >= 50 { // as the pods of one application do: all name one queue
		of = m.b
	}
	queue := []string{"root.a", "root.a.a", "root.a.aa", "root.aa", "root.b.a", "root.x", "root.x.y", ""}[of%8]
	l := map[string]string{placement.KeyApplicationID: fmt.Sprintf("app%d", m.b%4), placement.KeyUsername: []string{"alice", "bob"}[m.b%2]}
	if queue != "" {
		l[placement.KeyQueue] = queue
	}
	return l
}

func (w *world) create(m move) {
	w.serial++
	o := &object{stage: unseen, unfit: m.n == 0, kind: []string{"", "small", "large"}[m.a/8%3], Pod: Pod{
		UID: types.UID(fmt.Sprintf("u%03d", w.serial)), Name: fmt.Sprintf("p%03d", w.serial), Namespace: namespaces[m.b%2],
		Labels: labels(m), Request: request(m), Priority: int32(m.n % 3), Created: w.now, Gated: m.n == 1,
	}}
	if m.b%3 == 0 {
		o.Annotations = map[string]string{placement.KeyUserInfo: `{"user":"carol","groups":["qa","dev"]}`}
	}
	w.objects = append(w.objects, o)
	w.changed(o)
}

func sound(s *Store) live { return s }

func TestWorldProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := lives().Draw(t, "life")
		if err := l.run(sound); err != nil {
			small, reason := l.smallest(sound)
			t.Fatalf("%v\nin short: %v\n%+v", err, reason, small.moves)
		}
	})
}

// smallest leaves out every move without which the life still goes wrong.
func (l life) smallest(plant func(*Store) live) (life, error) {
	err := l.run(plant)
	for i := 0; i < len(l.moves); {
		less := life{l.specs, slices.Delete(slices.Clone(l.moves), i, i+1)}
		if e := less.run(plant); e != nil {
			l, err = less, e
			continue
		}
		i++
	}
	return l, err
}

// faulty is a store with one planted bug.
type faulty struct {
	*Store
	bug string
}

func (f *faulty) Delete(uid types.UID, now time.Time) {
	if p := f.pods[uid]; f.bug == "a release is lost" && p != nil && p.state.allocated() {
		p.held = resources.Vector{}
	}
	if f.bug != "deletions are lost" {
		f.Store.Delete(uid, now)
	}
}

func (f *faulty) Forget(uid types.UID, now time.Time) {
	if f.bug != "failed binds are lost" {
		f.Store.Forget(uid, now)
	}
}

func (f *faulty) Assume(uid types.UID, node string, now time.Time) queues.Verdict {
	if p := f.pods[uid]; f.bug == "assumed without asking" && p != nil && p.app != nil && !p.state.allocated() {
		if p.state != admitted {
			f.withdraw(p)
		}
		f.toAllocated(p, assumed, node)
		f.show()
		return queues.Granted
	}
	return f.Store.Assume(uid, node, now)
}

func (f *faulty) Gate(uid types.UID, now time.Time) reasons.Reason {
	if p := f.pods[uid]; f.bug == "assumed without asking" && p != nil && p.app != nil {
		return reasons.Reason{}
	}
	return f.Store.Gate(uid, now)
}

func (f *faulty) Failed(uid types.UID, kind string, why reasons.Reason, now time.Time) {
	f.Store.Failed(uid, kind, why, now)
	if p := f.pods[uid]; f.bug == "twins wait for nobody" && p != nil && p.twins != nil {
		f.refused(p)
		f.setFailed(p.twins, true)
	}
}

func (f *faulty) Judge(uid types.UID) (Ask, queues.Verdict, bool) {
	ask, v, ok := f.Store.Judge(uid)
	if f.bug == "assumed without asking" && ok {
		v = queues.Granted
	}
	return ask, v, ok
}

func (f *faulty) TakeActivations() []Ref {
	refs := f.Store.TakeActivations()
	if f.bug == "activations are lost and leases too" {
		return nil
	}
	return refs
}

func (f *faulty) Tick(now time.Time) {
	if f.bug == "activations are lost and leases too" {
		for p, ok := f.deadlines.First(); ok; p, ok = f.deadlines.First() {
			f.clearDeadline(p)
		}
	}
	f.Store.Tick(now)
}

func (f *faulty) Upsert(event Pod, now time.Time) {
	if p := f.pods[event.UID]; f.bug == "resizes are lost" && p != nil && p.state == bound {
		event.Request = p.Request
	}
	f.Store.Upsert(event, now)
}

func TestWorldPropertyFindsPlantedBugs(t *testing.T) {
	for _, bug := range []string{
		"a release is lost", "deletions are lost", "failed binds are lost", "assumed without asking",
		"activations are lost and leases too", "resizes are lost", "twins wait for nobody",
	} {
		t.Run(bug, func(t *testing.T) {
			for seed := range 1000 {
				if lives().Example(seed).run(func(s *Store) live { return &faulty{s, bug} }) != nil {
					return
				}
			}
			t.Error("nobody noticed")
		})
	}
}
