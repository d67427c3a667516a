package reservations

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// View is a ledger at one moment: immutable, for any number of readers. The
// zero value has no holds.
type View struct{ index }

// Held tells whether any node is held.
func (v *View) Held() bool { return v.size > 0 }

// Concerns tells whether a hold has a say in whether the pod may use the node:
// if not, it may.
func (v *View) Concerns(node string, pod types.UID) bool {
	return v.at(node) != nil || v.of(pod) != nil
}

// Pass is the answer to "may this pod use this node".
type Pass struct {
	OK bool
	// Holder is the asker in the way; the asker itself where it holds another node.
	Holder Hold
}

// MayUse tells whether a pod may be placed on a node (LAWS, holds; D1):
//
//   - a pod that holds a node may use that one only, once pods were disrupted
//     for it,
//   - a required-node pod passes ordinary holds, and waits for the required-node
//     holders before it,
//   - an ordinary holder waits for every required-node holder of its node,
//   - all other pods keep off a held node.
func (v *View) MayUse(node string, pod types.UID, required bool) Pass {
	own := v.of(pod)
	if own != nil && own.Node != node && own.Binding() {
		return Pass{Holder: own.copy()}
	}
	here := own != nil && own.Node == node
	for _, h := range v.at(node) {
		switch {
		case h.Asker == pod:
			return Pass{OK: true} // no holder is before it
		case h.Required, !required && !here:
			return Pass{Holder: h.copy()}
		case required:
			return Pass{OK: true} // only ordinary holders are left
		}
		// Both are ordinary holders: the plan of the later one counted the
		// earlier one as placed, so they do not stand in each other's way.
	}
	return Pass{OK: true}
}

// MayJoin tells whether a plan may count on a node that others hold: it may
// unless a required-node pod holds it.
func (v *View) MayJoin(node string, pod types.UID) Pass {
	for _, h := range v.at(node) {
		if h.Required && h.Asker != pod {
			return Pass{Holder: h.copy()}
		}
	}
	return Pass{OK: true}
}

// On returns the holds of a node, in serving order.
func (v *View) On(node string) []Hold {
	holds := v.at(node)
	out := make([]Hold, 0, len(holds))
	for _, h := range holds {
		out = append(out, h.copy())
	}
	return out
}

// All returns every hold, by node and then in serving order.
func (v *View) All() []Hold {
	var nodes []string
	for i := range shards {
		nodes = slices.AppendSeq(nodes, maps.Keys(v.nodes[i]))
	}
	slices.Sort(nodes)
	out := make([]Hold, 0, v.size)
	for _, node := range nodes {
		out = append(out, v.On(node)...)
	}
	return out
}

// Of returns the hold of an asker and whether it has one.
func (v *View) Of(asker types.UID) (Hold, bool) {
	if h := v.of(asker); h != nil {
		return h.copy(), true
	}
	return Hold{}, false
}

// Beside returns the other askers that hold the node an asker holds, in serving order;
// none where it holds none.
func (v *View) Beside(asker types.UID) []Hold {
	own := v.of(asker)
	if own == nil {
		return nil
	}
	var out []Hold
	for _, h := range v.at(own.Node) {
		if h != own {
			out = append(out, h.copy())
		}
	}
	return out
}
