package reservations

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// shards is the number of parts in which the holds are stored. A view shares the
// unchanged parts with the previous view. The cost of publishing one more hold therefore
// does not grow with the number of held nodes.
const shards = 256

// index finds holds by asker and by node. Its methods are those of Ledger and of View.
type index struct {
	askers [shards]map[types.UID]*Hold
	nodes  [shards]map[string]nodeHolds
}

// nodeHolds are the holds of a node, in serving order, and the askers of those that keep only their
// requests.
type nodeHolds struct {
	holds       []*Hold
	requestOnly map[types.UID]bool
}

// shardOf distributes names over the shards (FNV-1a).
func shardOf(name string) int {
	sum := uint32(2166136261)
	for i := range len(name) {
		sum = (sum ^ uint32(name[i])) * 16777619
	}
	return int((sum ^ sum>>16) % shards)
}

func (x *index) of(asker types.UID) *Hold { return x.askers[shardOf(string(asker))][asker] }

func (x *index) at(node string) []*Hold { return x.nodes[shardOf(node)][node].holds }

// Of returns the hold of an asker and whether the asker has one.
func (x *index) Of(asker types.UID) (Hold, bool) {
	if h := x.of(asker); h != nil {
		return h.copy(), true
	}
	return Hold{}, false
}

// Placed tells whether the asker of a hold has a node.
func (x *index) Placed(asker types.UID) bool {
	h := x.of(asker)
	return h != nil && h.placed
}

// On returns the holds of a node, in serving order.
func (x *index) On(node string) []Hold {
	holds := x.at(node)
	out := make([]Hold, 0, len(holds))
	for _, h := range holds {
		out = append(out, h.copy())
	}
	return out
}

// Nodes returns the names of the held nodes, sorted.
func (x *index) Nodes() []string {
	var out []string
	for _, part := range x.nodes {
		out = slices.AppendSeq(out, maps.Keys(part))
	}
	slices.Sort(out)
	return out
}

// parts records which shards of an index changed, and whether any did.
type parts struct {
	askers, nodes [shards]bool
	any           bool
}

// setAsker replaces the hold of an asker; nil removes it.
func (l *Ledger) setAsker(asker types.UID, h *Hold) {
	i := shardOf(string(asker))
	l.changed.askers[i], l.changed.any = true, true
	if h == nil {
		delete(l.askers[i], asker)
		return
	}
	if l.askers[i] == nil {
		l.askers[i] = map[types.UID]*Hold{}
	}
	l.askers[i][asker] = h
}

// setNode replaces the holds of a node; an empty list removes them.
func (l *Ledger) setNode(node string, holds []*Hold) {
	i := shardOf(node)
	l.changed.nodes[i], l.changed.any = true, true
	if len(holds) == 0 {
		delete(l.nodes[i], node)
		return
	}
	if l.nodes[i] == nil {
		l.nodes[i] = map[string]nodeHolds{}
	}
	l.nodes[i][node] = nodeHolds{holds, requestOnly(holds)}
}

// View returns the current state of the ledger: the same view as the last call if nothing
// changed. Its cost is proportional to what changed.
func (l *Ledger) View() *View {
	if !l.changed.any {
		return l.seen
	}
	v := &View{index: l.seen.index, size: len(l.due)}
	for i := range shards {
		if l.changed.askers[i] {
			v.askers[i] = maps.Clone(l.askers[i])
		}
		if l.changed.nodes[i] {
			v.nodes[i] = maps.Clone(l.nodes[i])
		}
	}
	l.changed, l.seen = parts{}, v
	return v
}
