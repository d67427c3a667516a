package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// classStore is a store with pods that all found no node. Their names are queue and number
// ("a1"), and the first names are the oldest.
type classStore struct {
	*Store
	t   *testing.T
	now time.Time
}

func newClassStore(t *testing.T, pods ...string) *classStore {
	t.Helper()
	spec := queuestest.MustTree(t, "root\n  a guaranteed.vcore=4\n  b guaranteed.vcore=2")
	s := &classStore{New(spec, model.Options{InitialBackoff: -1, MaxBackoff: -1}), t, epoch}
	s.Start(s.now)
	for i, name := range pods {
		s.add(name, i)
	}
	s.is(state.Admitted, pods...)
	s.fail(pods...)
	return s
}

func (s *classStore) add(name string, age int) {
	s.Upsert(objects.Pod{
		UID: types.UID(name), Namespace: "ns", Name: name, Created: epoch.Add(time.Duration(age) * time.Second),
		Labels:  map[string]string{placement.KeyQueue: "root." + name[:1], placement.KeyApplicationID: "app-" + name[:1]},
		Request: queuestest.Vector("vcore=1 pods=1"),
	}, s.now)
	s.TakeActivations()
}

// fail ends cycles of pods without a node; the kind is the queue's name.
func (s *classStore) fail(names ...string) {
	for _, name := range names {
		s.NoNode(types.UID(name), "kind "+name[:1], reasons.Brief(reasons.NoNodeFits), s.now)
	}
	s.TakeActivations()
}

// event makes the scheduler bring back those of the pods that it has.
func (s *classStore) event(names ...string) {
	for _, name := range names {
		if s.model.Pods[types.UID(name)].State == state.Unschedulable {
			s.Gate(types.UID(name), s.now)
		}
	}
	s.TakeActivations()
}

func (s *classStore) assume(name string) {
	s.t.Helper()
	if v := s.Assume(types.UID(name), "n1", NoSnapshot, s.now); !v.OK() {
		s.t.Errorf("%s is refused: %s", name, v.Reason)
	}
	s.TakeActivations()
}

// is fails the test unless exactly the named pods are in the state.
func (s *classStore) is(want state.State, names ...string) {
	s.t.Helper()
	if err := s.Check(); err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for _, p := range s.model.SortedPods() {
		if p.State == want {
			got = append(got, p.Name)
		}
	}
	if !slices.Equal(got, names) {
		s.t.Fatalf("%v are %v, want %v", want, got, names)
	}
}

func TestTwinsAreTriedOneByOneUntilOneFails(t *testing.T) {
	s := newClassStore(t, "a1", "a2", "a3", "a4", "a5", "a6")
	s.is(state.Unschedulable, "a1", "a2", "a3", "a4", "a5", "a6")
	s.event("a4", "a1", "a6", "a2", "a3", "a5")
	s.is(state.Admitted, "a1")
	s.assume("a1")
	s.is(state.Admitted, "a2", "a3")
	s.fail("a2")
	s.is(state.Admitted, "a3")
	s.is(state.Queued, "a4", "a5", "a6")
	s.fail("a3")
	s.is(state.Admitted)
	s.is(state.Unschedulable, "a2", "a3")
	if why := s.Explain("a5"); why.Code != reasons.NoNodeFits {
		t.Errorf("a5 waits because %v", why)
	}

	// After one event the scheduler brings back the two pods that it has.
	s.event("a2", "a3", "a4", "a5", "a6")
	s.is(state.Admitted, "a2")
	s.fail("a2")
	s.is(state.Unschedulable, "a2")
	s.is(state.Queued, "a3", "a4", "a5", "a6")
}

func TestPodIsTriedOnceWhateverItsTwinsWereTold(t *testing.T) {
	s := newClassStore(t, "a1", "a2")
	s.event("a1")
	s.fail("a1")
	s.is(state.Unschedulable, "a1", "a2")
	s.add("a3", 3)
	s.is(state.Admitted, "a3")
	s.fail("a3")
	s.event("a3")
	s.is(state.Admitted, "a3") // a1 and a2 were not brought back
}

