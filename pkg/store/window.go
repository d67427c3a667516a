package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// fill admits the next pods of the order while the window has room, and the first pod of
// the lane when the order has none.
func (s *Store) fill(now time.Time) {
	if s.returning {
		return // the order is about to change
	}
	s.unfilled = false
	s.callBackAll()
	s.unblock()
	if !s.started {
		return
	}
	s.fillAsking(now)
	s.wakeTogether(now)
	s.fillInOrder(now)
	for s.firstOfLane() {
		s.fillInOrder(now)
	}
}

func (s *Store) fillInOrder(now time.Time) {
	for s.window.HasRoom(s.index.LeavesWithWork()) {
		ask, ok := s.index.Next()
		if !ok {
			return
		}
		p := s.pods[types.UID(ask.UID())]
		if p.equivalenceClass != nil && s.classLimit.Full() {
			return
		}
		if v := s.judge(p.app, p.Request, queues.OnCommitted); !v.OK() {
			s.index.Block(ask.Group(), v)
			continue
		}
		if p.mates != nil && p.mates.LacksMembers() {
			s.startTogether(p, now)
			continue
		}
		s.toAdmitted(p, now)
		s.activate = append(s.activate, p.Ref())
	}
}

// judge is the only quota check: max on every level, user and group limits, and
// maxapplications if the application does not count yet.
func (s *Store) judge(a *app, request resources.Vector, on queues.Basis) queues.Verdict {
	return s.judgeAs(a, a.counted, request, on)
}

// judgeAs is judge with the application taken as counted, or not, against
// maxapplications.
func (s *Store) judgeAs(a *app, counted bool, request resources.Vector, on queues.Basis) queues.Verdict {
	if v := queues.Admit(s.draft, a.leaf, request, on); !v.OK() {
		return v
	}
	if v := s.ledger.Admit(s.draft, a.leaf, a.owner, request, on); !v.OK() {
		return v
	}
	if counted {
		return queues.Granted
	}
	if v := queues.AdmitApplication(s.draft, a.leaf, on); !v.OK() {
		return v
	}
	return s.ledger.AdmitApplication(s.draft, a.leaf, a.owner, on)
}

// unblock checks blocked groups again where the blocking queue has got more room.
func (s *Store) unblock() {
	for id := range s.reconsider {
		delete(s.reconsider, id)
		s.groups.TouchRefused(id)
		if s.draft.Queue(id) == nil {
			continue
		}
		for _, g := range s.index.BlockedAt(id) {
			a := s.pods[types.UID(g.First().UID())].app
			if v := s.judge(a, g.Request(), queues.OnCommitted); v.OK() {
				s.index.Unblock(g)
			} else {
				s.index.Block(g, v)
			}
		}
	}
}
