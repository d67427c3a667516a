package documents

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// The states of a hold.
const (
	// holdPlanned: pods are to leave, and none was told so yet.
	holdPlanned = "planned"
	// holdUndecided: no pod is made to leave, or not yet.
	holdUndecided = "undecided"
	// holdLeaving: pods are leaving.
	holdLeaving = "leaving"
	// holdClear: no victim is left; the asker starts there, or the hold times out.
	holdClear = "clear"
)

// Holds is the answer of GET /api/v1/holds.
type Holds struct {
	// Holds are those of now, by node and then in the order in which their askers
	// are served.
	Holds []Hold `json:"holds"`
	// Ended are the last ones that are over, the last first.
	Ended []record.EndedHold `json:"ended"`
}

// Hold is a node that is held for a pod.
type Hold struct {
	Asker objects.Ref `json:"asker"`
	Queue string      `json:"queue,omitempty"`
	Node  string      `json:"node"`
	Kind  record.Kind `json:"kind"`
	// State is planned, undecided, leaving or clear.
	State    string                      `json:"state"`
	Since    time.Time                   `json:"since"`
	Requests map[string]resources.Amount `json:"requests"`
	// WaitsFor are the pods that have still to leave.
	WaitsFor []Leaver `json:"waitsFor,omitempty"`
	// ClearSince is when the last of them was gone; Until is when the hold ends if the
	// asker does not start before. Both are set once no victim is left, Until only while
	// the asker has no node.
	ClearSince time.Time `json:"clearSince,omitzero"`
	Until      time.Time `json:"until,omitzero"`
	// Note says what a hold waits for where it is not pods that leave.
	Note string `json:"note,omitempty"`
	// Decision is the ID of the decision that made it.
	Decision string `json:"decision,omitempty"`
	// Taint is the taint of the node, by which other schedulers are kept off.
	Taint string `json:"taint,omitempty"`
}

// Leaver is a pod that has to leave before a hold is clear.
type Leaver struct {
	objects.Ref
	Queue string `json:"queue,omitempty"`
	Node  string `json:"node,omitempty"`
	// Chosen is true for a victim of the decision, false for a pod that was leaving
	// anyway. Deleting is true once it has a deletion timestamp.
	Chosen   bool `json:"chosen"`
	Deleting bool `json:"deleting"`
}

// HoldOf returns the document for a hold.
func HoldOf(v *inventory.View, h *reservations.Hold) Hold {
	out := Hold{
		Asker: objects.Ref{Namespace: h.Namespace, Name: h.Name, UID: h.Asker},
		State: holdState(h), Node: h.Node, Kind: record.KindOf(h.NodeBound),
		Since: h.Since, Requests: h.Request.Map(), Note: h.Note, Decision: h.Decision,
	}
	if asker := v.InHolds[h.Asker]; asker != nil {
		out.Queue = asker.Queue
	}
	if h.Clear() && !h.Patient() {
		out.ClearSince, out.Until = h.ClearSince, v.Until[h.Asker]
	}
	for _, uid := range h.Awaited {
		out.WaitsFor = append(out.WaitsFor, leaverOf(h, uid, v.InHolds[uid]))
	}
	return out
}

// leaverOf is a pod that a hold waits for; nil stands for one that is not known.
func leaverOf(h *reservations.Hold, uid types.UID, p *inventory.Pod) Leaver {
	l := Leaver{Ref: objects.Ref{UID: uid}, Chosen: slices.Contains(h.Chosen, uid)}
	if p != nil {
		l.Namespace, l.Name, l.Queue, l.Node, l.Deleting = p.Namespace, p.Name, p.Queue, p.Node, p.Deleting
	}
	return l
}

func holdState(h *reservations.Hold) string {
	switch {
	case len(h.Chosen) > 0 && !h.Committed():
		return holdPlanned
	case !h.Clear():
		return holdLeaving
	case h.Patient():
		return holdUndecided
	}
	return holdClear
}