func TestTwinsOfOthersAreNotHeld(t *testing.T) {
	s := newClassStore(t, "a1", "a2", "b1", "b2")
	s.event("a1", "a2", "b1", "b2")
	s.is(state.Admitted, "a1")
	s.fail("a1")
	s.is(state.Admitted, "b1") // no other pod is tried while a1 is
	s.is(state.Queued, "a2", "b2")
	s.assume("b1")
	s.is(state.Admitted, "b2")
}

func TestTwinsAreNotHeldByPodsThatAreGone(t *testing.T) {
	for name, end := range map[string]func(s *classStore){
		"deleted": func(s *classStore) { s.Delete("a1", s.now) },
		"bound by somebody": func(s *classStore) {
			p := *s.model.Pods["a1"].Pod
			p.Node = "n1"
			s.Upsert(p, s.now)
		},
		"another pod now": func(s *classStore) {
			p := *s.model.Pods["a1"].Pod
			p.Request = queuestest.Vector("vcore=2 pods=1")
			s.Upsert(p, s.now)
			s.NoNode("a1", "kind a", reasons.Brief(reasons.NoNodeFits), s.now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newClassStore(t, "a1", "a2")
			s.event("a1", "a2")
			s.fail("a1")
			s.is(state.Queued, "a2")
			end(s)
			s.TakeActivations()
			s.is(state.Admitted, "a2")
		})
	}
}

// b1 finds room that became free during its cycle. The same event brings back a1, which
// is before b1.
func TestPodThatIsOvertakenLeavesTheRoom(t *testing.T) {
	s := newClassStore(t, "a1", "b1")
	s.event("a1", "b1")
	s.fail("a1")
	s.is(state.Admitted, "b1")
	s.event("a1")
	v := s.Assume("b1", "n1", NoSnapshot, s.now)
	if v.Reason.Code != reasons.InOrder {
		t.Fatalf("b1 got %v", v.Reason)
	}
	s.TakeActivations()
	s.is(state.Admitted, "a1")
	s.is(state.Queued, "b1")
	s.assume("a1")
	s.is(state.Admitted, "b1")
	s.assume("b1")
}

// b1 is admitted after a1 came back, so a1 had its turn.
func TestPodIsNotOvertakenTwice(t *testing.T) {
	s := newClassStore(t, "a1", "b1")
	s.event("a1", "b1")
	s.fail("a1")
	s.event("a1")
	if s.Assume("b1", "n1", NoSnapshot, s.now).OK() {
		t.Fatal("b1 was not overtaken")
	}
	s.TakeActivations()
	s.fail("a1")
	s.is(state.Admitted, "b1")
	s.assume("b1")
}

// A pod that failed before and makes no progress holds up others only for a short time.
func TestLeaseOfPodThatFailedBefore(t *testing.T) {
	s := newClassStore(t, "a1", "b1")
	s.model.Options.MaxBackoff = 10 * time.Second
	s.event("a1", "b1")
	s.is(state.Admitted, "a1")
	s.now = s.now.Add(3 * time.Second) // a tenth of the lease
	s.Tick(s.now)
	s.is(state.Admitted, "b1")
}

// The scheduler puts back a pod after a cycle that ended with an error. The store only
// sees that the gate is asked again.
func TestSecondGateEndsTheSlot(t *testing.T) {
	s := newClassStore(t, "a1", "b1")
	s.event("a1", "b1")
	if why := s.Gate("a1", s.now); !why.None() {
		t.Fatalf("a1 is held: %v", why)
	}
	if why := s.Gate("a1", s.now); why.None() {
		t.Fatal("a1 enters twice")
	}
	s.TakeActivations()
	s.is(state.Admitted, "a1") // without back-off here, it is next again
	if why := s.Gate("a1", s.now); !why.None() {
		t.Fatalf("a1 is held: %v", why)
	}
}

