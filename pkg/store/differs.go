package store

import (
	"fmt"

	"github.com/paddock-scheduler/paddock/pkg/objects"
)

// Differs describes how the record of a pod differs from the API server's pod; empty if
// they agree. r is nil for a pod that the store does not know; listed is nil for one that
// the API server does not have. An assumed pod is ahead of the API server; that is not a
// difference.
func Differs(r *PodRecord, listed *objects.Pod) string {
	ended := listed == nil || listed.Terminal || listed.Deleting && listed.Node == ""
	switch {
	case r == nil && ended:
		return ""
	case r == nil:
		return "the store does not know it"
	case ended && listed != nil && listed.Deleting && r.Node != "" && !listed.Terminal:
		return "" // assumed, and deleted meanwhile
	case ended:
		return "it has ended, and the store has it still"
	case r.Foreign != listed.Foreign:
		return fmt.Sprintf("foreign is %t, the store says %t", listed.Foreign, r.Foreign)
	case listed.Node == "" && r.Node != "":
		return ""
	}
	l := *listed
	l.Normalize()
	switch {
	case r.Node != l.Node:
		return fmt.Sprintf("it runs on node %s, the store says %s", l.Node, orNone(r.Node))
	case !r.Request.Add(r.Pod.Uncounted).Equal(l.Request):
		return fmt.Sprintf("it requests %v, the store charges %v", l.Request, r.Request)
	case r.Priority != l.Priority:
		return fmt.Sprintf("its priority is %d, the store says %d", l.Priority, r.Priority)
	case r.Deleting != l.Deleting:
		return fmt.Sprintf("being deleted is %t, the store says %t", l.Deleting, r.Deleting)
	case r.RequiredNode != l.RequiredNode:
		return fmt.Sprintf("the only node it can run on is %s, the store says %s", orNone(l.RequiredNode), orNone(r.RequiredNode))
	}
	return ""
}

func orNone(name string) string {
	if name == "" {
		return "none"
	}
	return name
}
