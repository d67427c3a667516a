package documents

import (
	"fmt"
)

// RoleHeader is on each answer of a standby, with the value RoleStandby. A standby has the
// same books as the leader, but makes no attempts and no decisions and does not know their
// results.
const (
	RoleHeader  = "Paddock-Role"
	RoleStandby = "standby"
)

// AskLeader is what to do where only the leader knows.
const AskLeader = "This replica is a standby and does not know what was tried for the pod. " +
	"Ask the leader (the scheduler's lease names it), or use kubectl describe pod."

// StandBy marks the explanation as that of a standby. If attempts or decisions may matter,
// it says to ask the leader.
func (x *Explanation) StandBy() {
	x.Standby = true
	switch x.State {
	case podTried:
		x.Summary = fmt.Sprintf("Pod %s/%s was let through. Only the leader knows the result; this replica is a standby.", x.Namespace, x.Name)
	case podWaiting, podStuck, podBacksOff, podHolds:
	default:
		return
	}
	x.ToDo = append(x.ToDo, AskLeader)
}