// front is the pod that the scheduler takes next; nil if there is none.
func (s *classStore) front() *model.Pod {
	var first *model.Pod
	for p := range s.model.Pending.Window.Pods() {
		x, _ := s.Key(p.UID)
		if first != nil {
			if y, _ := s.Key(first.UID); y.Seq < x.Seq {
				continue
			}
		}
		first = p
	}
	return first
}

// In a full cluster every pod costs one cycle, and later each placed pod a few more,
// however many pods wait.
func TestCyclesOnFullCluster(t *testing.T) {
	var pods []string
	for i := range 600 {
		pods = append(pods, fmt.Sprintf("%c%03d", "ab"[i%2], i))
	}
	spec := queuestest.MustTree(t, "root\n  a guaranteed.vcore=4\n  b guaranteed.vcore=2")
	s := &classStore{New(spec, model.Options{InitialBackoff: -1, MaxBackoff: -1}), t, epoch}
	s.Start(s.now)
	for i, name := range pods {
		s.add(name, i)
	}
	cycles, room := 0, 0
	run := func() {
		for p := s.front(); p != nil; p = s.front() {
			cycles++
			if room > 0 {
				room--
				s.assume(p.Name)
			} else {
				s.fail(p.Name)
			}
		}
	}
	run()
	if cycles != len(pods) {
		t.Errorf("%d cycles for %d pods that find no node", cycles, len(pods))
	}
	cycles = 0
	const ends = 100
	for range ends {
		room++
		s.event(pods...)
		run()
	}
	if cycles > 5*ends {
		t.Errorf("%d cycles when %d pods end", cycles, ends)
	}
	ran := map[string]int{}
	for _, p := range s.model.SortedPods() {
		if p.State == state.Assumed {
			ran[p.Name[:1]]++
			if strings.Count(strings.Join(pods[:2*ends], " "), p.Name) != 1 {
				t.Errorf("%s got a node out of turn", p.Name)
			}
		}
	}
	if ran["a"] != 66 || ran["b"] != 34 { // 66/4 = 33/2 by guarantees; the last node goes to b, where more pods wait
		t.Errorf("pods that got a node: %v", ran)
	}
}

func TestCheckFindsDisorderOfTwins(t *testing.T) {
	for _, c := range []struct {
		name    string
		disturb func(s *classStore)
		want    string
	}{
		{"a member too many", func(s *classStore) {
			p, c := s.model.Pods["a1"], (*pending.Class)(nil)
			s.model.Pending.Classes.Join(&c, p.App.Ordered, p.Request, p.EquivalenceClass.Kind(), state.Unschedulable)
		}, "3 counted"},
		{"a failed class that no event can bring back", func(s *classStore) {
			s.event("a1", "a2")
			s.model.Pending.Classes.Fail(s.model.Pods["a1"].EquivalenceClass, 0)
		}, "the scheduler has none of it"},
		{"an admitted member too many", func(s *classStore) { s.model.Pending.Classes.Limit.Admitted(1) }, "class limit: 1 pods counted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newClassStore(t, "a1", "a2")
			c.disturb(s)
			if err := s.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want something with %q", err, c.want)
			}
		})
	}
}

// A pod with a report, as from an earlier process, may come to wait because its class
// failed. Then the report is taken back, because the scheduler itself reports such pods.
func TestWhatWasToldOfATwinIsTakenBack(t *testing.T) {
	s := newClassStore(t, "a1", "a2")
	event := *s.model.Pods["a2"].Pod
	event.UID, event.Name, event.Told = "a3", "a3", reasons.InOrder
	s.Upsert(event, s.now)
	s.TakeActivations()
	s.fail("a3")
	s.event("a1", "a2", "a3")
	s.fail("a1")
	s.is(state.Queued, "a2", "a3")
	var back []string
	for _, r := range s.NextReports(s.now.Add(time.Minute), 100) {
		if r.Reason.None() {
			back = append(back, r.Name)
		}
	}
	if !slices.Equal(back, []string{"a3"}) {
		t.Errorf("taken back of %v, want of a3", back)
	}
}
