package store

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

func askingPod(name string) objects.Pod {
	return objects.Pod{
		Identity: objects.Identity{
			UID: types.UID(name), Name: name, Namespace: "ns", Created: epoch,
			Labels: map[string]string{placement.KeyQueue: "root.a", placement.KeyApplicationID: name},
		},
		Request: queuestest.Vector("vcore=1 pods=1"),
	}
}

// A reader of Wake learns of all work, however often it reads and whatever it missed.
func TestWake(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  a"), model.Options{})
	woken := func() bool {
		select {
		case <-s.Wake():
			return true
		default:
			return false
		}
	}
	if s.Start(epoch); woken() {
		t.Error("woken, and nothing is there")
	}
	p := askingPod("p")
	s.Upsert(p, epoch)
	if !woken() {
		t.Error("a pod was let through, and no reader was woken")
	}
	if len(s.TakeActivations()) != 1 || len(s.TakeActivations()) != 0 {
		t.Error("a pod is handed out not once")
	}
	lease, due := s.NextDeadline()
	if !due || !lease.Equal(epoch.Add(30*time.Second)) {
		t.Errorf("next deadline %v, %v", lease, due)
	}
	s.NoNode(p.UID, "", reasons.New(reasons.NoNodeFits, "none"), epoch)
	if woken() {
		t.Error("woken, although nothing is to be done earlier than it was")
	}
	s.Gate(p.UID, epoch) // it backs off for a second, less than the lease
	if !woken() {
		t.Error("there is an earlier deadline, and no reader was woken")
	}
	s.Upsert(askingPod("p"), epoch)
	s.Tick(epoch.Add(time.Second))
	s.Tick(epoch.Add(time.Second))
	if !woken() || woken() {
		t.Error("woken not once for all there is to do")
	}
	if len(s.TakeActivations()) != 1 {
		t.Error("the pod that cooled down is not handed out")
	}
}

// Assume does not admit the next pod; the woken goroutine does, or the next event.
func TestTheSlotOfAnAssumedPodIsGivenAwayLater(t *testing.T) {
	for name, next := range map[string]func(s *Store){
		"by who is woken":     func(*Store) {},
		"by the next event":   func(s *Store) { s.UpsertNode("n2", queuestest.Vector("vcore=1"), epoch) },
		"by a further Assume": func(s *Store) { s.Assume("no such pod", "n1", NoSnapshot, epoch) },
	} {
		t.Run(name, func(t *testing.T) {
			s := New(queuestest.MustTree(t, "root\n  a"), model.Options{Window: 1, MaxWindow: 1})
			s.Start(epoch)
			first, second := askingPod("p1"), askingPod("p2")
			s.Upsert(first, epoch)
			s.Upsert(second, epoch)
			s.TakeActivations()
			<-s.Wake()
			if v := s.Assume(first.UID, "n1", NoSnapshot, epoch); !v.OK() {
				t.Fatal(v.Reason)
			}
			if _, keyed := s.Key(second.UID); keyed {
				t.Error("the next pod was let through while the scheduler waited")
			}
			select {
			case <-s.Wake():
			default:
				t.Error("there is a slot for the next pod, and no reader is woken")
			}
			next(s)
			if refs := s.TakeActivations(); len(refs) != 1 || refs[0].UID != second.UID {
				t.Errorf("let through: %v, want the next pod", refs)
			}
			expect.Holds(t, s.Check())
		})
	}
}

// The reason why a store does not start is given to the pods that wait for it.
func TestHold(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  a"), model.Options{})
	p := askingPod("p")
	s.Upsert(p, epoch)
	if s.Ready() || s.Explain(p.UID).Code != reasons.Starting {
		t.Errorf("before Start: %v", s.Explain(p.UID))
	}
	s.SetNotReady(reasons.New(reasons.QueueNotFound, "the configuration cannot be read"))
	if got := s.Explain(p.UID).Text; got != "the configuration cannot be read" {
		t.Errorf("on hold: %q", got)
	}
	s.Start(epoch)
	if !s.Ready() || !s.Explain(p.UID).None() {
		t.Errorf("after Start: %v", s.Explain(p.UID))
	}
	if s.Spec().Root.Children[0].Name != "a" {
		t.Error("another configuration than it was given")
	}
}

// A snapshot has the state after the last event and does not change.
func TestSnapshotIsOfTheLastEvent(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  a"), model.Options{})
	s.Start(epoch)
	before := s.Snapshot()
	p := askingPod("p")
	s.Upsert(p, epoch)
	s.Assume(p.UID, "n1", NoSnapshot, epoch)
	after := s.Snapshot()
	if !before.Root().Allocated.IsZero() || !after.Root().Allocated.Equal(p.Request) {
		t.Errorf("allocated %v before and %v after, want none and %v", before.Root().Allocated, after.Root().Allocated, p.Request)
	}
	if s.Snapshot() != after {
		t.Error("another snapshot, though nothing happened")
	}
}

// TestWaitsForAQueueThatIsGone: a snapshot may be older than the store.
func TestWaitsForAQueueThatIsGone(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  a\n  b"), model.Options{})
	s.Start(epoch)
	s.Upsert(askingPod("p"), epoch)
	s.NoNode("p", "", reasons.Brief(reasons.NoNodeFits), epoch)
	old, _ := s.Snapshot().Find("root.a")
	s.Delete("p", epoch)
	s.Configure(queuestest.MustTree(t, "root\n  b"), epoch)
	s.Tick(epoch.Add(time.Hour))
	if _, there := s.Snapshot().Find("root.a"); there {
		t.Fatal("it is still there")
	}
	if codes := s.WaitsFor([]*queues.Queue{old}, epoch); len(codes) != 1 || codes[0] != "" {
		t.Errorf("it waits for %v", codes)
	}
}

// TestAttemptsOfARunningPod: the record of its turn is dropped, and how often it was tried
// stays.
func TestAttemptsOfARunningPod(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  a"), model.Options{})
	s.Start(epoch)
	p := askingPod("p")
	s.Upsert(p, epoch)
	s.NoNode(p.UID, "", reasons.Brief(reasons.NoNodeFits), epoch)
	p.Node = "n1"
	s.Upsert(p, epoch)
	if got := s.model.RecordOf(s.model.Pods["p"]).Attempts(); got != 1 {
		t.Errorf("readers see %d attempts, want 1", got)
	}
	expect.Holds(t, s.Check())
}
