package store

import (
	"errors"
	"fmt"

	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// found is the state of a group as computed from its pods.
type found struct {
	in               [state.Count]int
	holding          int
	members          int
	admitted         int // without those that hold a node
	equivalenceClass int // members of equivalence classes
}

// checkTogether verifies the counts of groups, and that every kept group has an event
// that will let it go on.
func (s *Store) checkTogether() []error {
	var errs []error
	counts := map[*podGroup]*found{}
	for _, g := range s.together.groups {
		counts[g] = &found{}
	}
	for _, p := range s.pods {
		if p.mates == nil {
			continue
		}
		c := counts[p.mates]
		if c == nil || p.mates.members[p.UID] != p {
			errs = append(errs, fmt.Errorf("PodGroup %s does not know its member %s", p.mates.name, p.Name))
			continue
		}
		c.count(p)
	}
	for g, c := range counts {
		if err := s.checkGroup(g, c); err != nil {
			errs = append(errs, fmt.Errorf("PodGroup %s: %w", g.name, err))
		}
	}
	return errs
}

func (c *found) count(p *pod) {
	c.in[p.state]++
	c.members++
	if p.awaitsHeldNode() {
		c.holding++
	}
	if p.state.HasSlot() && !p.asks.Holds() {
		c.admitted++
	}
	if p.equivalenceClass != nil {
		c.equivalenceClass++
	}
}

func (s *Store) checkGroup(g *podGroup, c *found) error {
	_, refused := s.together.refused[g.refusal.At][g]
	_, line := s.together.line[g]
	_, touched := s.together.touched[g]
	switch {
	case c.in != g.in || c.holding != g.holding || c.members != len(g.members):
		return fmt.Errorf("counts %v, %d holding, of %d; there are %+v", g.in, g.holding, len(g.members), *c)
	case refused == g.refusal.OK() || line != g.inLine:
		return fmt.Errorf("refused %v, in line %v; listed: %v, %v", !g.refusal.OK(), g.inLine, refused, line)
	case !s.started || s.returning || touched: // a check of it is due
		return nil
	case !g.complete() && c.equivalenceClass > 0:
		return fmt.Errorf("it is not complete, and %d pods are twins of others", c.equivalenceClass)
	case g.blocked() > 0 && g.able() && !refused && !line && g.in[state.Queued] == 0:
		return errors.New("it can start, and nothing brings its pods back")
	case !g.able() && c.admitted > 0:
		return fmt.Errorf("it cannot start, and %d pods are let through", c.admitted)
	case line && s.together.placing == nil:
		return errors.New("it waits for another one, and there is none")
	}
	return nil
}
