package forecast

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// The files in testdata have these commands:
//
//	books      what was recorded: a line "nodes T=N ..." and one line a queue that uses or
//	           awaits something: PATH T=N ... [pending T=N ...] [dynamic [max.T=N guaranteed.T=N ...]]
//	           [draining]; what queues below it use is added to what a queue uses
//	forecast   the queues as in queuestest.Tree, with "no preemption" in front where it is
//	           off: everything that is expected of the books with them
//	change     two trees with a line ==== between them: the comparison of the forecasts
func TestForecast(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var b Books
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "books":
				b = books(t, d.Input)
				return ""
			case "forecast":
				return show(forecast(t, b, tree(t, d.Input)))
			case "change":
				first, second, _ := strings.Cut(d.Input, "====\n")
				before, after := tree(t, first), tree(t, second)
				c := Compare(forecast(t, b, before), forecast(t, b, before, after))
				return show(c) + fmt.Sprintf("worse: %v\n", c.Worse())
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

func tree(t *testing.T, text string) *config.Spec {
	t.Helper()
	text, off := strings.CutPrefix(text, "no preemption\n")
	spec := queuestest.MustTree(t, text)
	spec.PreemptionEnabled = !off
	return spec
}

// forecast judges the tree that the books have after the last specification.
func forecast(t *testing.T, b Books, specs ...*config.Spec) Forecast {
	t.Helper()
	s, _, err := b.Under(specs[0], specs[1:]...)
	expect.OK(t, err)
	return Of(s, specs[len(specs)-1].PreemptionEnabled)
}

func books(t *testing.T, text string) Books {
	t.Helper()
	var b Books
	entries := map[string]*Entry{}
	for line := range strings.SplitSeq(text, "\n") {
		words := strings.Fields(line)
		if words[0] == "nodes" {
			b.Capacity = queuestest.Vector(strings.Join(words[1:], " "))
			continue
		}
		e := entry(t, words)
		segments := strings.Split(e.Path, ".")
		for n := range segments {
			path := strings.Join(segments[:n+1], ".")
			if entries[path] == nil {
				entries[path] = &Entry{Path: path, Managed: e.Managed}
			}
			entries[path].Allocated = entries[path].Allocated.Add(e.Allocated)
			entries[path].Pending = entries[path].Pending.Add(e.Pending)
		}
		own := entries[e.Path]
		own.Leaf, own.Managed, own.Draining, own.Guaranteed, own.Max = true, e.Managed, e.Draining, e.Guaranteed, e.Max
	}
	for _, e := range entries {
		b.Entries = append(b.Entries, *e)
	}
	slices.SortFunc(b.Entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return b
}

func entry(t *testing.T, words []string) Entry {
	t.Helper()
	e := Entry{Path: words[0], Managed: true}
	amounts, quotas := &e.Allocated, "root"
	for _, w := range words[1:] {
		switch {
		case w == "pending":
			amounts = &e.Pending
		case w == "dynamic":
			e.Managed = false
		case w == "draining":
			e.Draining = true
		case strings.HasPrefix(w, "max."), strings.HasPrefix(w, "guaranteed."):
			quotas += " " + w
		default:
			*amounts = amounts.Add(queuestest.Vector(w))
		}
	}
	root := queuestest.MustTree(t, quotas).Root
	e.Guaranteed, e.Max = root.Guaranteed, root.Max
	return e
}

func show(f Forecast) string {
	var b strings.Builder
	line := func(status Status, finding fmt.Stringer) {
		if status != "" {
			fmt.Fprintf(&b, "[%s] ", status)
		}
		fmt.Fprintln(&b, finding)
	}
	for _, o := range f.OverMax {
		line(o.Status, o)
	}
	for _, u := range f.Unmet {
		line(u.Status, u)
	}
	for _, s := range f.Stranded {
		line(s.Status, s)
	}
	for _, l := range f.Losers {
		line(l.Status, l)
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

func TestBooksThatAreNone(t *testing.T) {
	spec := queuestest.MustTree(t, "root\n  a\n")
	for _, path := range []string{"", "a", "other.a", "root.", "root..b", "root.a."} {
		_, _, err := (Books{Entries: []Entry{{Path: path}}}).Under(spec)
		expect.That(t, err != nil, "%q is taken for a queue", path)
	}
}

func TestBooksOfAnotherConfigurationAreNoticed(t *testing.T) {
	b := books(t, `root.a vcore=1
root.b.c vcore=1
root.d vcore=1 dynamic
root.e vcore=1 draining
root.f vcore=1 max.vcore=2 guaranteed.vcore=1
root.g vcore=1 max.vcore=2
root.h vcore=1 guaranteed.vcore=2`)
	spec := queuestest.MustTree(t, `root
  a
  f max.vcore=2 guaranteed.vcore=1
  g max.vcore=3
  h
`)
	_, other, err := b.Under(spec)
	expect.OK(t, err)
	expect.Same(t, "not as in the configuration", []string{"root.b", "root.b.c", "root.g", "root.h"}, other)
}

var kinds = []string{"memory", "vcore"}

type pod struct {
	leaf    string
	request [2]int64 // by kind
	waits   bool
}

type situation struct {
	root *config.Queue
	pods []pod
}

func situations() *rapid.Generator[situation] {
	return rapid.Custom(func(t *rapid.T) situation {
		s := situation{root: &config.Queue{Settings: config.Settings{Name: "root"}}}
		grow(t, s.root, 1)
		var leaves []string
		for q := range s.spec().Root.All() {
			if q.Leaf {
				leaves = append(leaves, q.Path)
			}
		}
		for range rapid.IntRange(2, 14).Draw(t, "pods") {
			p := pod{leaf: rapid.SampledFrom(leaves).Draw(t, "leaf"), waits: rapid.IntRange(0, 3).Draw(t, "waits") == 0}
			for k := range p.request {
				p.request[k] = rapid.Int64Range(0, 3).Draw(t, "request")
			}
			s.pods = append(s.pods, p)
		}
		return s
	})
}

func grow(t *rapid.T, parent *config.Queue, depth int) {
	least := 0
	if depth == 1 {
		least = 2
	}
	for i := range rapid.IntRange(least, 3).Draw(t, "children") {
		n := &config.Queue{Settings: config.Settings{Name: string(rune('a' + i)), Properties: map[string]string{}}}
		guaranteed, most := map[string]resources.Amount{}, map[string]resources.Amount{}
		for _, kind := range kinds {
			if rapid.Bool().Draw(t, "guaranteed") {
				guaranteed[kind] = resources.Amount(rapid.Int64Range(0, 5).Draw(t, "guaranteed amount"))
			}
			if rapid.IntRange(0, 4).Draw(t, "limited") == 0 {
				most[kind] = resources.Amount(rapid.Int64Range(0, 6).Draw(t, "max amount"))
			}
		}
		n.Guaranteed, n.Max = resources.GuaranteeFrom(guaranteed), resources.LimitFrom(most)
		if policy := rapid.SampledFrom([]string{"", "", "", "fence", "disabled"}).Draw(t, "policy"); policy != "" {
			n.Properties["preemption.policy"] = policy
		}
		if depth < 3 && rapid.Bool().Draw(t, "deeper") {
			grow(t, n, depth+1)
		}
		parent.Children = append(parent.Children, n)
	}
}

func (s situation) spec() *config.Spec {
	spec, err := queuestest.Spec(s.root)
	if err != nil {
		panic(err) // nothing else is generated
	}
	return spec
}

func (s situation) tree() *queues.Snapshot {
	d := queues.NewDraftFrom(s.spec())
	for _, p := range s.pods {
		q, _ := d.Find(p.leaf)
		d.Update(q.ID, func(u *queues.Usage) {
			if p.waits {
				u.Pending = u.Pending.Add(p.vector())
			} else {
				u.Allocated = u.Allocated.Add(p.vector())
			}
		})
	}
	return d.Publish(nil)
}

func (p pod) vector() resources.Vector {
	m := map[string]resources.Amount{}
	for k, kind := range kinds {
		m[kind] = resources.Amount(p.request[k])
	}
	return resources.VectorFrom(m)
}

// TestLosersAreThoseOfTheLaws compares with the laws read pair by pair. It notices forecasts
// that do not see a part of the configuration.
func TestLosersAreThoseOfTheLaws(t *testing.T) {
	law := func(forget func(*config.Queue)) func(situation) error {
		return func(s situation) error {
			want := byLaw(s.tree())
			s.root = without(s.root, forget)
			f, again := Of(s.tree(), true), Of(s.tree(), true)
			if diff := cmp.Diff(want, pairs(f)) + cmp.Diff(f, again); diff != "" {
				return fmt.Errorf("by law (-) and forecast (+), or twice the same:\n%s", diff)
			}
			return nil
		}
	}
	expect.Law(t, situations(), law(func(*config.Queue) {}))
	policy := func(name string) func(*config.Queue) {
		return func(n *config.Queue) {
			if n.Properties["preemption.policy"] == name {
				delete(n.Properties, "preemption.policy")
			}
		}
	}
	for name, forget := range map[string]func(*config.Queue){
		"fences":                policy("fence"),
		"protection":            policy("disabled"),
		"guarantees":            func(n *config.Queue) { n.Guaranteed = resources.Guarantee{} },
		"guarantees of leaves":  func(n *config.Queue) { forgetIf(n, len(n.Children) == 0) },
		"guarantees of parents": func(n *config.Queue) { forgetIf(n, len(n.Children) > 0) },
		"max of leaves":         func(n *config.Queue) { n.Max = resources.Limit{} },
	} {
		t.Run(name, func(t *testing.T) { expect.Broken(t, situations(), law(forget)) })
	}
}

func forgetIf(n *config.Queue, is bool) {
	if is {
		n.Guaranteed = resources.Guarantee{}
	}
}

func without(n *config.Queue, forget func(*config.Queue)) *config.Queue {
	c := *n
	c.Properties = maps.Clone(n.Properties)
	forget(&c)
	c.Children = nil
	for _, child := range n.Children {
		c.Children = append(c.Children, without(child, forget))
	}
	return &c
}

func pairs(f Forecast) []string {
	out := []string{}
	for _, l := range f.Losers {
		for _, a := range l.Askers {
			out = append(out, fmt.Sprintf("%s loses %s, at most %d, to %s, waits %v", l.Queue, l.Type, l.AtMost, a.Queue, a.Waits))
		}
		if l.More > 0 {
			out = append(out, fmt.Sprintf("%s loses to %d more", l.Queue, l.More))
		}
	}
	slices.Sort(out)
	return out
}

// byLaw is the same, by the wording of the laws for each pair of leaves.
func byLaw(tree *queues.Snapshot) []string {
	out := []string{}
	for loser := range tree.All() {
		for _, kind := range kinds {
			most := resources.Amount(0) // the largest that any of its askers may take
			var askers []*queues.Queue
			for asker := range tree.All() {
				if take := mayTake(tree, asker, loser, kind); take > 0 {
					most = max(most, take)
					askers = append(askers, asker)
				}
			}
			for _, asker := range askers {
				out = append(out, fmt.Sprintf("%s loses %s, at most %d, to %s, waits %v",
					loser.Path, kind, most, asker.Path, asker.Pending.Get(kind) > 0))
			}
		}
	}
	slices.Sort(out)
	return out
}

func mayTake(tree *queues.Snapshot, asker, loser *queues.Queue, kind string) resources.Amount {
	if !asker.Leaf || !loser.Leaf || asker == loser || loser.Policies.Preemption == config.PreemptionDisabled {
		return 0
	}
	if most, limited := asker.Max.Get(kind); limited && asker.Allocated.Get(kind) >= most {
		return 0
	}
	guarantees := false
	for q := range tree.Ancestors(asker.ID) {
		if above(q, loser) {
			break
		}
		if q.Policies.Preemption == config.PreemptionFence {
			return 0 // law 7
		}
		if g, named := q.Guaranteed.Get(kind); named {
			guarantees = true
			if q.Allocated.Get(kind) >= g {
				return 0 // law 4
			}
		}
	}
	if !guarantees {
		return 0 // law 4
	}
	take := loser.Allocated.Get(kind)
	for q := range tree.Ancestors(loser.ID) {
		if above(q, asker) {
			break
		}
		g, _ := q.Guaranteed.Get(kind)
		take = min(take, q.Allocated.Get(kind)-g) // laws 2 and 5
	}
	return take
}

func above(q, other *queues.Queue) bool { return strings.HasPrefix(other.Path, q.Path+".") }

// TestVictimsOfPlansWereForecast lets the planner make room for every pod that waits, and
// looks the victims up. It notices a forecast without losers.
func TestVictimsOfPlansWereForecast(t *testing.T) {
	checked, least := 0, 20
	if testing.Short() {
		least = 4 // there are a fifth of the checks
	}
	law := func(of func(tree *queues.Snapshot) Forecast) func([]situation) error {
		return func(all []situation) error {
			for _, s := range all {
				tree := s.tree()
				for i, p := range s.pods {
					if !p.waits {
						continue
					}
					n, err := checkPlan(s, tree, i, of(tree))
					if checked += n; err != nil {
						return err
					}
				}
			}
			return nil
		}
	}
	several := rapid.SliceOfN(situations(), 10, 10)
	expect.Law(t, several, law(func(tree *queues.Snapshot) Forecast { return Of(tree, true) }))
	expect.That(t, checked >= least, "only %d victims were looked up", checked)
	expect.Broken(t, several, law(func(*queues.Snapshot) Forecast { return Forecast{} }))
}

// checkPlan makes a plan for a pod that waits, on a node that is full, and
// returns how many victims it looked up.
func checkPlan(s situation, tree *queues.Snapshot, waiting int, f Forecast) (checked int, err error) {
	asker := s.pods[waiting]
	w := &planner.Snapshot{Types: kinds, Queues: tree}
	var running []*planner.Pod
	for i, p := range s.pods {
		if !p.waits {
			name := strconv.Itoa(i)
			running = append(running, &planner.Pod{UID: name, Name: name, Leaf: idOf(tree, p.leaf), App: name, Request: p.request[:]})
		}
	}
	w.Nodes = []*planner.Node{planner.NewNode("n", planner.Amounts{100, 100}, planner.Amounts{0, 0}, running)}
	ask := &planner.Ask{UID: "asker", Name: "asker", Leaf: idOf(tree, asker.leaf), App: "asker", Request: asker.request[:], Priority: 100}
	d := search.Plan(w, ask, planner.Params{})
	for _, v := range d.Victims {
		i, _ := strconv.Atoi(v.UID)
		of := s.pods[i]
		for k, kind := range kinds {
			if of.request[k] == 0 || !slices.Contains(d.Contested, kind) || !mayAskBySide(tree, asker.leaf, of.leaf, kind) {
				continue // the type the asker is short of is another one
			}
			checked++
			if !told(f, of.leaf, kind, asker.leaf) {
				return checked, fmt.Errorf("a plan takes %s from %s for %s, which was not forecast", kind, of.leaf, asker.leaf)
			}
		}
	}
	return checked, nil
}

func idOf(tree *queues.Snapshot, path string) queues.ID {
	q, _ := tree.Find(path)
	return q.ID
}

// mayAskBySide tells whether a queue of the asker's side guarantees the type.
func mayAskBySide(tree *queues.Snapshot, asker, loser, kind string) bool {
	other, _ := tree.Find(loser)
	for q := range tree.Ancestors(idOf(tree, asker)) {
		if above(q, other) {
			return false
		}
		if _, named := q.Guaranteed.Get(kind); named {
			return true
		}
	}
	return false
}

func told(f Forecast, loser, kind, asker string) bool {
	return slices.ContainsFunc(f.Losers, func(l Loser) bool {
		return l.Queue == loser && l.Type == kind && (l.More > 0 ||
			slices.ContainsFunc(l.Askers, func(a Asker) bool { return a.Queue == asker && a.Waits }))
	})
}
