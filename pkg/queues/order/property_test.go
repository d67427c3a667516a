package order_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// The index gives the same asks in the same order as sorting plain lists, unless it does not
// get all changes.
func TestOrderProperty(t *testing.T) {
	run := func(loses string) func(history) error {
		return func(h history) error {
			_, _, err := h.run(loses)
			return err
		}
	}
	expect.Law(t, histories(), run(""))
	for _, loses := range []string{
		"use", "application use", "block", "unblock", "close", "open", "submitted", "class",
		"settings", "capacity", "leave", "strict",
	} {
		t.Run(loses, func(t *testing.T) { expect.Broken(t, histories(), run(loses)) })
	}
}

func TestOrderIsIndependentOfInsertion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := histories().Draw(t, "history")
		want, final, err := h.run("")
		if err != nil {
			t.Fatal(err)
		}
		x := final.rebuild(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		if diff := cmp.Diff(want, drain(x, (*order.Ask).UID)); diff != "" {
			t.Fatalf("told in another order (-want +got):\n%s", diff)
		}
	})
}

// A comparison that ends before names and UIDs makes the order depend on chance.
func TestOrderIsIndependentOfInsertionFindsEqualKeys(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for seed := range 300 {
		_, final, err := histories().Example(seed).run("")
		expect.OK(t, err)
		for _, a := range final.m.asks {
			a.key.UID, a.key.Created = "same", epoch
		}
		for _, a := range final.m.apps {
			a.name, a.submitted = "same", epoch
		}
		request := func(a *order.Ask) string { return a.Group().Request().String() }
		if !cmp.Equal(drain(final.rebuild(random), request), drain(final.rebuild(random), request)) {
			return
		}
	}
	t.Error("it is not found that equal keys leave the order to chance")
}

// drain removes all asks in their order, and returns what is shown of them.
func drain(x *order.Index, show func(*order.Ask) string) (out []string) {
	for a, ok := x.Next(); ok; a, ok = x.Next() {
		out = append(out, show(a))
		x.Remove(a)
	}
	return out
}

// The asks reported before an ask are those taken before it from its leaf, and no ask is
// before the first ask of all.
func TestStandingProperty(t *testing.T) {
	expect.Law(t, histories(), func(h history) error { return checkStandings(drawnStandings(h)) })
	for name, plant := range map[string]func(standings map[string]order.Standing, popped []string){
		"wrong order": func(_ map[string]order.Standing, popped []string) { slices.Reverse(popped) },
		"one too few": func(m map[string]order.Standing, p []string) {
			s := m[p[len(p)-1]]
			s.Asks--
			m[p[len(p)-1]] = s
		},
		"sibling added": func(m map[string]order.Standing, p []string) {
			s := m[p[0]]
			s.Levels[0].Before = []queues.ID{1}
			m[p[0]] = s
		},
		"out of it": func(m map[string]order.Standing, p []string) { m[p[0]] = order.Standing{} },
	} {
		t.Run(name, func(t *testing.T) {
			expect.Broken(t, histories(), func(h history) error {
				standings, leaves, popped := drawnStandings(h)
				if len(popped) > 1 {
					plant(standings, popped)
				}
				return checkStandings(standings, leaves, popped)
			})
		})
	}
}

// drawnStandings returns the standing and the leaf of each ask, and all asks in the order
// in which they are taken.
func drawnStandings(h history) (standings map[string]order.Standing, leaves map[string]queues.ID, popped []string) {
	r := newRunner(h.spec, "")
	for _, s := range h.steps {
		r.step(s)
	}
	standings, leaves = map[string]order.Standing{}, map[string]queues.ID{}
	for m, a := range r.asks {
		standings[a.UID()], leaves[a.UID()] = r.index.Standing(a), m.app.leaf
	}
	return standings, leaves, drain(r.index, (*order.Ask).UID)
}

func checkStandings(standings map[string]order.Standing, leaves map[string]queues.ID, popped []string) error {
	for uid, s := range standings {
		if s.In != slices.Contains(popped, uid) {
			return fmt.Errorf("%s: in the order: %t", uid, s.In)
		}
	}
	for i, uid := range popped {
		before := []string{}
		for _, other := range popped[:i] {
			if leaves[other] == leaves[uid] {
				before = append(before, other)
			}
		}
		s := standings[uid]
		if s.Asks != len(before) || !slices.Equal(s.First, before[:min(5, len(before))]) || s.InAll != len(popped) {
			return fmt.Errorf("%s: before it in its leaf are %v, not %d of %d: %v", uid, before, s.Asks, s.InAll, s.First)
		}
		ahead := s.Asks
		for _, l := range s.Levels {
			ahead += len(l.Before)
		}
		// A queue that became a parent returns its own asks first.
		if i == 0 && ahead > 0 && len(before) > 0 {
			return fmt.Errorf("%s is the first, and %d are before it", uid, ahead)
		}
		if i == 0 && ahead > 0 || i > 0 && ahead == 0 && leaves[uid] == leaves[popped[0]] {
			return fmt.Errorf("%s, at %d, has %d before it", uid, i, ahead)
		}
	}
	return nil
}

// flat is an index with two leaves. The asks of each are pushed with their application,
// priority and age in seconds.
func flat(t *testing.T) (push func(leaf, app, uid string, priority int32, age int) *order.Ask, x *order.Index) {
	t.Helper()
	r := newRunner(queuestest.MustTree(t, "root\n  a\n  b"), "")
	return func(leaf, app, uid string, priority int32, age int) *order.Ask {
		q, _ := r.m.draft.Find("root." + leaf)
		a := &modelAsk{
			app:     r.app(q.ID, app, epoch, order.Class{}),
			key:     order.AskKey{UID: uid, Priority: priority, Created: epoch.Add(-time.Duration(age) * time.Second)},
			request: queuestest.Vector("vcore=1"),
		}
		r.ask(a)
		return r.asks[a]
	}, r.index
}

