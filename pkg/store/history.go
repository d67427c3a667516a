package store

import (
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// EventReader reads the events of one topic. It is for one goroutine at a time.
type EventReader struct {
	s      *core
	events *history.Events
}

// Follow returns a reader of the events of a topic from now on, or from Start on for
// Facts. The store keeps events for each reader until it takes them, up to a limit.
func (s *Readers) Follow(t output.Topic) *EventReader {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &EventReader{s.core, s.model.History.Follow(t)}
}

// Ready delivers a value when there are events to take.
func (r *EventReader) Ready() <-chan struct{} { return r.events.Ready() }

// Take returns the events since the last call, in order, and how many were lost to the limit.
// The store uses the buffer spare, which may be nil, for the next events.
func (r *EventReader) Take(spare []output.Event) (events []output.Event, lost int) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.events.Take(spare)
}

// TakeChanges returns at most limit changes since the last call. It is for one reader,
// which calls it until there is a Rest, so the lock is held for one portion at a time.
func (s *Readers) TakeChanges(limit int) output.Changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.model.History
	var c output.Changes
	c.GonePods = r.Pods.TakeGone(limit)
	limit -= len(c.GonePods)
	c.GoneApps = r.Apps.TakeGone(limit)
	limit -= len(c.GoneApps)
	c.GoneNodes = r.Nodes.TakeGone(limit)
	limit -= len(c.GoneNodes)
	c.Nodes = r.Nodes.Take(limit, model.RecordOfNode)
	limit -= len(c.Nodes)
	c.Apps = r.Apps.Take(limit, s.model.RecordOfApp)
	limit -= len(c.Apps)
	c.Pods = r.Pods.Take(limit, s.model.RecordOf)
	if r.Empty() {
		c.Rest = &output.Rest{
			Started: s.model.Started, Queues: s.model.Cache.Snapshot(), Holds: s.model.Preemption.Ledger.View(), Spec: s.model.Cache.Spec,
			Until: s.holds.Until(), Finished: r.Finished, Counts: r.Counts,
		}
	}
	return c
}
