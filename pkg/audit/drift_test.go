package audit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// land is an API server, and a store that is told of it; some of it late, or never.
type land struct {
	*Drift
	store *store.Store

	mu      sync.Mutex // guards the rest
	pods    map[string]*corev1.Pod
	nodes   map[string]*corev1.Node
	deaf    bool // the store is not told
	version int
	counted []Kind
	looks   atomic.Int32 // at all pods
	reads   atomic.Int32
}

var options = informer.Options{ManagedProfiles: []string{"yunikorn"}}

// Pods and what follows make it a Truth.
func (l *land) Pods() []*corev1.Pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks.Add(1)
	return slices.Collect(maps.Values(l.pods))
}

func (l *land) Nodes() []*corev1.Node {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.nodes))
}

func (l *land) Read(pod *corev1.Pod) (objects.Pod, bool) {
	if pod.Spec.NodeName == "" && !options.Managed(pod) {
		return objects.Pod{}, false
	}
	l.reads.Add(1)
	return options.Translate(pod), true
}

func running(p *corev1.Pod) { p.Spec.NodeName = "n1" }

func newLand(t *testing.T) *land {
	l := &land{pods: map[string]*corev1.Pod{}, nodes: map[string]*corev1.Node{}}
	l.store = store.New(queuestest.MustTree(t, "root\n  a\n  b"), store.Options{})
	l.store.Start(time.Now())
	l.Drift = &Drift{
		Inventory: inventory.New(l.store), Truth: l, Clock: clock.RealClock{}, Logger: ktesting.NewLogger(t, ktesting.NewConfig()),
		Count: func(kind Kind) { l.counted = append(l.counted, kind) },
	}
	l.node("n1", "8", false)
	for i := range 3 {
		l.pod(fmt.Sprint("p", i), running)
	}
	l.pod("pending", nil)
	l.pod("foreign", func(p *corev1.Pod) { p.Spec.NodeName, p.Spec.SchedulerName = "n1", "default-scheduler" })
	l.pod("elsewhere", func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" })
	l.pod("done", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodSucceeded })
	return l
}

// onLand runs a test with a clock of its own.
func onLand(t *testing.T, test func(t *testing.T, l *land)) {
	synctest.Test(t, func(t *testing.T) { test(t, newLand(t)) })
}

func (l *land) nextVersion() string {
	l.version++
	return fmt.Sprint(l.version)
}

// pod adds or changes a pod, and tells the store.
func (l *land) pod(name string, change func(*corev1.Pod)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(began),
			Labels: map[string]string{placement.KeyQueue: "root.a", placement.KeyApplicationID: "app"},
		},
		Spec: corev1.PodSpec{SchedulerName: "yunikorn", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}}}},
	}
	if old := l.pods[name]; old != nil {
		p = old.DeepCopy()
	}
	if change != nil {
		change(p)
	}
	p.ResourceVersion = l.nextVersion()
	l.pods[name] = p
	if told, ok := l.Read(p); ok && !l.deaf {
		l.store.Upsert(told, time.Now())
	}
}

func (l *land) node(name, cpu string, cordoned bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: l.nextVersion()}, Spec: corev1.NodeSpec{Unschedulable: cordoned}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	l.nodes[name] = n
	if !l.deaf {
		l.store.UpsertNode(name, informer.Allocatable(n), time.Now())
		l.store.SetNodeSchedulable(name, !cordoned, time.Now())
	}
}

func (l *land) remove(pod string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pods, pod)
	if !l.deaf {
		l.store.Delete(types.UID(pod), time.Now())
	}
}

func (l *land) notTold(do func()) {
	l.deaf = true
	do()
	l.deaf = false
}

func TestNoDrift(t *testing.T) {
	onLand(t, func(t *testing.T, l *land) {
		l.store.Assume("pending", "n1", store.NoSnapshot, time.Now())
		for i := range 600 {
			l.pod(fmt.Sprint("q", i), nil)
		}
		l.Round()
		expect.Holds(t, l.Check())
		expect.That(t, len(l.counted) == 0 && l.looks.Load() == 1, "%v, %d looks", l.counted, l.looks.Load())
	})
}

