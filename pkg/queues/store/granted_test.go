package store

import (
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
)

// judged is a store with a queue of one core, and a pod let through that was judged.
func judged(t *testing.T) (*Store, *pod) {
	t.Helper()
	s := New(queuestest.MustTree(t, "root\n  a max.vcore=1"), Options{})
	s.Start(epoch)
	s.Upsert(askingPod("p"), epoch)
	p := s.pods["p"]
	if _, v, ok := s.Judge(p.UID); !ok || !v.OK() || !s.stillGranted(p) {
		t.Fatalf("judged: %v, remembered: %t", v, s.stillGranted(p))
	}
	return s, p
}

// What may refuse a pod that was judged before.
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
			if s.stillGranted(p) {
				t.Error("the verdict of before is taken for one of now")
			}
			if err := s.Check(); err != nil {
				t.Error(err)
			}
			if v := s.Assume(p.UID, "n1", epoch); v.OK() {
				t.Error("the pod runs over the max of its queue")
			}
		})
	}
	s, p := judged(t)
	if v := s.Assume(p.UID, "n1", epoch); !v.OK() {
		t.Error(v.Reason)
	}
}

// A store that misses a change lets the pod run, and its check says so.
func TestCheckFindsAVerdictThatIsOld(t *testing.T) {
	for _, name := range []string{"another pod took the room", "the queue got less"} {
		t.Run(name, func(t *testing.T) {
			s, p := judged(t)
			betweenJudgeAndAssume[name](t, s)
			s.grant(p.app, p.Request)
			if err := s.Check(); err == nil || !strings.Contains(err.Error(), "remembered as granted") {
				t.Errorf("check says %v", err)
			}
			if v := s.Assume(p.UID, "n1", epoch); !v.OK() {
				t.Errorf("what is remembered is not used: %v", v.Reason)
			}
		})
	}
}
