package preemption

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// KubeletRejections has pods that ended soon after they were bound to the node that was
// held for them, oldest first. Its zero value is ready.
//
// A kubelet refuses a pod if its node has no room for it (OutOfcpu, OutOfmemory, ...),
// because another scheduler bound a pod there at the same time. If room had been made for
// the refused pod, this is a lost hold, too, although it ended with a bind. The refused
// pod is over, so the loss, with the count of earlier losses, passes to the pod that its
// controller creates to replace it.
//
// The scheduler's informer does not have failed pods and reports a refused pod as
// deleted. So if a pod is gone within refusalTime of its bind, the executor checks how it
// ended:
//
//	gone ──► remembered, WorkInquire ──► KubeletRefused ──► the loss passes to the next pod of
//	             │        │                    │            the controller, present or future
//	             │        └ not refused        └─────────────────────────────────► forgotten,
//	             └ no answer                                                       when passed on,
//	                                                                               or when the
//	                                                                               pause ends
//
// At most MostRefusals are remembered; beyond that the oldest is forgotten.
type KubeletRejections struct{ list []*KubeletRejection }

const (
	// MostRefusals is how many pods are remembered.
	MostRefusals = 1000
	// refusalTime bounds the time from the bind of a pod to its refusal by the kubelet,
	// and the time for the executor's answer.
	refusalTime = time.Minute
)

// KubeletRejection is a pod that may have been refused by its kubelet.
type KubeletRejection struct {
	objects.Ref
	// Controller identifies the pods that replace it; for a node-bound pod, together with its node.
	Controller types.UID
	OnlyNode   string
	Hold       reservations.Hold
	Queue      string // path of its leaf; empty for none
	Took       string // which pods took the room meanwhile
	Losses     Losses
	Heir       types.UID // the pod that replaces it; empty while there is none
	refused    bool      // false while that is unknown
	until      time.Time // it is forgotten at this time
}

// MayBeRefused tells whether a pod that is gone now may have been refused, given when it
// was bound to the node that was held for it; zero for never.
func MayBeRefused(placedAt, now time.Time) bool {
	return !placedAt.IsZero() && now.Sub(placedAt) <= refusalTime
}

// Suspect remembers a pod until the answer of the executor.
func (r *KubeletRejections) Suspect(x KubeletRejection, now time.Time) {
	r.forget(now)
	if len(r.list) == MostRefusals {
		r.list = r.list[1:]
	}
	x.until = now.Add(refusalTime)
	r.list = append(r.list, &x)
}

// Answer notes how a pod ended: refused for a reason of the kubelet, or in another way if
// the reason is empty. It returns the pod if that is a loss, and nil otherwise.
func (r *KubeletRejections) Answer(uid types.UID, reason string, o *Options, now time.Time) *KubeletRejection {
	i := slices.IndexFunc(r.list, func(x *KubeletRejection) bool { return x.UID == uid && !x.refused })
	if i < 0 {
		return nil
	}
	x := r.list[i]
	if reason == "" {
		r.list = slices.Delete(r.list, i, i+1)
		return nil
	}
	x.refused = true
	why := reasons.New(reasons.HoldSuperseded, "%s; the kubelet has no room for pod %s/%s (%s)", x.Took, x.Namespace, x.Name, reason)
	x.Losses.lost = time.Time{} // it counts, also in the pause of the loss before
	x.Losses.Lose(why, "the pod that is made in its place", o, now)
	x.until = x.Losses.Until
	return x
}

// Done forgets a refused pod: its losses were passed on, or nothing can replace it.
func (r *KubeletRejections) Done(x *KubeletRejection) {
	r.list = slices.DeleteFunc(r.list, func(y *KubeletRejection) bool { return y == x })
}

// Replace notes that a new pod replaces the oldest remembered pod of its controller and
// node. It returns that pod if it is known to be refused, so that its losses pass to the
// new pod now, and nil otherwise.
func (r *KubeletRejections) Replace(p *objects.Pod, now time.Time) *KubeletRejection {
	if len(r.list) == 0 || p.Controller == "" || p.Node != "" {
		return nil
	}
	r.forget(now)
	for _, x := range r.list {
		if x.Controller == p.Controller && x.OnlyNode == p.RequiredNode && x.Heir == "" {
			if x.Heir = p.UID; x.refused {
				return x
			}
			return nil
		}
	}
	return nil
}

func (r *KubeletRejections) forget(now time.Time) {
	r.list = slices.DeleteFunc(r.list, func(x *KubeletRejection) bool { return !now.Before(x.until) })
}

// Check verifies that refusals are bounded and still needed.
func (r *KubeletRejections) Check() error {
	if len(r.list) > MostRefusals {
		return fmt.Errorf("refusals: %d, at most %d are remembered", len(r.list), MostRefusals)
	}
	for _, x := range r.list {
		if x.UID == "" || x.until.IsZero() || x.refused && (x.Controller == "" || x.Losses.Count < 1) {
			return errors.New("refusals: one has no UID, no end or no losses")
		}
	}
	return nil
}