// TestDriftIsFound: each way in which the books can be wrong, with bugs planted in what
// feeds the store, or in the store.
func TestDriftIsFound(t *testing.T) {
	for _, c := range []struct {
		name string
		bug  func(*land)
		kind Kind
		says string
	}{
		{"a pod is not known", func(l *land) { l.pod("new", running) }, Pod, "pod ns/new: the store does not know it"},
		{"a pending pod is not known", func(l *land) { l.pod("new", nil) }, Pod, "pod ns/new: the store does not know it"},
		{"a pod is gone", func(l *land) { l.remove("p1") }, Pod, "pod ns/p1: it is gone, and the store has it still"},
		{"a pod has ended", func(l *land) { l.pod("p1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }) }, Pod, "pod ns/p1: it has ended, and the store has it still"},
		{"a pod runs", func(l *land) { l.pod("pending", running) }, Pod, "pod ns/pending: it runs on node n1, the store says none"},
		{"a pod was resized", func(l *land) {
			l.pod("p1", func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
			})
		}, Pod, "pod ns/p1: it requests pods=1 vcore=2000, the store charges pods=1 vcore=1000"},
		{"a priority", func(l *land) { l.pod("p1", func(p *corev1.Pod) { p.Spec.Priority = new(int32(5)) }) }, Pod, "its priority is 5, the store says 0"},
		{"a pod leaves", func(l *land) {
			l.pod("p1", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: began} })
		}, Pod, "being deleted is true, the store says false"},
		{"a foreign pod is not known", func(l *land) {
			l.pod("f2", func(p *corev1.Pod) { p.Spec.NodeName, p.Spec.SchedulerName = "n1", "other" })
		}, Pod, "pod ns/f2: the store does not know it"},
		{"a node is not known", func(l *land) { l.node("n2", "4", false) }, Node, "node n2: the store does not know it"},
		{"a node is gone", func(l *land) { delete(l.nodes, "n1") }, Node, "node n1: it is gone, and the store has it still"},
		{"a node grew", func(l *land) { l.node("n1", "9", false) }, Node, "node n1: it offers vcore=9000, the store says vcore=8000"},
		{"a node is cordoned", func(l *land) { l.node("n1", "8", true) }, Node, "node n1: schedulable is false, the store says true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			onLand(t, func(t *testing.T, l *land) {
				l.Round()
				expect.OK(t, l.Check()) // all agree before
				l.notTold(func() { c.bug(l) })
				l.Round()
				expect.Holds(t, l.Check()) // an event may be late
				l.Round()
				l.Round()
				expect.Fails(t, l.Check(), c.says)
				expect.Same(t, "counted, once is enough", []Kind{c.kind}, l.counted)
			})
		})
	}
}

// TestWhatAgreedIsNotComparedAgain until the pod changes, or what the store says of it.
func TestWhatAgreedIsNotComparedAgain(t *testing.T) {
	onLand(t, func(t *testing.T, l *land) {
		look := func(want int32) {
			t.Helper()
			l.reads.Store(0)
			l.Round()
			expect.Holds(t, errors.Join(l.Now(), l.Check()))
			expect.Same(t, "compared pods", want, l.reads.Load())
		}
		look(int32(len(l.pods)) - 2) // all but one that has ended, and one that is none of ours
		look(0)
		l.pod("p1", func(p *corev1.Pod) { p.Labels["x"] = "1" })
		l.store.Assume("pending", "n1", store.NoSnapshot, time.Now())
		l.remove("p2")
		look(2)
		l.notTold(func() { l.pod("p1", func(p *corev1.Pod) { p.Spec.Priority = new(int32(5)) }) })
		expect.Holds(t, l.Now())
		for range 2 { // what differs is not kept for the same
			expect.That(t, l.Now() != nil, "what the store was not told of is not found")
		}
	})
}

