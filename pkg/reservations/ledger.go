package reservations

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Ledger is all holds. The zero value is not ready; use NewLedger. Views share
// its holds and its lists by node: those are replaced, never changed.
type Ledger struct {
	byAsker map[types.UID]*Hold
	byNode  map[string][]*Hold // in serving order
	waiting map[types.UID][]*Hold
	seq     uint64
}

// NewLedger returns a ledger without holds.
func NewLedger() *Ledger {
	return &Ledger{byAsker: map[types.UID]*Hold{}, byNode: map[string][]*Hold{}, waiting: map[types.UID][]*Hold{}}
}

// Place begins a hold. The asker must have none, and asker and node be named. A
// hold without victims is clear since its Since, unless it says otherwise.
func (l *Ledger) Place(h Hold) error {
	switch {
	case h.Asker == "":
		return errors.New("place hold: the asker has no UID")
	case h.Node == "":
		return fmt.Errorf("place hold of %s/%s: no node is named", h.Namespace, h.Name)
	case h.Since.IsZero():
		return fmt.Errorf("place hold of %s/%s: it has no beginning", h.Namespace, h.Name)
	case l.byAsker[h.Asker] != nil:
		return fmt.Errorf("place hold of %s/%s on node %s: it holds node %s", h.Namespace, h.Name, h.Node, l.byAsker[h.Asker].Node)
	}
	l.seq++
	placed := h.copy()
	placed.seq = l.seq
	slices.Sort(placed.Victims)
	placed.Victims = slices.Compact(placed.Victims)
	slices.Sort(placed.Chosen)
	placed.Chosen = slices.Compact(placed.Chosen)
	switch {
	case !placed.Clear():
		placed.ClearSince = time.Time{}
	case placed.ClearSince.IsZero():
		placed.ClearSince = placed.Since
	}
	p := &placed
	l.byAsker[p.Asker] = p
	at, _ := slices.BinarySearchFunc(l.byNode[p.Node], p, compareHolds)
	l.byNode[p.Node] = slices.Insert(slices.Clone(l.byNode[p.Node]), at, p)
	for _, v := range p.Victims {
		l.waiting[v] = append(l.waiting[v], p)
	}
	return nil
}

// VictimGone tells that a pod is gone, whoever waited for it. It returns the
// holds that became clear by it, in order of their askers.
func (l *Ledger) VictimGone(victim types.UID, now time.Time) []Hold {
	var cleared []Hold
	for _, old := range slices.Clone(l.waiting[victim]) {
		h := old.copy()
		h.Victims = slices.DeleteFunc(h.Victims, func(v types.UID) bool { return v == victim })
		if h.Clear() {
			h.ClearSince = now
			cleared = append(cleared, h.copy())
		}
		l.replace(old, &h)
	}
	delete(l.waiting, victim)
	slices.SortFunc(cleared, func(a, b Hold) int { return cmp.Compare(a.Asker, b.Asker) })
	return cleared
}

// End ends the hold of an asker and returns it; false when it has none.
func (l *Ledger) End(asker types.UID) (Hold, bool) {
	h := l.byAsker[asker]
	if h == nil {
		return Hold{}, false
	}
	delete(l.byAsker, asker)
	l.byNode[h.Node] = slices.DeleteFunc(slices.Clone(l.byNode[h.Node]), func(x *Hold) bool { return x == h })
	if len(l.byNode[h.Node]) == 0 {
		delete(l.byNode, h.Node)
	}
	for _, v := range h.Victims {
		l.waiting[v] = slices.DeleteFunc(l.waiting[v], func(x *Hold) bool { return x == h })
		if len(l.waiting[v]) == 0 {
			delete(l.waiting, v)
		}
	}
	return h.copy(), true
}

// EndNode ends all holds of a node and returns them in serving order.
func (l *Ledger) EndNode(node string) []Hold {
	var ended []Hold
	for _, h := range slices.Clone(l.byNode[node]) {
		if e, ok := l.End(h.Asker); ok {
			ended = append(ended, e)
		}
	}
	return ended
}

// Overdue returns the holds that have been clear for the time-out, the longest
// first, but for those of askers that are busy. It does not end them.
func (l *Ledger) Overdue(now time.Time, timeout time.Duration, busy func(asker types.UID) bool) []Hold {
	var out []Hold
	for _, h := range l.byAsker {
		if h.Clear() && !busy(h.Asker) && now.Sub(h.ClearSince) >= timeout {
			out = append(out, h.copy())
		}
	}
	slices.SortFunc(out, func(a, b Hold) int {
		return cmp.Or(a.ClearSince.Compare(b.ClearSince), cmp.Compare(a.Asker, b.Asker))
	})
	return out
}

