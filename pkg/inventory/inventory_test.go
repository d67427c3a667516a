package inventory

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// truth is what there is outside: pods and nodes by name.
type truth struct {
	pods  map[string]objects.Pod
	nodes map[string]int
}

type move struct {
	what string
	i, n int
}

var whats = []string{"pod", "pod", "pod", "bind", "bind", "finish", "delete", "delete", "foreign", "node", "node", "node gone", "look"}

func moves() *rapid.Generator[[]move] {
	one := rapid.Custom(func(t *rapid.T) move {
		return move{rapid.SampledFrom(whats).Draw(t, "what"), rapid.IntRange(0, 9).Draw(t, "i"), rapid.IntRange(0, 3).Draw(t, "n")}
	})
	return rapid.SliceOfN(one, 1, 80)
}

func newStore() *store.Store {
	spec, err := queuestest.Tree("root\n  a\n  b")
	if err != nil {
		panic(err)
	}
	// Each pod has a slot: with fewer slots than pods, the ones that came first have them.
	s := store.New(spec, store.Options{Window: 10, MaxWindow: 10})
	s.Start(epoch)
	return s
}

// podOf is pod i: it always has the same application and queue, or none. Two have the same name.
func podOf(i, n int) objects.Pod {
	return objects.Pod{
		Identity: objects.Identity{
			UID: types.UID(fmt.Sprint("u", i)), Namespace: "ns", Name: fmt.Sprint("p", i%5), Created: epoch.Add(time.Duration(i/2) * time.Second),
			Labels: map[string]string{"applicationId": fmt.Sprint("app", i%3), "queue": []string{"root.a", "root.b", "root.missing"}[i%3]},
		},
		Spec:    objects.Spec{Priority: int32(n)},
		Request: resources.VectorOf(resources.Entry{Name: "pods", Amount: 1}, resources.Entry{Name: "vcore", Amount: resources.Amount(n)}),
	}
}

func (w *truth) do(m move, s *store.Store) {
	name, node := fmt.Sprint("u", m.i), fmt.Sprint("n", m.i%4)
	p, there := w.pods[name]
	switch {
	case m.what == "node":
		w.nodes[node] = m.n
		s.UpsertNode(node, podOf(0, m.n).Request, epoch)
		return
	case m.what == "node gone":
		delete(w.nodes, node)
		s.DeleteNode(node, epoch)
		return
	case m.what == "finish" && there:
		delete(w.pods, name)
		p.Terminal = true
		s.Upsert(p, epoch)
		return
	case m.what == "delete" && there:
		delete(w.pods, name)
		s.Delete(p.UID, epoch)
		return
	case m.what == "pod" && (!there || p.Node == ""):
		p = podOf(m.i, m.n)
	case m.what == "bind" && there && !p.Foreign:
		p.Node = fmt.Sprint("n", (m.i+m.n)%4)
	case m.what == "foreign" && !there:
		p = podOf(m.i, m.n)
		p.Foreign, p.Static, p.Node = true, m.n == 0, fmt.Sprint("n", m.n)
	default:
		return
	}
	w.pods[name] = p
	s.Upsert(p, epoch)
}

// fromScratch is the view of an inventory that sees only the end.
func (w *truth) fromScratch() *View {
	s := newStore()
	for i := range 4 {
		if n, known := w.nodes[fmt.Sprint("n", i)]; known {
			s.UpsertNode(fmt.Sprint("n", i), podOf(0, n).Request, epoch)
		}
	}
	for i := range 10 {
		if p, there := w.pods[fmt.Sprint("u", i)]; there {
			s.Upsert(p, epoch)
		}
	}
	return New(s).View()
}

// found compares the pod found by a name with the youngest of that name. No pod is found by its
// name in another namespace.
func (w *truth) found(inv *Inventory) error {
	for i := range 5 {
		want, got := types.UID(""), types.UID("")
		for _, at := range []int{i, i + 5} {
			if p, there := w.pods[fmt.Sprint("u", at)]; there {
				want = p.UID
			}
		}
		if p := inv.Find("ns", fmt.Sprint("p", i)); p != nil {
			got = p.UID
		}
		if got != want {
			return fmt.Errorf("pod %q is found as p%d, not %q", got, i, want)
		}
		if p := inv.Find("other", fmt.Sprint("p", i)); p != nil {
			return fmt.Errorf("pod %q is found in another namespace", p.UID)
		}
	}
	return nil
}

// sameView leaves out what depends on the way there.
var sameView = cmp.Options{
	cmpopts.EquateEmpty(),
	cmpopts.IgnoreFields(output.AppRecord{}, "Serial", "Submitted", "Accepted", "Running", "MostUsed", "Usage"),
	cmpopts.IgnoreFields(output.PodRecord{}, "App"),
	cmpopts.IgnoreUnexported(output.PodRecord{}),
	cmpopts.IgnoreUnexported(Pod{}),
	cmpopts.IgnoreFields(View{}, "Rest"),
	cmpopts.SortSlices(func(a, b *Application) bool { return a.ID < b.ID }),
}

