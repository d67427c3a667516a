package store

import (
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// TestWhoRunsKeepsNothingOfItsOwn: most pods of a cluster run. The test checks, for each
// way to get there, which state the pod keeps.
func TestWhoRunsKeepsNothingOfItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		live     func(s *Store, p objects.Pod)
		attempts int
	}{
		"it ran before the start": {live: func(s *Store, p objects.Pod) { p.Node = "n1"; s.Upsert(p, epoch); s.Start(epoch) }},
		"it was bound by the scheduler": {live: func(s *Store, p objects.Pod) {
			s.Start(epoch)
			s.Upsert(p, epoch)
			s.TakeActivations()
			s.Assume(p.UID, "n1", NoSnapshot, epoch)
			p.Node = "n1"
			s.Upsert(p, epoch)
		}},
		"it found no node at first": {live: func(s *Store, p objects.Pod) {
			s.Start(epoch)
			s.Upsert(p, epoch)
			s.TakeActivations()
			s.NoNode(p.UID, "", reasons.Brief(reasons.NoNodeFits), epoch)
			p.Node = "n1"
			s.Upsert(p, epoch)
		}, attempts: 1},
		"it was somebody else's, and room was to be made for it": {live: func(s *Store, p objects.Pod) {
			s.Start(epoch)
			p.Foreign, p.Peer, p.RequiredNode = true, true, "n1"
			s.Upsert(p, epoch)
			p.Node = "n1"
			s.Upsert(p, epoch)
		}},
		"it is about to go": {live: func(s *Store, p objects.Pod) {
			s.Start(epoch)
			p.Node, p.Deleting = "n1", true
			s.Upsert(p, epoch)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(queuestest.MustTree(t, "root\n  a"), model.Options{})
			s.UpsertNode("n1", queuestest.Vector("vcore=8 pods=9"), epoch)
			c.live(s, objects.Pod{
				Identity: objects.Identity{
					UID: "p", Namespace: "ns", Name: "p", Created: epoch.Add(-time.Hour),
					Labels: map[string]string{"applicationId": "x", "queue": "root.a"},
				},
				Request: queuestest.Vector("vcore=1 pods=1"),
			})
			p := s.model.Pods["p"]
			if p.State != state.Bound {
				t.Fatal("the pod does not run:", p.State)
			}
			if p.Turn != s.model.NoTurn {
				t.Errorf("it keeps a turn: %+v", *p.Turn)
			}
			if p.Asks != nil {
				t.Errorf("it keeps what it knows of making room: %+v", *p.Asks)
			}
			if got := s.model.RecordOf(p).Attempts(); got != c.attempts {
				t.Errorf("readers see %d attempts, want %d", got, c.attempts)
			}
			expect.Holds(t, s.Check())
		})
	}
}
