package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/paddock-scheduler/paddock/pkg/planner"
)

// Place is the requirements of a pod on its node beside room; the zero value is none.
type Place struct {
	// Port is a port of the node that it uses alone; 0 for none.
	Port int32
	// Group is its group; empty for none.
	Group string
	// Apart is the group of which no pod may be on the node, Beside one of which a pod
	// must be there; empty for none.
	Apart, Beside string
	// Spread is the group of which the node may have at most one pod more than any
	// other; empty for none.
	Spread string
}

// read takes a word of a line. It returns an error for any other word.
func (p *Place) read(key, value string) error {
	switch key {
	case "port":
		n, err := strconv.ParseUint(value, 10, 16)
		p.Port = int32(n)
		return err
	case "group":
		p.Group = value
	case "apart":
		p.Apart = value
	case "beside":
		p.Beside = value
	case "spread":
		p.Spread = value
	default:
		return fmt.Errorf("what is %q", key)
	}
	return nil
}

// Places tells whether some pod has requirements on a node beside room.
func (w *World) Places(a *Ask) bool {
	return a.Place != Place{} || slices.ContainsFunc(w.Pods, func(p Pod) bool { return p.Place != Place{} })
}

// Fit is the filters' answer for an asker on a node, amounts aside, without the named
// pods and the leaving pods of the node. Pods that wait for a held node are ignored.
func (w *World) Fit(a *Ask, node string, without []string) planner.Fit {
	stays := func(p *Pod) bool {
		return p.Protection != planner.Leaving && (p.Node != node || !slices.Contains(without, p.Name))
	}
	inTheWay := func(p Pod) bool {
		return p.Node == node && stays(&p) && (a.inTheWayOf(&p.Place) || p.inTheWayOf(&a.Place))
	}
	members := func(group, node string) (n int) {
		for i := range w.Pods {
			if p := &w.Pods[i]; p.Node == node && p.Group == group && stays(p) {
				n++
			}
		}
		return n
	}
	switch {
	case slices.ContainsFunc(w.Pods, inTheWay):
		return planner.Fails
	case a.Beside != "" && members(a.Beside, node) == 0:
		return planner.Never // no leaving pod brings it there
	case a.Spread == "":
		return planner.Passes
	}
	most := math.MaxInt
	for i := range w.Nodes {
		most = min(most, 1+members(a.Spread, w.Nodes[i].Name))
	}
	now := members(a.Spread, node)
	if a.Group == a.Spread {
		now++
	}
	if now > most {
		return planner.Fails
	}
	return planner.Passes
}

// inTheWayOf tells whether a pod may not be on the node of another.
func (p *Place) inTheWayOf(other *Place) bool {
	return p.Port != 0 && p.Port == other.Port || p.Group != "" && p.Group == other.Apart
}