// live makes moves, looks now and then, and compares at the end. Views that were
// taken before must be what they were.
func live(ms []move, bug string) error {
	s := newStore()
	w := truth{pods: map[string]objects.Pod{}, nodes: map[string]int{}}
	inv := New(faulty{s, bug})
	type kept struct {
		view *View
		text string
	}
	var before []kept
	for _, m := range ms {
		w.do(m, s)
		if m.what == "look" {
			v := inv.View()
			if inv.View() != v {
				return errors.New("looking again gives another view")
			}
			before = append(before, kept{v, textOf(v)})
			if err := errors.Join(inv.Check(), w.found(inv)); err != nil {
				return err
			}
			if diff := cmp.Diff(w.fromScratch(), v, sameView); diff != "" {
				return fmt.Errorf("the view differs (-truth +view)\n%s", diff)
			}
		}
	}
	if diff := cmp.Diff(w.fromScratch(), inv.View(), sameView); diff != "" {
		return fmt.Errorf("at the end the view differs (-truth +view)\n%s", diff)
	}
	for _, k := range before {
		if now := textOf(k.view); now != k.text {
			return fmt.Errorf("a view has changed from\n%s\nto\n%s", k.text, now)
		}
	}
	return s.Check()
}

func textOf(v *View) string {
	var out string
	for _, a := range v.Applications {
		out += fmt.Sprint(a.ID, a.Usage.Allocated, len(a.Allocations), len(a.Requests), "\n")
	}
	for _, n := range v.Nodes {
		out += fmt.Sprint(n.Name, n.Allocated, n.Occupied, n.Available(), len(n.Allocations), len(n.Foreign), "\n")
	}
	return out + fmt.Sprint(len(v.Unplaced))
}

type faulty struct {
	*store.Store
	bug string
}

func (f faulty) TakeChanges(limit int) output.Changes {
	c := f.Store.TakeChanges(limit)
	switch f.bug {
	case "pods stay":
		c.GonePods = nil
	case "applications stay":
		c.GoneApps = nil
	case "nodes stay":
		c.GoneNodes = nil
	case "pods are stuck":
		for _, p := range c.Pods {
			p.Node = ""
		}
	}
	return c
}

func TestViewIsTheTruth(t *testing.T) {
	expect.Law(t, moves(), func(ms []move) error { return live(ms, "") })
	for _, bug := range []string{"pods stay", "applications stay", "nodes stay", "pods are stuck"} {
		found := false
		for i := 0; i < 200 && !found; i++ {
			found = live(moves().Example(i), bug) != nil
		}
		expect.That(t, found, "the planted bug is not found: %s", bug)
	}
}

func TestLookingAgainIsFree(t *testing.T) {
	s := newStore()
	w := truth{pods: map[string]objects.Pod{}, nodes: map[string]int{}}
	for i := range 4 {
		w.do(move{"node", i, 3}, s)
	}
	for i := range 9 {
		w.do(move{"pod", i, i % 4}, s)
		w.do(move{"bind", i, 1}, s)
	}
	w.do(move{"foreign", 9, 2}, s)
	inv := New(s)
	before := inv.View()
	w.do(move{"delete", 9, 0}, s)
	after := inv.View()
	same := 0
	for i, n := range after.Nodes {
		if n == before.Nodes[i] {
			same++
		}
	}
	expect.Same(t, "nodes that were left as they were", 3, same)
	expect.That(t, after.Node("n1") != nil && after.Node("n1") == after.Nodes[1] &&
		after.Node("n7") == nil, "nodes are not found by name")
}

// told is a source that tells of everything at once.
type told struct {
	Source
	output.Changes
}

func (s told) TakeChanges(int) output.Changes { return s.Changes }

// TestPodsOfHoldsAreKnown: those of other nodes too, because a hold also waits for pods that leave
// its full queue elsewhere.
func TestPodsOfHoldsAreKnown(t *testing.T) {
	var c output.Changes
	for name, node := range map[types.UID]string{"asker": "", "victim": "n1", "leaves": "n1", "elsewhere": "n2", "stays": "n1"} {
		c.Pods = append(c.Pods, &output.PodRecord{Pod: &objects.Pod{Identity: objects.Identity{UID: name}}, Node: node})
	}
	ledger := reservations.NewLedger()
	expect.OK(t, ledger.Place(reservations.Hold{
		Asker: "asker", Node: "n1", Since: epoch, Chosen: []types.UID{"gone", "victim"},
		Awaited: []types.UID{"elsewhere", "leaves"},
	}))
	c.Rest = &output.Rest{Holds: ledger.View()}
	known := slices.Sorted(maps.Keys(New(told{Changes: c}).View().InHolds))
	expect.Same(t, "pods", []types.UID{"asker", "elsewhere", "leaves", "victim"}, known)
}

