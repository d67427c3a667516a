package preemption

import (
	"fmt"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// MakingRoom is why an asker that holds a node waits.
func MakingRoom(h *reservations.Hold) reasons.Reason {
	switch code := reasons.OfHold(len(h.Chosen), h.Note); code {
	case reasons.MakingRoom:
		return reasons.New(code, "node %s is held for the pod: pods that make room for it: %d", h.Node, len(h.Chosen))
	case reasons.RoomAwaited:
		return reasons.New(code, "node %s is held for the pod: %s", h.Node, h.Note)
	default:
		return reasons.New(code, "node %s is held for the pod: it fits once the pods that are leaving are gone", h.Node)
	}
}

// HeldReason is why a node-bound asker that holds its node waits.
func HeldReason(d *daemonset.Decision) reasons.Reason {
	switch code := reasons.OfHold(len(d.Victims), string(d.Stopped)); code {
	case reasons.MakingRoom:
		return reasons.New(code, "node %s, the only one the pod can run on, is held for it: pods that make room for it: %d",
			d.Node, len(d.Victims))
	case reasons.RoomAwaited:
		return reasons.New(code, "%s", d.Sentence())
	default:
		return reasons.New(code,
			"node %s, the only one the pod can run on, is held for it: it fits there once pods that leave are gone and those before it are placed", d.Node)
	}
}

const mostNamed = 5

// Listed joins the first names and counts the others; empty without names.
func Listed(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed:mostNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// OneLine returns a text with its lines joined.
func OneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }
