package preemption

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// OwnTime bounds for how long the node-bound holds of a namespace, all together, keep a node
// closed while they wait for pods of their own: for one time-out of a hold in six (D4). Else a
// tenant could close nodes for ever, with pods that take long to stop. The zero value has no
// holds.
type OwnTime struct {
	of map[nodeOf]*allowance
	by map[types.UID]ownHold // the holds that wait for pods of their own, by preemptor
}

// ownHold is a hold that waits for pods of its preemptor's own.
type ownHold struct {
	nodeOf
	left time.Duration // what was left when it began to wait
}

// Left is for how long a preemptor may hold a node for pods of its own. For one that does it
// already, that is the time from when it began to wait.
func (o *OwnTime) Left(uid types.UID, node, namespace string, timeout time.Duration, now time.Time) time.Duration {
	if h, waits := o.by[uid]; waits {
		return h.left
	}
	a := o.of[nodeOf{node, namespace}]
	if a == nil || a.users == 0 && !now.Before(a.periodEnds) {
		return timeout
	}
	return max(timeout-a.spent(now), 0)
}

// Begin notes that the hold of a preemptor waits for pods of its own since a time, and
// returns the time that is left for it from then on. A hold that waits already keeps its time.
func (o *OwnTime) Begin(uid types.UID, node, namespace string, timeout time.Duration, since time.Time) (left time.Duration, begins bool) {
	if h, waits := o.by[uid]; waits {
		return h.left, false
	}
	if o.by == nil {
		o.by, o.of = map[types.UID]ownHold{}, map[nodeOf]*allowance{}
	}
	maps.DeleteFunc(o.of, func(_ nodeOf, a *allowance) bool { return a.users == 0 && !since.Before(a.periodEnds) })
	left = o.Left(uid, node, namespace, timeout, since)
	at := nodeOf{node, namespace}
	if o.of[at] == nil {
		o.of[at] = &allowance{}
	}
	o.of[at].renew(6*timeout, since)
	o.of[at].enter(since)
	o.by[uid] = ownHold{at, left}
	return left, true
}

// End notes that a hold is over.
func (o *OwnTime) End(uid types.UID, now time.Time) {
	if h, waits := o.by[uid]; waits {
		o.of[h.nodeOf].leave(now)
		delete(o.by, uid)
	}
}

// Check verifies that each hold counts, and that it is a hold.
func (o *OwnTime) Check(holds func(types.UID) bool) error {
	users := map[nodeOf]int{}
	for uid, h := range o.by {
		if !holds(uid) {
			return fmt.Errorf("own time: %s holds no node", uid)
		}
		users[h.nodeOf]++
	}
	for at, a := range o.of {
		if a.users != users[at] {
			return fmt.Errorf("own time: %d holds of namespace %s wait for their own on node %s, there are %d", a.users, at.namespace, at.node, users[at])
		}
	}
	return nil
}
