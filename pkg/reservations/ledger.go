package reservations

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Ledger contains all holds. The zero value is not usable; use NewLedger. Views share its
// holds and its lists by node, which are replaced and never modified.
type Ledger struct {
	index
	changed parts // since the last view
	seen    *View // the last view
	waiting map[types.UID][]*Hold
	// due contains all holds in the order in which they time out.
	due []*Hold
	seq uint64
}

// NewLedger returns a ledger without holds.
func NewLedger() *Ledger { return &Ledger{seen: &View{}, waiting: map[types.UID][]*Hold{}} }

// Place begins a hold. The asker must have none, and asker and node must be named. A hold
// without victims is clear since its Since, unless its ClearSince is set.
func (l *Ledger) Place(h Hold) error {
	switch {
	case h.Asker == "":
		return errors.New("place hold: the asker has no UID")
	case h.Node == "":
		return fmt.Errorf("place hold of %s/%s: no node is named", h.Namespace, h.Name)
	case len(h.Chosen) == 0 && !h.NodeBound:
		return fmt.Errorf("place hold of %s/%s on node %s: no pod was chosen to go for it", h.Namespace, h.Name, h.Node)
	case h.Since.IsZero():
		return fmt.Errorf("place hold of %s/%s: it has no beginning", h.Namespace, h.Name)
	case l.of(h.Asker) != nil:
		return fmt.Errorf("place hold of %s/%s on node %s: it holds node %s", h.Namespace, h.Name, h.Node, l.of(h.Asker).Node)
	}
	l.seq++
	c := h.copy()
	c.seq, c.placed = l.seq, false
	c.normalize(c.Since)
	p := &c
	l.setAsker(p.Asker, p)
	here := l.at(p.Node)
	at, _ := slices.BinarySearchFunc(here, p, compareHolds)
	l.setNode(p.Node, slices.Insert(slices.Clone(here), at, p))
	l.await(p)
	return nil
}

// normalize sorts the pods of a hold. A hold that waits for no pod becomes clear since the given
// time, unless its ClearSince is set.
func (h *Hold) normalize(since time.Time) {
	slices.Sort(h.Awaited)
	h.Awaited = slices.Compact(h.Awaited)
	slices.Sort(h.Own)
	h.Own = slices.Compact(h.Own)
	slices.Sort(h.Chosen)
	h.Chosen = slices.Compact(h.Chosen)
	switch {
	case !h.Clear():
		h.ClearSince = time.Time{}
	case h.ClearSince.IsZero():
		h.ClearSince = since
	}
}

// await adds a hold to the lists by awaited pod and by time-out.
func (l *Ledger) await(h *Hold) {
	for _, v := range h.Awaited {
		l.waiting[v] = append(l.waiting[v], h)
	}
	at, _ := slices.BinarySearchFunc(l.due, h, dueFirst)
	l.due = slices.Insert(l.due, at, h)
}

// unawait removes a hold from these lists.
func (l *Ledger) unawait(h *Hold) {
	for _, v := range h.Awaited {
		l.waiting[v] = slices.DeleteFunc(slices.Clone(l.waiting[v]), func(x *Hold) bool { return x == h })
		if len(l.waiting[v]) == 0 {
			delete(l.waiting, v)
		}
	}
	at, _ := slices.BinarySearchFunc(l.due, h, dueFirst)
	l.due = slices.Delete(l.due, at, at+1)
}

// dueFirst orders holds by the start of their time-out, the earliest first, then by
// asker.
func dueFirst(a, b *Hold) int {
	return cmp.Or(a.TimeFrom().Compare(b.TimeFrom()), cmp.Compare(a.Asker, b.Asker))
}

// Choose replaces the pods that the hold of an asker waits for, and its chosen victims,
// by those of a later decision. The hold keeps its beginning and its place among the
// holders of its node. LatestFrom may become earlier. Choose has no effect if the asker
// has no hold.
func (l *Ledger) Choose(asker types.UID, d Hold, now time.Time) {
	old := l.of(asker)
	if old == nil {
		return
	}
	h := old.copy()
	h.Chosen, h.Awaited, h.Own = slices.Clone(d.Chosen), slices.Clone(d.Awaited), slices.Clone(d.Own)
	h.Decision, h.Note = d.Decision, d.Note
	if !d.LatestFrom.IsZero() && d.LatestFrom.Before(h.LatestFrom) {
		h.LatestFrom = d.LatestFrom
	}
	if old.Patient() && !d.Patient() {
		h.ClearSince = time.Time{}
	}
	h.normalize(now)
	l.replace(old, &h)
}

