package inventory

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Check verifies that every pod is where it belongs and nowhere else.
func (i *Inventory) Check() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	var errs []error
	inApps, onNodes := 0, 0
	for _, uid := range slices.Sorted(maps.Keys(i.pods)) {
		p := i.pods[uid]
		errs = append(errs, i.checkPod(p))
		if p.UID != uid {
			errs = append(errs, fmt.Errorf("pod %s is listed as %s", p.UID, uid))
		}
		if p.App != noApp || !p.Foreign {
			inApps++
		}
		if p.Node != "" {
			onNodes++
		}
	}
	for _, a := range i.apps.by {
		inApps -= len(a.pods.list)
	}
	for _, n := range i.nodes.by {
		onNodes -= len(n.pods.list)
	}
	if inApps != 0 || onNodes != 0 {
		errs = append(errs, fmt.Errorf("applications lack %d pods, nodes %d", inApps, onNodes))
	}
	return errors.Join(errs...)
}

func (i *Inventory) checkPod(p *Pod) error {
	switch {
	case (p.App != noApp || !p.Foreign) && (i.apps.by[p.App] == nil || !i.apps.by[p.App].pods.has(p)):
		return fmt.Errorf("pod %s is not in its application", p.UID)
	case p.Node != "" && (i.nodes.by[p.Node] == nil || !i.nodes.by[p.Node].pods.has(p)):
		return fmt.Errorf("pod %s is not on its node", p.UID)
	}
	return nil
}
