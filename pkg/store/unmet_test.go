package store

import (
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// stuckPod is a store in which queue a is below its guarantee and its pod found no node.
func stuckPod(t *testing.T) *Store {
	t.Helper()
	spec := queuestest.MustTree(t, "root\n  a guaranteed.vcore=2 props=preemption.delay:5s\n  b")
	var err error
	if spec.Rules, err = queuestest.Rules("provided"); err != nil {
		t.Fatal(err)
	}
	s := New(spec, model.Options{InitialBackoff: -1})
	s.Start(epoch)
	s.Upsert(objects.Pod{Identity: objects.Identity{UID: "p", Name: "p", Namespace: "ns", Created: epoch, Labels: map[string]string{"queue": "root.a"}}, Request: queuestest.Vector("vcore=1 pods=1")}, epoch)
	s.NoNode("p", "", reasons.Brief(reasons.NoNodeFits), epoch)
	return s
}

func waitsFor(t *testing.T, s *Store, path string) reasons.Code {
	t.Helper()
	q, ok := s.Snapshot().Find(path)
	if !ok {
		t.Fatalf("no queue %s", path)
	}
	codes := s.WaitsFor([]*queues.Queue{q}, epoch.Add(time.Second))
	if len(codes) != 1 {
		t.Fatalf("%v for one queue", codes)
	}
	return codes[0]
}

func TestWaitsForWithoutPreemption(t *testing.T) {
	s := stuckPod(t)
	if got := waitsFor(t, s, "root.a"); got != reasons.PreemptionDelayed {
		t.Errorf("waits for %q", got)
	}
	if got := waitsFor(t, s, "root.b"); got != "" {
		t.Errorf("a queue without pods waits for %q", got)
	}
	off := *s.Spec()
	off.PreemptionEnabled = false
	s.Configure(&off, epoch)
	if got := waitsFor(t, s, "root.a"); got != reasons.PreemptionDisabled {
		t.Errorf("with preemption off it waits for %q", got)
	}
}

// TestWaitsForAQueueThatIsGone: a snapshot may be older than the store.
func TestWaitsForAQueueThatIsGone(t *testing.T) {
	s := stuckPod(t)
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

// TestCensusIsChecked plants errors in the counts.
func TestCensusIsChecked(t *testing.T) {
	for name, plant := range map[string]func(*Store){
		"a pod counted twice":  func(s *Store) { s.model.History.Waits.Update(&history.Tally{}, s.model.Pods["p"].Tallied) },
		"a pod not counted":    func(s *Store) { s.model.History.Waits.Update(&s.model.Pods["p"].Tallied, history.Tally{}) },
		"another state":        func(s *Store) { s.model.Pods["p"].Tallied.State = state.BackingOff },
		"a queue without pods": func(s *Store) { s.model.History.Waits.Refuse(77, "", epoch) },
	} {
		s := stuckPod(t)
		if err := s.Check(); err != nil {
			t.Fatalf("before: %v", err)
		}
		if plant(s); s.Check() == nil {
			t.Errorf("not found: %s", name)
		}
	}
}