// VictimGone removes a pod that is gone from all holds that wait for it. It returns the askers of
// these holds, sorted.
func (l *Ledger) VictimGone(victim types.UID, now time.Time) []types.UID {
	return l.remove(victim, func(*Hold) time.Time { return now })
}

// VictimStays is VictimGone for a pod that is still there and that no hold counts on any
// more. The time-out of a hold continues and does not restart.
func (l *Ledger) VictimStays(victim types.UID) []types.UID {
	return l.remove(victim, (*Hold).TimeFrom)
}

// remove removes a pod from all holds that wait for it, and returns their askers. clearSince is for
// those that wait for no other.
func (l *Ledger) remove(victim types.UID, clearSince func(*Hold) time.Time) (waited []types.UID) {
	for _, old := range slices.Clone(l.waiting[victim]) {
		h := old.copy()
		h.Awaited = slices.DeleteFunc(h.Awaited, func(v types.UID) bool { return v == victim })
		if h.Clear() {
			h.ClearSince = clearSince(old)
		}
		l.replace(old, &h)
		waited = append(waited, h.Asker)
	}
	slices.Sort(waited)
	return waited
}

// End ends the hold of an asker and returns it, or false if the asker has none.
func (l *Ledger) End(asker types.UID) (Hold, bool) {
	h := l.of(asker)
	if h == nil {
		return Hold{}, false
	}
	l.setAsker(asker, nil)
	l.setNode(h.Node, slices.DeleteFunc(slices.Clone(l.at(h.Node)), func(x *Hold) bool { return x == h }))
	l.unawait(h)
	return h.copy(), true
}

// SetPlaced notes that the asker of a hold has a node, or has none any more.
func (l *Ledger) SetPlaced(asker types.UID, placed bool) {
	if h := l.of(asker); h != nil && h.placed != placed {
		c := h.copy()
		c.placed = placed
		l.replace(h, &c)
	}
}

// From returns the time from which the time-out of a hold counts, which is no earlier
// than [Hold.TimeFrom]. It returns false while the hold must not time out.
type From func(asker types.UID, own time.Time) (time.Time, bool)

// Overdue returns the holds that have timed out, in the order of [Hold.TimeFrom]. It does
// not end them.
func (l *Ledger) Overdue(now time.Time, timeout time.Duration, from From) []Hold {
	var out []Hold
	for _, h := range l.due {
		if now.Sub(h.TimeFrom()) < timeout {
			break
		}
		if at, ok := from(h.Asker, h.TimeFrom()); ok && now.Sub(at) >= timeout {
			out = append(out, h.copy())
		}
	}
	return out
}

// NextDue returns the time at which the next hold times out, or false if none will in the
// current state.
func (l *Ledger) NextDue(timeout time.Duration, from From) (first time.Time, found bool) {
	for _, h := range l.due {
		if found && !h.TimeFrom().Before(first) {
			break
		}
		if at, ok := from(h.Asker, h.TimeFrom()); ok && (!found || at.Before(first)) {
			first, found = at, true
		}
	}
	if !found {
		return time.Time{}, false
	}
	return first.Add(timeout), true
}

// Until returns when each hold times out in the current state, by asker. Holds that must not time out
// are not in it.
func (l *Ledger) Until(timeout time.Duration, from From) map[types.UID]time.Time {
	until := make(map[types.UID]time.Time, len(l.due))
	for _, h := range l.due {
		if at, ok := from(h.Asker, h.TimeFrom()); ok {
			until[h.Asker] = at.Add(timeout)
		}
	}
	return until
}

// Commit records that pods are about to be disrupted for an asker. It has no effect if the
// asker has no hold.
func (l *Ledger) Commit(asker types.UID, now time.Time) {
	if h := l.of(asker); h != nil {
		c := h.copy()
		c.LastDisruption = now
		l.replace(h, &c)
	}
}

// replace stores a changed copy of a hold.
func (l *Ledger) replace(old, changed *Hold) {
	l.unawait(old)
	l.setAsker(old.Asker, changed)
	list := slices.Clone(l.at(old.Node))
	list[slices.Index(list, old)] = changed
	l.setNode(old.Node, list)
	l.await(changed)
}
