package preemption

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// OwnTime limits how long the node-bound holds of a namespace, all together, keep room on a
// node while they wait for pods of that namespace: for one hold time-out in every six (D4). Otherwise a
// tenant could keep room for ever, with pods that take long to stop. The zero value has no holds.
type OwnTime struct {
	allowances map[nodeOf]*allowance
	waiting    map[types.UID]ownHold // the holds that wait for pods of their own, by asker
}

// ownHold is a hold that waits for pods of its asker's own.
type ownHold struct {
	nodeOf
	left time.Duration // what was left when it began to wait
}

// Left is how long an asker may hold a node while it waits for pods of its own namespace. For
// one that waits already, it is what was left when it began to wait.
func (o *OwnTime) Left(uid types.UID, node, namespace string, timeout time.Duration, now time.Time) time.Duration {
	if h, waits := o.waiting[uid]; waits {
		return h.left
	}
	a := o.allowances[nodeOf{node, namespace}]
	if a == nil || a.isOver(now) {
		return timeout
	}
	return max(timeout-a.spent(now), 0)
}

// Begin notes that the hold of an asker waits for pods of its own since a time, and
// returns the time that is left for it from then on. A hold that waits already keeps its time.
func (o *OwnTime) Begin(uid types.UID, node, namespace string, timeout time.Duration, since time.Time) (left time.Duration, begins bool) {
	if h, waits := o.waiting[uid]; waits {
		return h.left, false
	}
	if o.waiting == nil {
		o.waiting, o.allowances = map[types.UID]ownHold{}, map[nodeOf]*allowance{}
	}
	maps.DeleteFunc(o.allowances, func(_ nodeOf, a *allowance) bool { return a.isOver(since) })
	left = o.Left(uid, node, namespace, timeout, since)
	at := nodeOf{node, namespace}
	if o.allowances[at] == nil {
		o.allowances[at] = &allowance{}
	}
	o.allowances[at].beginPeriod(6*timeout, since)
	o.allowances[at].enter(since)
	o.waiting[uid] = ownHold{at, left}
	return left, true
}

// End notes that a hold is over.
func (o *OwnTime) End(uid types.UID, now time.Time) {
	if h, waits := o.waiting[uid]; waits {
		o.allowances[h.nodeOf].leave(now)
		delete(o.waiting, uid)
	}
}

// Check verifies that each hold counts, and that it is a hold.
func (o *OwnTime) Check(holds func(types.UID) bool) error {
	users := map[nodeOf]int{}
	for uid, h := range o.waiting {
		if !holds(uid) {
			return fmt.Errorf("own time: %s holds no node", uid)
		}
		users[h.nodeOf]++
	}
	for at, a := range o.allowances {
		if a.usersNow != users[at] {
			return fmt.Errorf("own time: %d holds of namespace %s wait for their own on node %s, there are %d", a.usersNow, at.namespace, at.node, users[at])
		}
	}
	return nil
}
