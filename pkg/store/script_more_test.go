package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/unmet"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// gated prints how many pods are kept out of the scheduler's queue.
func (s *script) gated() string {
	var b strings.Builder
	counts := s.store.Gated()
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "%s %d\n", code, counts[code])
	}
	return b.String()
}

// look prints which queues are below their guarantee, and for how long.
func (s *script) look() string {
	found := unmet.Find(s.store.Snapshot(), func(leaves []*queues.Queue) []reasons.Code {
		return s.store.WaitsFor(leaves, s.now)
	})
	ended := s.meter.Look(s.now, found)
	var b strings.Builder
	for _, d := range found {
		fmt.Fprintf(&b, "%s: %s\n", d.Queue, d.Reason)
	}
	for _, took := range ended {
		fmt.Fprintf(&b, "took %v\n", took)
	}
	for _, t := range s.meter.Totals() {
		fmt.Fprintf(&b, "so far %s %s: %v\n", t.Queue, t.Reason, t.Time)
	}
	return b.String()
}