func TestCheckFindsDisorder(t *testing.T) {
	for name, disturb := range map[string]func(*Inventory, *Pod){
		"a place of another":       func(_ *Inventory, p *Pod) { p.inApp++ },
		"a place on the node":      func(_ *Inventory, p *Pod) { p.inNode++ },
		"missing on its node":      func(i *Inventory, p *Pod) { i.nodes.by[p.Node].pods.remove(p) },
		"twice in its application": func(i *Inventory, p *Pod) { i.apps.by[p.App].pods.add(p) },
		"no application":           func(i *Inventory, p *Pod) { delete(i.apps.by, p.App) },
		"no node":                  func(i *Inventory, p *Pod) { delete(i.nodes.by, p.Node) },
		"another's number":         func(i *Inventory, p *Pod) { i.pods["u7"] = p },
	} {
		s := newStore()
		w := truth{pods: map[string]objects.Pod{}, nodes: map[string]int{}}
		for i := range 9 {
			w.do(move{"pod", i, 1}, s)
			w.do(move{"bind", i, 1}, s)
		}
		inv := New(s)
		inv.View()
		expect.OK(t, inv.Check())
		disturb(inv, inv.Find("ns", "p0"))
		expect.That(t, inv.Check() != nil, "%s: not found", name)
	}
}

// TestUnknownPodIsNotRemoved: removing an unknown pod must not remove its neighbour.
func TestUnknownPodIsNotRemoved(t *testing.T) {
	m, a, b, stranger := members{place: inApp}, &Pod{}, &Pod{}, &Pod{inApp: 7}
	m.add(a)
	m.add(b)
	m.remove(a)
	m.remove(a)
	m.remove(stranger)
	expect.That(t, len(m.list) == 1 && m.has(b), "%d are left, want the one that stayed", len(m.list))
}

// TestManyReadersOneWriter is for the race detector, and for views that go
// back in time or mix two moments: a pod that is on a node is in its application.
func TestManyReadersOneWriter(t *testing.T) {
	s := newStore()
	inv := New(s)
	w := truth{pods: map[string]objects.Pod{}, nodes: map[string]int{}}
	for i := range 4 {
		w.do(move{"node", i, 3}, s)
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			before := resources.Amount(0)
			for {
				v := inv.View()
				now := v.Node("n0").Allocatable.Get("vcore")
				if now < before {
					t.Errorf("a node that grows offers %d after %d", now, before)
					return
				}
				before = now
				if err := consistent(v); err != nil {
					t.Error(err)
					return
				}
				inv.Whys(v.Unplaced)
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for n := range 2000 {
		i := n % 10
		w.do(move{[]string{"pod", "bind", "delete"}[n/10%3], i, n % 3}, s)
		w.do(move{"node", 0, 3 + n}, s)
	}
	close(stop)
	readers.Wait()
	inv.View()
	expect.Holds(t, inv.Check())
}

func TestInconsistentViewsAreNoticed(t *testing.T) {
	s := newStore()
	w := truth{pods: map[string]objects.Pod{}, nodes: map[string]int{}}
	w.do(move{"node", 1, 3}, s)
	w.do(move{"pod", 0, 1}, s)
	w.do(move{"bind", 0, 1}, s)
	expect.That(t, consistent(New(faulty{s, "pods are stuck"}).View()) != nil,
		"a pod that runs for its queue and waits for its application is not noticed")
}

// consistent holds what a view says in several places against each other.
func consistent(v *View) error {
	onNodes, inApps := 0, 0
	for _, n := range v.Nodes {
		onNodes += len(n.Allocations)
	}
	var used, pending int64
	for _, a := range v.Applications {
		inApps += len(a.Allocations)
		used += int64(a.Usage.Allocated.Get("vcore"))
		pending += int64(len(a.Requests))
	}
	root := v.Queues.Root()
	if onNodes != inApps || int(root.Allocated.Get(resources.Pods)) != inApps || used != int64(root.Allocated.Get("vcore")) || pending != int64(root.Pending.Get("pods")) {
		return fmt.Errorf("%d pods on nodes, %d in applications; they use %d of root's %v, and %d of its %v wait",
			onNodes, inApps, used, root.Allocated, pending, root.Pending)
	}
	return nil
}

// TestUsageIsATenthOfTheAllocatable: the usage of a node is a number from 0 to 9; an
// exact tenth belongs to the lower one.
func TestUsageIsATenthOfTheAllocatable(t *testing.T) {
	tenth := func(used, most int64) int {
		var n Node
		n.Allocated = queuestest.Vector(fmt.Sprint("pods=", used))
		n.Allocatable = queuestest.Vector(fmt.Sprint("pods=", most))
		by := (&View{Nodes: []*Node{&n}}).Tenths()["pods"]
		return slices.IndexFunc(by[:], func(names []string) bool { return len(names) > 0 })
	}
	for used, want := range map[int64]int{-1: 0, 0: 0, 10: 0, 11: 1, 20: 1, 21: 2, 90: 8, 91: 9, 100: 9, 200: 9} {
		expect.Same(t, fmt.Sprintf("tenth of %d of 100", used), want, tenth(used, 100))
	}
	expect.Same(t, "tenth of all of the largest amount", 9, tenth(math.MaxInt64, math.MaxInt64))
}
