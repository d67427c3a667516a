package reservations

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Check verifies that all indexes agree.
func (l *Ledger) Check() error {
	n := 0
	for _, node := range l.Nodes() {
		n += len(l.at(node))
		if got, want := l.RequestOnly(node), requestOnly(l.at(node)); !maps.Equal(got, want) {
			return fmt.Errorf("node %s: holds of %v keep only their requests, want %v", node, got, want)
		}
		for i := range l.at(node) {
			if err := l.checkHold(node, i); err != nil {
				return fmt.Errorf("node %s: hold of %s %w", node, l.at(node)[i].Asker, err)
			}
		}
	}
	askers := 0
	for _, part := range l.askers {
		askers += len(part)
	}
	if n != askers || n != len(l.due) {
		return fmt.Errorf("%d holds by node, %d by asker, %d by time-out", n, askers, len(l.due))
	}
	return l.checkLists()
}

// checkLists verifies the list of holds that time out and the list of holds that wait.
func (l *Ledger) checkLists() error {
	for i, h := range l.due {
		if l.of(h.Asker) != h || i > 0 && dueFirst(l.due[i-1], h) >= 0 {
			return fmt.Errorf("the hold of %s does not belong where it is among those that time out", h.Asker)
		}
	}
	for v, holds := range l.waiting {
		for _, h := range holds {
			if l.of(h.Asker) != h || !slices.Contains(h.Awaited, v) {
				return fmt.Errorf("pod %s is awaited by a hold of %s that is over", v, h.Asker)
			}
		}
	}
	return nil
}

func (l *Ledger) checkHold(node string, i int) error {
	h := l.at(node)[i]
	switch {
	case l.of(h.Asker) != h || h.Node != node:
		return errors.New("is not that of its asker")
	case len(h.Chosen) == 0 && !h.NodeBound:
		return errors.New("has no chosen pods, though the asker can run elsewhere")
	case i > 0 && compareHolds(l.at(node)[i-1], h) >= 0:
		return errors.New("is out of order")
	case !slices.Contains(l.due, h):
		return errors.New("will not time out")
	case h.Clear() == h.ClearSince.IsZero():
		return fmt.Errorf("waits for %d pods and is clear since %v", len(h.Awaited), h.ClearSince)
	}
	for _, v := range h.Awaited {
		if !slices.Contains(l.waiting[v], h) {
			return fmt.Errorf("will not be told that %s is gone", v)
		}
	}
	return nil
}
