package documents

import (
	"fmt"
)

// AskLeader is what to do where only the replica that leads knows.
const AskLeader = "The replica that answered stands by: what was tried for the pod, and what that came to, only the one that leads knows. " +
	"Ask that one (the lease that they share names it), or look at kubectl describe pod."

// StandBy makes it the answer of a replica that stands by: of a pod that waits for more
// than what the books say, it is said that others know more.
func (x *Explanation) StandBy() {
	x.Standby = true
	switch x.State {
	case podTried:
		x.Summary = fmt.Sprintf("Pod %s/%s was let through; what came of it the replica that leads knows, and this one stands by.", x.Namespace, x.Name)
	case podWaiting, podStuck, podBacksOff, podHolds:
	default:
		return
	}
	x.ToDo = append(x.ToDo, AskLeader)
}