func TestBooksOfAQueueAreAddedUp(t *testing.T) {
	onLand(t, func(t *testing.T, l *land) {
		l.Inventory = inventory.New(bent{l.store, miscounted(func(u *queues.Usage) {
			u.Allocated = u.Allocated.Sub(queuestest.Vector("vcore=1"))
		})})
		l.Round()
		l.Round()
		expect.Fails(t, l.Check(), "quota root.a: what it is charged with, less what its pods use, is vcore=-1000, not 0")
		expect.Same(t, "counted, root.a and root", []Kind{Quota, Quota}, l.counted)
	})
}

// TestLateEventsAreNoDrift: what comes right before the second look, or goes on
// changing, is not counted.
func TestLateEventsAreNoDrift(t *testing.T) {
	onLand(t, func(t *testing.T, l *land) {
		l.notTold(func() {
			l.pod("late", nil)
			l.pod("p1", func(p *corev1.Pod) { p.Labels["x"] = "1"; p.Spec.Priority = new(int32(1)) })
		})
		l.Round()
		l.pod("late", nil) // the event arrives
		l.notTold(func() { l.pod("p1", func(p *corev1.Pod) { p.Labels["x"] = "2" }) })
		l.Round()
		err := l.Check()
		expect.That(t, err == nil && len(l.counted) == 0, "%v, counted %v", err, l.counted)
		// A pod without an event is found when it stays as it is.
		l.Round()
		expect.Fails(t, l.Check(), "pod ns/p1")
		expect.Same(t, "counted", []Kind{Pod}, l.counted)
	})
}

// TestNowForgivesLateEvents: pods that come, change and go with late events, and one that goes
// on changing. What stays is found.
func TestNowForgivesLateEvents(t *testing.T) {
	onLand(t, func(t *testing.T, l *land) {
		important := func(p *corev1.Pod) { p.Spec.Priority = new(int32(1)) }
		l.notTold(func() {
			l.pod("late", nil)
			l.pod("p1", important)
			l.pod("p2", important)
			l.remove("p0")
		})
		expect.Holds(t, l.Now())
		time.Sleep(time.Second)
		l.pod("late", nil) // the events arrive
		l.pod("p1", nil)
		l.remove("p0")
		l.notTold(func() { l.pod("p2", func(p *corev1.Pod) { p.Labels["x"] = "2" }) })
		expect.Holds(t, l.Now())
		l.notTold(func() { l.pod("new", nil); l.remove("p1") })
		_ = l.Now() // of p2
		since := " (since " + time.Now().UTC().Format(time.RFC3339) + "); "
		want := "pod ns/new: the store does not know it" + since + "pod ns/p1: it is gone, and the store has it still" + since +
			"pod ns/p2: its priority is 1, the store says 0" + since + mendBooks
		time.Sleep(time.Second)
		expect.Same(t, "what stays as it is", want, fmt.Sprint(l.Now()))
		expect.Holds(t, l.Check())
		expect.That(t, len(l.counted) == 0, "a call of Now makes a round: %v", l.counted)
	})
}

// TestDriftThatEndedIsNotShown is not shown any more; many are cut short.
func TestDriftThatEndedIsNotShown(t *testing.T) {
	onLand(t, func(t *testing.T, l *land) {
		l.notTold(func() {
			for i := range 7 {
				l.pod(fmt.Sprint("x", i), nil)
			}
		})
		l.Round()
		l.Round()
		got := fmt.Sprint(l.Check())
		expect.That(t, strings.Contains(got, "x4: ") && !strings.Contains(got, "x5: "), "%s", got)
		expect.That(t, strings.HasSuffix(got, "; and 2 more; "+mendBooks), "%s", got)
		for i := range 7 {
			l.pod(fmt.Sprint("x", i), nil)
		}
		l.Round()
		err := l.Check()
		expect.That(t, err == nil && len(l.counted) == 7, "%v, counted %v", err, l.counted)
	})
}

