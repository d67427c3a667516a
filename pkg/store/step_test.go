package store

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

var stepBugs = []string{
	"an end is lost", "a beginning is lost", "a beginning is told twice", "an end is of another hold",
	"the queue is not said", "the time is not said",
}

// forge plants a bug.
func forge(steps []output.Step, bug string) (out []output.Step) {
	for _, s := range steps {
		switch {
		case s.Kind == output.StepEnded && bug == "an end is lost", s.Kind == output.StepHeld && bug == "a beginning is lost":
			continue
		case s.Kind == output.StepHeld && s.NodeBoundDecision == nil && bug == "a beginning is told twice":
			out = append(out, s)
		case s.Kind == output.StepEnded && bug == "an end is of another hold":
			s.Hold.Since = s.Hold.Since.Add(1)
		case bug == "the queue is not said":
			s.Queue = ""
		case bug == "the time is not said":
			s.At = time.Time{}
		}
		out = append(out, s)
	}
	return out
}

// stepReader is the state that an independent reader derives from the steps of a store.
type stepReader struct {
	holds map[types.UID]reservations.Hold // that began and did not end
	bug   string                          // of stepBugs; empty for none
}

// follow applies steps, and compares the result with the store.
func (r *stepReader) follow(s *Store, steps []output.Step) error {
	steps = forge(steps, r.bug)
	for i := range steps {
		if p := s.model.Pods[steps[i].UID]; steps[i].At.IsZero() || p != nil && steps[i].Kind != output.StepEnded && p.Queue(s.model.Cache.Tree()) != steps[i].Queue {
			return fmt.Errorf("%s: %s: in queue %q at %v", steps[i].Name, steps[i].Kind, steps[i].Queue, steps[i].At)
		}
		if err := r.read(&steps[i]); err != nil {
			return fmt.Errorf("%s: %s: %w", steps[i].Name, steps[i].Kind, err)
		}
	}
	if len(r.holds) != len(s.model.Preemption.Ledger.Ledger.View().All()) {
		return fmt.Errorf("it has %d holds, there are %d", len(r.holds), len(s.model.Preemption.Ledger.Ledger.View().All()))
	}
	for asker, h := range r.holds {
		now, ok := s.model.Preemption.Ledger.Of(asker)
		if !ok || now.Node != h.Node || !now.Since.Equal(h.Since) {
			return fmt.Errorf("%s holds %+v, it has %+v", asker, now, h)
		}
	}
	return nil
}

// read applies a step.
func (r *stepReader) read(s *output.Step) error {
	h, held := r.holds[s.UID]
	if s.Kind != output.StepRefused && s.Kind != output.StepHeld && s.Kind != output.StepTakenUp && held && (s.Hold.Node != h.Node || !s.Hold.Since.Equal(h.Since)) {
		return fmt.Errorf("it is about another hold: %+v, not %+v", s.Hold, h)
	}
	switch s.Kind {
	case output.StepRefused:
		if s.Reason.None() || s.Decision == nil && s.NodeBoundDecision == nil {
			return fmt.Errorf("no reason is known: %+v", s)
		}
	case output.StepHeld:
		return r.begin(s, held)
	case output.StepTakenUp:
		if held {
			return fmt.Errorf("it has a hold: %+v", h)
		}
		r.holds[s.UID] = s.Hold
	case output.StepCommitted:
		if !held || slices.ContainsFunc(s.Going, func(v output.Victim) bool { return !slices.Contains(s.Hold.Chosen, v.UID) }) {
			return fmt.Errorf("held %t: %v go, %v were chosen", held, s.Going, s.Hold.Chosen)
		}
	case output.StepAborted, output.StepVictimsDeleted:
		if !held {
			return errors.New("it has no hold")
		}
	case output.StepLost:
		if s.Reason.None() || s.Losses == 0 {
			return fmt.Errorf("lost for no reason, or not counted: %+v", s)
		}
	case output.StepEnded:
		// A claim that was not restored has no earlier step.
		if !held && s.Ended == "" || s.Reason.None() && s.Ended != reservations.Bound && s.Ended != reservations.Superseded {
			return fmt.Errorf("ended %q: %s", s.Ended, s.Reason)
		}
		delete(r.holds, s.UID)
	}
	return nil
}

// begin applies a decision by which a node is held.
func (r *stepReader) begin(s *output.Step, held bool) error {
	switch {
	case s.Hold.Asker != s.UID || s.Hold.Decision == "" && !held: // a claim need not name its decision
		return fmt.Errorf("there is no hold, or it has no asker: %+v", s.Hold)
	case s.NodeBoundDecision == nil && (held || s.Decision == nil):
		return errors.New("it has a hold, or no decision")
	case s.Decision != nil && (s.Decision.Outcome == planner.Preempt) != (len(s.Hold.Chosen) > 0):
		return fmt.Errorf("the decision is %s, the hold %+v", s.Decision, s.Hold)
	}
	r.holds[s.UID] = s.Hold
	return nil
}
