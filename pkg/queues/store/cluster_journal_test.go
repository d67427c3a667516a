package store

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// diary is what the journals of a cluster's stores say, read as a stranger would.
type diary map[*Store]*chapter

// chapter is that of one store.
type chapter struct {
	holds map[types.UID]reservations.Hold // that were begun and did not end
}

// readJournals reads what is new, and holds it against what is so.
func (c *cluster) readJournals() error {
	if c.diary == nil {
		c.diary = diary{}
	}
	for _, s := range []*Store{c.store, c.standby} {
		if s == nil {
			continue
		}
		if err := c.readJournal(s); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
	return nil
}

func (c *cluster) readJournal(s *Store) error {
	ch := c.diary[s]
	if ch == nil {
		ch = &chapter{holds: map[types.UID]reservations.Hold{}}
		c.diary[s] = ch
	}
	steps, lost := s.TakeSteps()
	if lost > 0 {
		return fmt.Errorf("%d steps are lost", lost)
	}
	for i := range steps {
		if err := ch.read(&steps[i]); err != nil {
			return fmt.Errorf("%s: %s: %w", steps[i].Name, steps[i].Kind, err)
		}
	}
	if len(ch.holds) != len(s.holds.View().All()) {
		return fmt.Errorf("it has %d holds, there are %d", len(ch.holds), len(s.holds.View().All()))
	}
	for asker, h := range ch.holds {
		now, ok := s.holds.Of(asker)
		if !ok || now.Node != h.Node || !now.Since.Equal(h.Since) {
			return fmt.Errorf("%s holds %+v, it has %+v", asker, now, h)
		}
	}
	return nil
}

// read follows a step.
func (ch *chapter) read(s *Step) error {
	h, held := ch.holds[s.UID]
	if s.Kind != StepRefused && s.Kind != StepHeld && s.Kind != StepTakenUp && held && (s.Hold.Node != h.Node || !s.Hold.Since.Equal(h.Since)) {
		return fmt.Errorf("it is about another hold: %+v, not %+v", s.Hold, h)
	}
	switch s.Kind {
	case StepRefused:
		if s.Reason.None() || s.Decision == nil && s.Required == nil {
			return fmt.Errorf("nobody knows why: %+v", s)
		}
	case StepHeld:
		return ch.begin(s, held)
	case StepTakenUp:
		if held {
			return fmt.Errorf("it has a hold: %+v", h)
		}
		ch.holds[s.UID] = s.Hold
	case StepCommitted:
		if !held || slices.ContainsFunc(s.Going, func(v Victim) bool { return !slices.Contains(s.Hold.Chosen, v.UID) }) {
			return fmt.Errorf("held %t: %v go, %v were chosen", held, s.Going, s.Hold.Chosen)
		}
	case StepCalledOff, StepDisrupted:
		if !held {
			return errors.New("it has no hold")
		}
	case StepLost:
		if s.Reason.None() || s.Losses == 0 {
			return fmt.Errorf("lost for no reason, or not counted: %+v", s)
		}
	case StepEnded:
		// Of a claim that is not taken up there was no beginning.
		if !held && s.Ended == "" || s.Reason.None() && s.Ended != reservations.Bound && s.Ended != reservations.Superseded {
			return fmt.Errorf("ended %q: %s", s.Ended, s.Reason)
		}
		delete(ch.holds, s.UID)
	}
	return nil
}

// begin follows a decision by which a node is held.
func (ch *chapter) begin(s *Step, held bool) error {
	switch {
	case s.Hold.Asker != s.UID || s.Hold.Decision == "":
		return fmt.Errorf("there is no hold, or it is nobody's: %+v", s.Hold)
	case s.Required == nil && (held || s.Decision == nil):
		return errors.New("it has a hold, or no decision")
	case s.Decision != nil && (s.Decision.Outcome == victims.Preempt) != (len(s.Hold.Chosen) > 0):
		return fmt.Errorf("the decision is %s, the hold %+v", s.Decision, s.Hold)
	}
	ch.holds[s.UID] = s.Hold
	return nil
}