// A standing examines a limited number of items and reports that there are more.
func TestStandingOfVeryMany(t *testing.T) {
	push, x := flat(t)
	var last *order.Ask
	for i := range 2000 {
		last = push("a", fmt.Sprint("app", i%100), fmt.Sprintf("ask%04d", i), 0, -i)
	}
	s := x.Standing(last)
	expect.That(t, s.More && s.Asks <= 300 && s.First == nil && s.InLeaf == 2000, "%+v", s)
}

func TestStandingByHand(t *testing.T) {
	push, x := flat(t)
	push("b", "other", "elsewhere", 9, 0)
	push("a", "one", "early", 0, 5)
	late := push("a", "one", "late", 0, 1)
	push("a", "two", "urgent", 1, 1)
	push("a", "two", "behind", 0, 9)
	want := order.Standing{
		In: true, Apps: 2, Asks: 2, First: []string{"urgent", "early"}, InLeaf: 4, InAll: 5,
		Levels: []order.Place{{Queue: 1, Before: []queues.ID{2}, Of: 2}},
	}
	expect.Same(t, "", want, x.Standing(late))
	x.Block(late.Group(), queues.Verdict{At: 1})
	expect.That(t, !x.Standing(late).In, "blocked, and in the order")
}

// MayBeAhead returns each leaf in which an ask may be ahead. It returns none if there is no such leaf,
// where no fence hides the priority of the other ask.
func TestMayBeAheadProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRunner(specs().Draw(t, "spec"), "")
		r.index.SetStrict(rapid.Bool().Draw(t, "strict"))
		due := map[queues.ID]resources.Vector{}
		var leaves []queues.ID
		fenced := false
		for q := range r.m.draft.All() {
			due[q.ID] = resources.VectorFrom(randomAmounts(t, 0, 2))
			used := due[q.ID].Add(resources.VectorFrom(randomAmounts(t, 0, 4)))
			r.index.SetUsed(q.ID, used, used)
			if len(q.Children) == 0 {
				leaves = append(leaves, q.ID)
			}
			fenced = fenced || q.Policies.PriorityFence
		}
		of := func(q queues.ID) resources.Vector { return due[q] }
		one := queuestest.Vector("vcore=1 memory=1 pods=1")
		p := r.index.PathOf(&order.AskInfo{Leaf: rapid.SampledFrom(leaves).Draw(t, "leaf"), Priority: math.MinInt32, Request: one})
		got, ahead := r.index.MayBeAhead(slices.Values(leaves), one, of, p), false
		for _, leaf := range leaves {
			if r.index.IsAhead(&order.AskInfo{Leaf: leaf, Priority: math.MaxInt32, Request: one, Later: of}, p) {
				ahead = true
				if !got[leaf] {
					t.Fatalf("an ask in queue %d is ahead, and may be in %v", leaf, got)
				}
			}
		}
		if !ahead && !fenced && len(got) > 0 {
			t.Fatalf("no ask is ahead, and one may be in %v", got)
		}
	})
}

// specs generates small trees with names and quotas that collide often: the names of
// siblings are prefixes of each other, amounts are a few units.
func specs() *rapid.Generator[*config.Spec] {
	return rapid.Custom(func(t *rapid.T) *config.Spec {
		root := &config.Queue{Settings: config.Settings{Name: "root", Properties: sortProperties(t)}}
		children(t, root, 1)
		spec, err := queuestest.Spec(root)
		if err != nil {
			t.Fatal(err)
		}
		return spec
	})
}

// children gives a queue children; root has one at least.
func children(t *rapid.T, n *config.Queue, depth int) {
	least := 0
	if depth == 1 {
		least = 1
	}
	for _, name := range []string{"a", "aa", "b"}[:rapid.IntRange(least, 3).Draw(t, "children")] {
		c := &config.Queue{Settings: config.Settings{Name: name}}
		if rapid.Bool().Draw(t, "guaranteed") {
			c.Guaranteed = resources.GuaranteeFrom(randomAmounts(t, 0, 4))
		}
		if rapid.Bool().Draw(t, "max") {
			c.Max = resources.LimitFrom(randomAmounts(t, 1, 8))
		}
		c.Properties = randomProperties(t)
		if depth < 3 && rapid.Bool().Draw(t, "parent") {
			c.Children = []*config.Queue{}
			children(t, c, depth+1)
		}
		n.Children = append(n.Children, c)
	}
}

func randomAmounts(t *rapid.T, least, most int64) map[string]resources.Amount {
	m := map[string]resources.Amount{}
	for _, name := range rapid.SampledFrom([][]string{{"vcore"}, {"memory"}, {"vcore", "memory"}, {"pods"}}).Draw(t, "types") {
		m[name] = resources.Amount(rapid.Int64Range(least, most).Draw(t, name))
	}
	return m
}

func sortProperties(t *rapid.T) map[string]string {
	p := map[string]string{}
	if rapid.Bool().Draw(t, "fair") {
		p["application.sort.policy"] = "fair"
	}
	if rapid.IntRange(0, 3).Draw(t, "unprioritised") == 0 {
		p["application.sort.priority"] = "disabled"
	}
	return p
}

func randomProperties(t *rapid.T) map[string]string {
	p := sortProperties(t)
	if rapid.IntRange(0, 3).Draw(t, "fenced") == 0 {
		p["priority.policy"] = "fence"
	}
	if rapid.Bool().Draw(t, "shifted") {
		p["priority.offset"] = strconv.Itoa(rapid.IntRange(-2, 2).Draw(t, "offset"))
	}
	return p
}
