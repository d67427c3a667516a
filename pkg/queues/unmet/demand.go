package unmet

import (
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// Demand is a queue with lawful unmet demand, and the reason why its pods still wait.
type Demand struct {
	// Queue is its path.
	Queue  string
	Reason reasons.Code
}

// byNearness are the reasons, sorted by how soon they let demand be served.
var byNearness = []reasons.Code{
	reasons.MakingRoom, reasons.InOrder, reasons.PreemptionPaced, reasons.PreemptionDelayed,
	reasons.HoldGivenUp, reasons.PreemptionRefused, reasons.PreemptionDisabled,
}

// Find returns the queues with lawful unmet demand, parents first, then by name. waitsFor
// returns for each leaf the reason why its pods wait; no reason if none of its pods counts.
// If leaves below a queue have different reasons, the queue has the first of them in
// byNearness.
func Find(s *queues.Snapshot, waitsFor func(leaves []*queues.Queue) []reasons.Code) []Demand {
	var leaves []*queues.Queue
	var under [][]queues.ID // by leaf
	for q := range s.All() {
		if !q.Leaf {
			continue
		}
		if ids := underGuarantee(s, q); len(ids) > 0 {
			leaves, under = append(leaves, q), append(under, ids)
		}
	}
	if len(leaves) == 0 {
		return nil
	}
	reason := map[queues.ID]reasons.Code{}
	for i, code := range waitsFor(leaves) {
		if code == "" {
			continue
		}
		for _, id := range under[i] {
			reason[id] = nearer(reason[id], code)
		}
	}
	var out []Demand
	for q := range s.All() {
		if code, is := reason[q.ID]; is {
			out = append(out, Demand{Queue: q.Path, Reason: code})
		}
	}
	return out
}

// nearer returns the reason that comes first in byNearness; a may be empty.
func nearer(a, b reasons.Code) reasons.Code {
	if a == "" || slices.Index(byNearness, b) < slices.Index(byNearness, a) {
		return b
	}
	return a
}

// underGuarantee returns the queues on a leaf's path that are under a guarantee to which the
// leaf's pods could be charged.
func underGuarantee(s *queues.Snapshot, leaf *queues.Queue) []queues.ID {
	var under []queues.ID
	for name, pending := range leaf.Pending.All() {
		if pending <= 0 {
			continue
		}
		for q := range s.Ancestors(leaf.ID) {
			guaranteed, guarantees := q.Guaranteed.Get(name)
			if q.IsRoot() || guarantees && q.Kept().Get(name) >= guaranteed {
				break
			}
			if guarantees && !slices.Contains(under, q.ID) {
				under = append(under, q.ID)
			}
		}
	}
	return under
}
