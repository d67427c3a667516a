package eventlog

import (
	"fmt"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// same returns the queue of another tree that a queue is; nil if there is none.
func same(s *queues.Snapshot, q *queues.Queue) *queues.Queue {
	if other := s.Queue(q.ID); other != nil && other.Path == q.Path {
		return other
	}
	other, _ := s.Find(q.Path) // its number was given to another one meanwhile
	return other
}

// grow makes the records of queues that are new or have other settings than before.
// Without a tree before there is nothing to tell.
func (l *Log) grow(after *queues.Snapshot) {
	if l.queues == nil {
		return
	}
	for q := range after.All() {
		old := same(l.queues, q)
		switch {
		case old == nil:
			l.put(Record{Type: Queue, Change: Add, Detail: kind(q), Object: q.Path})
			l.settings(&queues.Settings{Settings: config.Settings{Leaf: q.Leaf}}, q)
		case old.Settings != q.Settings:
			l.settings(old.Settings, q)
		}
	}
}

// shrink makes the records of queues that are gone.
func (l *Log) shrink(after *queues.Snapshot) {
	if l.queues == nil {
		return
	}
	for q := range l.queues.All() {
		if same(after, q) == nil {
			l.limits(q, q.Limits, nil)
			l.put(Record{Type: Queue, Change: Remove, Detail: kind(q), Object: q.Path})
		}
	}
}

func kind(q *queues.Queue) Detail {
	if q.Managed {
		return NoDetail
	}
	return QueueDynamic
}

// settings makes the records of the settings of a queue that differ from the old ones.
func (l *Log) settings(old *queues.Settings, q *queues.Queue) {
	if old.Leaf != q.Leaf {
		message := fmt.Sprintf("leaf queue: %t", q.Leaf)
		l.put(Record{Type: Queue, Change: Set, Detail: QueueType, Object: q.Path, Message: message})
	}
	if !old.Max.Equal(q.Max) {
		l.quota(q, QueueMax, q.Max.Map())
	}
	if !old.Guaranteed.Equal(q.Guaranteed) {
		l.quota(q, QueueGuarantee, q.Guaranteed.Map())
	}
	l.limits(q, old.Limits, q.Limits)
}

func (l *Log) quota(q *queues.Queue, d Detail, amounts map[string]resources.Amount) {
	l.put(Record{Type: Queue, Change: Set, Detail: d, Object: q.Path, Amount: resources.VectorFrom(amounts)})
}

// limited is a limit as one user, or one group, has it.
type limited struct {
	detail Detail
	name   string
	max    resources.Limit
	apps   uint64
}

func (a limited) equal(b limited) bool { return a.apps == b.apps && a.max.Equal(b.max) }

// limits makes the records of limits of users and groups that are set or gone.
func (l *Log) limits(q *queues.Queue, before, after []config.Limit) {
	old, now := singly(before), singly(after)
	is := func(a limited) func(limited) bool {
		return func(b limited) bool { return a.detail == b.detail && a.name == b.name }
	}
	for _, a := range now {
		if at := slices.IndexFunc(old, is(a)); at < 0 || !old[at].equal(a) {
			l.put(Record{Type: UserGroup, Change: Set, Detail: a.detail, Object: a.name, Reference: q.Path})
		}
	}
	for _, a := range old {
		if !slices.ContainsFunc(now, is(a)) {
			l.put(Record{Type: UserGroup, Change: Remove, Detail: a.detail, Object: a.name, Reference: q.Path})
		}
	}
}

func singly(limits []config.Limit) []limited {
	var out []limited
	for _, limit := range limits {
		for _, name := range limit.Users {
			out = append(out, limited{UserLimit, name, limit.MaxResources, limit.MaxApplications})
		}
		for _, name := range limit.Groups {
			out = append(out, limited{GroupLimit, name, limit.MaxResources, limit.MaxApplications})
		}
	}
	return out
}
