package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
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
		if v := s.cache.Books.CheckQuota(&p.app.cacheApp, p.Request, queues.OnCommitted); !v.OK() {
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
			if v := s.cache.Books.CheckQuota(&a.cacheApp, g.Request(), queues.OnCommitted); v.OK() {
				s.index.Unblock(g)
			} else {
				s.index.Block(g, v)
			}
		}
	}
}
