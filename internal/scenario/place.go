package scenario

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// Place is what a pod wants of its node beside room; the zero value is nothing.
type Place struct {
	// Port is a port of the node that it uses alone; 0 for none.
	Port int32
	// Group is the group that it is in; empty for none.
	Group string
	// Apart is the group of which no pod may be on the node, Beside one of which a
	// pod has to be there; empty for none.
	Apart, Beside string
	// Spread is the group of which the node may have at most one pod more than any
	// other; empty for none.
	Spread string
}

// read takes a word of a line. It is an error if it is about something else.
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

// Places tells whether somebody wants more of a node than room.
func (w *World) Places(a *Ask) bool {
	return a.Place != Place{} || slices.ContainsFunc(w.Pods, func(p Pod) bool { return p.Place != Place{} })
}

// Fit is what filters say of an asker on a node, amounts aside, once the named
// pods are gone from it, and those that are leaving. Pods that wait for a held
// node are not looked at.
func (w *World) Fit(a *Ask, node string, without []string) victims.Fit {
	beside := 0
	members := map[string]int{} // of the group to spread, by node
	for i := range w.Pods {
		p := &w.Pods[i]
		here := p.Node == node
		if p.Protection == victims.Leaving || here && slices.Contains(without, p.Name) {
			continue
		}
		if here && (a.inTheWayOf(&p.Place) || p.inTheWayOf(&a.Place)) {
			return victims.Fails
		}
		if here && p.Group == a.Beside {
			beside++
		}
		if p.Group == a.Spread {
			members[p.Node]++
		}
	}
	switch {
	case a.Beside != "" && beside == 0:
		return victims.Never // nobody's going brings it there
	case a.Spread != "" && w.skewed(a, node, members):
		return victims.Fails
	}
	return victims.Passes
}

// inTheWayOf tells whether a pod may not be on the node of another.
func (p *Place) inTheWayOf(other *Place) bool {
	return p.Port != 0 && p.Port == other.Port || p.Group != "" && p.Group == other.Apart
}

// skewed tells whether the asker would make the pods of its group too many on
// the node, compared with the node that has fewest.
func (w *World) skewed(a *Ask, node string, members map[string]int) bool {
	fewest := members[node]
	for i := range w.Nodes {
		fewest = min(fewest, members[w.Nodes[i].Name])
	}
	more := 0
	if a.Group == a.Spread {
		more = 1
	}
	return members[node]+more-fewest > 1
}