// NextDue returns when the next hold times out, and false when none will as
// things are. Askers that are busy have time.
func (l *Ledger) NextDue(timeout time.Duration, busy func(asker types.UID) bool) (time.Time, bool) {
	var next time.Time
	for _, h := range l.byAsker {
		if due := h.ClearSince.Add(timeout); h.Clear() && !busy(h.Asker) && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next, !next.IsZero()
}

// Of returns the hold of an asker and whether it has one.
func (l *Ledger) Of(asker types.UID) (Hold, bool) {
	if h := l.byAsker[asker]; h != nil {
		return h.copy(), true
	}
	return Hold{}, false
}

// Holders returns the holds of a node in the order they are served.
func (l *Ledger) Holders(node string) []Hold {
	out := make([]Hold, 0, len(l.byNode[node]))
	for _, h := range l.byNode[node] {
		out = append(out, h.copy())
	}
	return out
}

// Held tells whether any node is held at all: if not, everybody may use every node.
func (l *Ledger) Held() bool { return len(l.byAsker) > 0 }

// Nodes returns the names of the held nodes, sorted.
func (l *Ledger) Nodes() []string { return slices.Sorted(maps.Keys(l.byNode)) }

// Commit notes that the first disruption for an asker is about to happen; false
// when it has no hold.
func (l *Ledger) Commit(asker types.UID) bool {
	h := l.byAsker[asker]
	if h == nil {
		return false
	}
	c := h.copy()
	c.Committed = true
	l.replace(h, &c)
	return true
}

// replace puts a changed copy in the place of a hold.
func (l *Ledger) replace(old, changed *Hold) {
	swap := func(list []*Hold) []*Hold {
		list = slices.Clone(list)
		list[slices.Index(list, old)] = changed
		return list
	}
	l.byAsker[old.Asker] = changed
	l.byNode[old.Node] = swap(l.byNode[old.Node])
	for _, v := range old.Victims {
		l.waiting[v] = swap(l.waiting[v])
	}
}

// Waiting returns the askers that wait for a pod to be gone, sorted.
func (l *Ledger) Waiting(victim types.UID) []types.UID {
	var out []types.UID
	for _, h := range l.waiting[victim] {
		out = append(out, h.Asker)
	}
	slices.Sort(out)
	return out
}

// MayUse tells whether a pod may be placed on a node; see [View.MayUse].
func (l *Ledger) MayUse(node string, pod types.UID, required bool) Pass {
	v := View{byAsker: l.byAsker, byNode: l.byNode}
	return v.MayUse(node, pod, required)
}

// Check verifies that all indexes say the same.
func (l *Ledger) Check() error {
	n := 0
	for _, node := range l.Nodes() {
		n += len(l.byNode[node])
		for i := range l.byNode[node] {
			if err := l.checkHold(node, i); err != nil {
				return fmt.Errorf("node %s: hold of %s %w", node, l.byNode[node][i].Asker, err)
			}
		}
	}
	if n != len(l.byAsker) {
		return fmt.Errorf("%d holds by node, %d by asker", n, len(l.byAsker))
	}
	for v, holds := range l.waiting {
		for _, h := range holds {
			if l.byAsker[h.Asker] != h || !slices.Contains(h.Victims, v) {
				return fmt.Errorf("victim %s has a hold of %s that is over", v, h.Asker)
			}
		}
	}
	return nil
}

func (l *Ledger) checkHold(node string, i int) error {
	h := l.byNode[node][i]
	switch {
	case l.byAsker[h.Asker] != h || h.Node != node:
		return errors.New("is not that of its asker")
	case i > 0 && compareHolds(l.byNode[node][i-1], h) >= 0:
		return errors.New("is out of order")
	case h.Clear() == h.ClearSince.IsZero():
		return fmt.Errorf("has %d victims and is clear since %v", len(h.Victims), h.ClearSince)
	}
	for _, v := range h.Victims {
		if !slices.Contains(l.waiting[v], h) {
			return fmt.Errorf("will not be told that %s is gone", v)
		}
	}
	return nil
}
