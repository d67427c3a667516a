package store

import (
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// judged returns a store with a queue of one core, and an admitted pod that has passed
// CheckQuota.
func judged(t *testing.T) (*Store, *model.Pod) {
	t.Helper()
	s := New(queuestest.MustTree(t, "root\n  a max.vcore=1"), model.Options{})
	s.Start(epoch)
	s.Upsert(askingPod("p"), epoch)
	p := s.model.Pods["p"]
	if _, v, ok := s.CheckQuota(p.UID); !ok || !v.OK() {
		t.Fatalf("judged: %v", v)
	}
	return s, p
}

// Changes after CheckQuota that make Assume refuse the pod.
var betweenJudgeAndAssume = map[string]func(t *testing.T, s *Store){
	"another pod took the room": func(_ *testing.T, s *Store) {
		other := askingPod("other")
		other.Node = "n1"
		s.Upsert(other, epoch)
	},
	"the queue got less": func(t *testing.T, s *Store) {
		s.Configure(queuestest.MustTree(t, "root\n  a max.vcore=500m"), epoch)
	},
	"the pod asks for more": func(_ *testing.T, s *Store) {
		larger := askingPod("p")
		larger.Request = queuestest.Vector("vcore=2 pods=1")
		s.Upsert(larger, epoch)
	},
}

func TestAssumeJudgesAgainWhatChanged(t *testing.T) {
	for name, change := range betweenJudgeAndAssume {
		t.Run(name, func(t *testing.T) {
			s, p := judged(t)
			change(t, s)
			if err := s.Check(); err != nil {
				t.Error(err)
			}
			if v := s.Assume(p.UID, "n1", NoSnapshot, epoch); v.OK() {
				t.Error("the pod runs over the max of its queue")
			}
		})
	}
	s, p := judged(t)
	if v := s.Assume(p.UID, "n1", NoSnapshot, epoch); !v.OK() {
		t.Error(v.Reason)
	}
}