// TestRunGoesOn: round after round until the context ends; nothing before the store has started.
func TestRunGoesOn(t *testing.T) {
	onLand(t, func(t *testing.T, l *land) {
		early := &Drift{Inventory: inventory.New(store.New(queuestest.MustTree(t, "root\n  a"), store.Options{})), Truth: l, Clock: l.Clock, Logger: l.Logger}
		early.Round()
		expect.That(t, l.looks.Load() == 0, "%d looks before the start", l.looks.Load())
		go l.Run(t.Context())
		time.Sleep(3*lookInterval + time.Second)
		err := l.Check()
		expect.That(t, err == nil && l.looks.Load() == 3, "%v, %d looks", err, l.looks.Load())
	})
}

// office is a store with pods of users, in queues that limit them.
func office(t *testing.T) *store.Store {
	s := store.New(queuestest.MustTree(t, "root limit=*;max.vcore=90\n  a\n  b"), store.Options{})
	s.Start(began)
	for i := range 9 {
		p := objects.Pod{
			Identity: objects.Identity{
				UID: types.UID(fmt.Sprint(i)), Namespace: "ns", Name: fmt.Sprint("p", i), Created: began,
				Labels: map[string]string{placement.KeyQueue: []string{"root.a", "root.b"}[i%2], placement.KeyApplicationID: fmt.Sprint("app", i%4)},
			},
			Request: queuestest.Vector("vcore=1 pods=1"),
		}
		if i < 4 {
			p.Node = "n1"
		}
		s.Upsert(p, began)
	}
	s.UpsertNode("n1", queuestest.Vector("vcore=4 pods=9"), began)
	return s
}

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestBooksThatAreRight(t *testing.T) {
	s := office(t)
	_, all := s.OwnersUse(nil)
	expect.That(t, all > 0, "no user is charged: nothing is shown")
	books := &Books{Inventory: inventory.New(s), Owners: s.OwnersUse}
	for _, change := range []func(){
		func() {},
		func() {
			s.Assume("5", "n1", store.NoSnapshot, began)
			s.NoNode("4", "", reasons.Brief(reasons.NoNodeFits), began)
		},
		func() { s.Delete("0", began); s.Delete("8", began.Add(time.Second)) },
	} {
		change()
		expect.Holds(t, books.Check())
	}
}

// bent is a store that says something else than what it has.
type bent struct {
	*store.Store
	bend func(*output.Changes)
}

func (b bent) TakeChanges(limit int) output.Changes {
	c := b.Store.TakeChanges(limit)
	b.bend(&c)
	return c
}

// miscounted changes the charge of root.a and of the queues above it.
func miscounted(change func(*queues.Usage)) func(*output.Changes) {
	return func(c *output.Changes) {
		if c.Rest == nil {
			return
		}
		draft := queues.NewDraftFrom(c.Rest.Spec)
		for q := range c.Rest.Queues.All() {
			mine, _ := draft.Find(q.Path)
			draft.Update(mine.ID, func(u *queues.Usage) {
				own := q.Usage
				for _, below := range q.Children { // Update adds to the queues above, too
					own = own.Sub(c.Rest.Queues.Queue(below).Usage)
				}
				*u = u.Add(own)
				if q.Path == "root.a" {
					change(u)
				}
			})
		}
		rest := *c.Rest
		rest.Queues = draft.Publish(nil)
		c.Rest = &rest
	}
}

