package reservations

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// View is an immutable snapshot of a ledger. Any number of goroutines may read it. The
// zero value has no holds.
type View struct {
	index
	size int // number of holds
}

// Held reports whether any node is held.
func (v *View) Held() bool { return v.size > 0 }

// Concerns reports whether any hold affects whether the pod may use the node. If none
// does, the pod may use it.
func (v *View) Concerns(node string, pod types.UID) bool {
	return v.at(node) != nil || v.of(pod) != nil
}

// Pass answers whether a pod may use a node.
type Pass struct {
	OK bool
	// Holder is the hold that blocks the pod. It is the pod's own hold if the pod holds
	// another node.
	Holder Hold
}

// Pod is what the holds know of a pod that needs a node.
type Pod struct {
	UID       types.UID
	Namespace string
	Group     string // its PodGroup, as NAMESPACE/NAME; empty for none
	Required  bool   // it can run on the node in question only
}

// MayUse reports whether a pod may be placed on a node (docs/laws.md, holds; D1):
//
//   - a pod that holds a node may use only that node, once pods were disrupted for it,
//   - a node-bound pod ignores ordinary holds, and waits for the node-bound holders before it,
//   - an ordinary holder waits for every node-bound holder of its node,
//   - all other pods may not use a held node,
//   - a holder that has a node blocks no other pod: its request is counted there,
//   - a holder that waits only for pods of its own namespace blocks no pod of another namespace, if
//     there is room for both: see [View.Keeping].
//
// Ordinary holds of other members of the pod's PodGroup do not block it: they start together, and
// the plan of the holder counted the members that had a place.
func (x *index) MayUse(node string, pod Pod) Pass {
	own := x.of(pod.UID)
	if own != nil && own.Node != node && own.OnlyThisNode() {
		return Pass{Holder: own.copy()}
	}
	here := own != nil && own.Node == node
	for _, h := range x.at(node) {
		switch {
		case h.Asker == pod.UID:
			return Pass{OK: true} // no holder is before it
		case h.placed:
		case pod.Group != "" && h.Group == pod.Group && !h.NodeBound:
		case x.yields(h, pod.Namespace):
		case h.NodeBound, !pod.Required && !here:
			return Pass{Holder: h.copy()}
		case pod.Required:
			return Pass{OK: true} // only ordinary holders are left
		}
		// Both are ordinary holders: the plan of the later one counted the earlier one as
		// placed, so neither blocks the other.
	}
	return Pass{OK: true}
}

// requestOnly returns the askers of holds of a node that keep the node from pods of the asker's namespace
// only, and from others no more than the request (docs/laws.md, holds): they waited for pods of their
// own namespace, and for no others any more. The user of these pods decides how long they stay. Among
// node-bound holders without a PodGroup a pod counts for all that wait for it, if it is one of its
// own to any that has no node yet.
func requestOnly(holds []*Hold) map[types.UID]bool {
	var owned, out map[types.UID]bool
	for _, h := range holds {
		for _, uid := range h.Own {
			if owned == nil {
				owned, out = map[types.UID]bool{}, map[types.UID]bool{}
			}
			owned[uid] = owned[uid] || h.NodeBound && !h.placed
		}
	}
	for _, h := range holds {
		shares := h.NodeBound && h.Group == ""
		others := slices.ContainsFunc(h.Awaited, func(uid types.UID) bool {
			_, own := slices.BinarySearch(h.Own, uid)
			return !own && !(shares && owned[uid])
		})
		if len(owned) > 0 && len(h.Own)+len(h.Awaited) > 0 && !others {
			out[h.Asker] = true
		}
	}
	return out
}

// RequestOnly returns the askers of holds of a node that keep only their requests; do not modify it.
func (x *index) RequestOnly(node string) map[types.UID]bool {
	return x.nodes[shardOf(node)][node].requestOnly
}

// yields tells whether a hold keeps only its request from pods of a namespace.
func (x *index) yields(h *Hold, namespace string) bool {
	return h.Namespace != namespace && x.RequestOnly(h.Node)[h.Asker]
}

// Keeping returns the holds of a node that keep their requests from a pod, and not the node, and of
// which the asker has no node yet. A pod that holds the node leaves room for the node-bound holders
// before it, and a node-bound pod without a hold there for all node-bound holders.
func (v *View) Keeping(node string, pod Pod) (out []Hold) {
	own := v.of(pod.UID)
	first := pod.Required || own != nil && own.Node == node
	for _, h := range v.at(node) {
		switch {
		case h == own:
			return out
		case !h.placed && v.yields(h, pod.Namespace) && (h.NodeBound || !first):
			out = append(out, h.copy())
		}
	}
	return out
}

// LeftBeside returns what a pod may use of the free room of a node, so that each of the holders fits
// there in its turn: now if it does, else once the pods are gone that it and those before it wait for.
// The holders are in serving order. uses returns what a pod uses on the node; zero if it is not there.
func LeftBeside(free resources.Vector, holders []Hold, uses func(types.UID) resources.Vector) resources.Vector {
	left, later, counted := free, free, map[types.UID]bool{}
	for i := range holders {
		h := &holders[i]
		for _, uid := range h.Awaited {
			if !counted[uid] {
				later, counted[uid] = later.Add(uses(uid)), true
			}
		}
		if later = later.Sub(h.Request); left.Covers(h.Request) {
			left = left.Sub(h.Request)
		}
		left = left.Sub(left.Sub(later).Floor0()) // the smaller of both
	}
	return left
}

// MayJoin reports whether a plan may use a node that other pods hold. It may unless a
// node-bound pod holds the node.
func (v *View) MayJoin(node string, pod types.UID) Pass {
	for _, h := range v.at(node) {
		if h.NodeBound && h.Asker != pod && !h.placed {
			return Pass{Holder: h.copy()}
		}
	}
	return Pass{OK: true}
}

// All returns every hold, ordered by node and then in serving order.
func (v *View) All() []Hold {
	out := make([]Hold, 0, v.size)
	for _, node := range v.Nodes() {
		out = append(out, v.On(node)...)
	}
	return out
}

// OfGroup returns the holds of the members of a PodGroup, in no particular order; none for an empty
// name.
func (v *View) OfGroup(group string) (out []Hold) {
	if group == "" {
		return nil
	}
	for i := range v.askers {
		for _, h := range v.askers[i] {
			if h.Group == group {
				out = append(out, h.copy())
			}
		}
	}
	return out
}

// Beside returns the other askers that hold the same node as an asker, in serving order.
// It returns none if the asker holds no node.
func (v *View) Beside(asker types.UID) []Hold {
	own := v.of(asker)
	if own == nil {
		return nil
	}
	return slices.DeleteFunc(v.On(own.Node), func(h Hold) bool { return h.Asker == asker })
}
