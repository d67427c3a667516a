package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// fill admits the next pods of the order while the window has room, and the first pod of
// the lane when the order has none.
func (s *Store) fill(now time.Time) {
	if s.pending.Returning() {
		return // the order is about to change
	}
	s.pending.Fills()
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
	for s.pending.HasSlot() {
		ask, ok := s.pending.Order.Next()
		if !ok {
			return
		}
		p := s.pods[types.UID(ask.UID())]
		if p.equivalenceClass != nil && s.pending.Classes.Limit.Full() {
			return
		}
		if v := s.cache.Books.CheckQuota(&p.app.cacheApp, p.Request, queues.OnCommitted); !v.OK() {
			s.pending.Order.Block(ask.Group(), v)
			continue
		}
		if p.mates != nil && p.mates.LacksMembers() {
			s.startTogether(p, now)
			continue
		}
		s.toAdmitted(p, now)
		s.out.activate = append(s.out.activate, p.Ref())
	}
}

// unblock checks blocked groups again where the blocking queue has got more room.
func (s *Store) unblock() {
	for _, g := range s.pending.TakeBlocked(s.cache.Tree()) {
		a := s.pods[types.UID(g.First().UID())].app
		if v := s.cache.Books.CheckQuota(&a.cacheApp, g.Request(), queues.OnCommitted); v.OK() {
			s.pending.Order.Unblock(g)
		} else {
			s.pending.Order.Block(g, v)
		}
	}
}