// TestBooksThatAreWrong: the planted bugs, of each thing that is added up.
func TestBooksThatAreWrong(t *testing.T) {
	one := queuestest.Vector("vcore=1")
	application := func(change func(*output.AppRecord)) func(c *output.Changes) {
		return func(c *output.Changes) {
			for i, a := range c.Apps {
				if a.ID == "app0" {
					other := *a
					change(&other)
					c.Apps[i] = &other
				}
			}
		}
	}
	for _, c := range []struct {
		name string
		bend func(*output.Changes)
		says string
	}{
		{"nothing", miscounted(func(*queues.Usage) {}), "<nil>"},
		{"allocated", miscounted(func(u *queues.Usage) { u.Allocated = u.Allocated.Add(one) }), "queue root.a: it is charged pods=2 vcore=3000 as allocated, its pods make pods=2 vcore=2000"},
		{"admitted", miscounted(func(u *queues.Usage) { u.Admitted = u.Admitted.Add(one) }), "as admitted"},
		{"pending", miscounted(func(u *queues.Usage) { u.Pending = u.Pending.Add(one) }), "as pending"},
		{"preempted", miscounted(func(u *queues.Usage) { u.Preempted = u.Preempted.Add(one) }), "as preempted"},
		{"leaving", miscounted(func(u *queues.Usage) { u.Leaving = u.Leaving.Add(one) }), "as leaving"},
		{"arriving", miscounted(func(u *queues.Usage) { u.Arriving = u.Arriving.Add(one) }), "as arriving"},
		{"applications", miscounted(func(u *queues.Usage) { u.Applications++ }), "queue root.a: it is charged 3 applications, 2 of them running, and has 2 and 2"},
		{"running", miscounted(func(u *queues.Usage) { u.Running-- }), "1 of them running, and has 2 and 2"},
		{"an application", application(func(a *output.AppRecord) { a.Usage.Allocated = a.Usage.Allocated.Add(one) }), "application app0 of queue root.a: it is charged"},
		{"an application that waits", application(func(a *output.AppRecord) { a.Usage.Pending = a.Usage.Pending.Add(one) }), "as pending"},
		{"a pod that is not shown", func(c *output.Changes) { c.Pods = c.Pods[1:] }, "application app"},
	} {
		s := office(t)
		err := (&Books{Inventory: inventory.New(bent{s, c.bend}), Owners: s.OwnersUse}).Check()
		expect.That(t, strings.Contains(fmt.Sprint(err), c.says), "%s: %v, not %q", c.name, err, c.says)
	}
}

// TestOwnersDifferInEveryLook: only a difference that is the same in every look is
// reported; any other one was late.
func TestOwnersDifferInEveryLook(t *testing.T) {
	for _, c := range []struct {
		name  string
		wrong func(look int, usage []queues.OwnerUsage, all *int)
		says  string
	}{
		{"never", func(int, []queues.OwnerUsage, *int) {}, "<nil>"},
		{"running", func(_ int, usage []queues.OwnerUsage, _ *int) { usage[0].Running++ }, "user nobody in queue root: it is charged 5 running applications, and has 4"},
		{"used", func(_ int, usage []queues.OwnerUsage, _ *int) { usage[0].Allocated = queuestest.Vector("vcore=1") }, "user nobody in queue root: it is charged vcore=1000 as allocated, its pods make"},
		{"on the way", func(_ int, usage []queues.OwnerUsage, _ *int) { usage[0].Admitted = queuestest.Vector("vcore=1") }, "as admitted"},
		{"a user that uses nothing", func(_ int, _ []queues.OwnerUsage, all *int) { *all++ }, "2 users and groups are charged, each counted for each queue, and 1 use something"},
		{"but once", func(look int, usage []queues.OwnerUsage, _ *int) {
			if look != ownerLooks-1 {
				usage[0].Running++
			}
		}, "<nil>"},
		{"in another way each time", func(look int, usage []queues.OwnerUsage, _ *int) { usage[0].Running += 1 + look%2 }, "<nil>"},
		{"first one, then another", func(look int, usage []queues.OwnerUsage, all *int) {
			if look < 2 {
				usage[0].Running++
			} else {
				*all++
			}
		}, "<nil>"},
	} {
		s, look := office(t), -1
		books := &Books{Inventory: inventory.New(s), Owners: func(of []queues.Charged) ([]queues.OwnerUsage, int) {
			usage, all := s.OwnersUse(of)
			if of != nil {
				look++
				c.wrong(look, usage, &all)
			}
			return usage, all
		}}
		for range ownerLooks - 1 {
			expect.Holds(t, books.Check())
		}
		err := books.Check()
		expect.That(t, strings.Contains(fmt.Sprint(err), c.says), "%s: %v, not %q", c.name, err, c.says)
	}
}
