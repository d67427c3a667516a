package preemption

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// NodeWaits has the preemptors that can run on one node only and are checked again when
// that node changes. Its zero value is ready.
type NodeWaits struct {
	of      map[types.UID]string
	by      map[string]map[types.UID]struct{}
	changed []string            // awaited nodes, in the order in which they changed
	marked  map[string]struct{} // the same
}

// Set makes a preemptor wait for a node, and for no other one.
func (w *NodeWaits) Set(uid types.UID, node string) {
	w.Remove(uid)
	if w.of == nil {
		w.of, w.by, w.marked = map[types.UID]string{}, map[string]map[types.UID]struct{}{}, map[string]struct{}{}
	}
	if w.by[node] == nil {
		w.by[node] = map[types.UID]struct{}{}
	}
	w.of[uid] = node
	w.by[node][uid] = struct{}{}
}

// Remove ends the wait of a preemptor, and returns its node; empty for none.
func (w *NodeWaits) Remove(uid types.UID) string {
	node, waits := w.of[uid]
	if !waits {
		return ""
	}
	delete(w.of, uid)
	delete(w.by[node], uid)
	if len(w.by[node]) == 0 {
		delete(w.by, node)
	}
	return node
}

// Of returns the node that a preemptor waits for; empty for none.
func (w *NodeWaits) Of(uid types.UID) string { return w.of[uid] }

// All yields the preemptors and their nodes, in no particular order.
func (w *NodeWaits) All() iter.Seq2[types.UID, string] { return maps.All(w.of) }

// IsAwaited tells whether a preemptor waits for a node.
func (w *NodeWaits) IsAwaited(node string) bool { return len(w.by[node]) > 0 }

// Change notes that a node changed for plans.
func (w *NodeWaits) Change(node string) {
	if _, twice := w.marked[node]; twice || !w.IsAwaited(node) {
		return
	}
	w.marked[node] = struct{}{}
	w.changed = append(w.changed, node)
}

// Take returns the preemptors that wait for nodes that changed since the last call, by
// the order of the changes and by UID. They go on waiting.
func (w *NodeWaits) Take() []types.UID {
	var out []types.UID
	for _, node := range w.changed {
		out = append(out, slices.Sorted(maps.Keys(w.by[node]))...)
	}
	w.changed = nil
	clear(w.marked)
	return out
}

// Check verifies that the waits point both ways.
func (w *NodeWaits) Check() error {
	points := 0
	for node, uids := range w.by {
		points += len(uids)
		for uid := range uids {
			if w.of[uid] != node {
				return fmt.Errorf("node waits: pod %s does not wait for %s", uid, node)
			}
		}
	}
	if points != len(w.of) {
		return fmt.Errorf("node waits: %d pods wait, nodes list %d", len(w.of), points)
	}
	return nil
}
