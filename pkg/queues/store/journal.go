package store

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/victims"
	"github.com/paddock-scheduler/paddock/pkg/victims/required"
)

// Every decision about an asker, and what becomes of it, passes through the
// journal: people want to read it and count it, and none of that is to
// happen while the lock is held. A step costs a place in a list; one goroutine
// takes the list and makes of it what others want.

// mostSteps is how many steps wait for their taker; more are counted and lost.
const mostSteps = 10_000

// StepKind says what happened.
type StepKind uint8

const (
	// StepRefused is a decision that nothing is done.
	StepRefused StepKind = iota
	// StepHeld is a decision by which a node is held for the asker, or goes on to be.
	StepHeld
	// StepTakenUp is a hold that was found written on the asker.
	StepTakenUp
	// StepCommitted is that the decision was judged again, right before its victims
	// are let go.
	StepCommitted
	// StepCalledOff is that it was, and nobody goes; the node stays held.
	StepCalledOff
	// StepDisrupted is that all victims are on their way.
	StepDisrupted
	// StepLost is that others took the room of a hold that goes on, or is over and was of use
	// until then.
	StepLost
	// StepEnded is that the hold is over.
	StepEnded
)

var stepNames = [...]string{"refused", "held", "taken up", "committed", "called off", "disrupted", "lost", "ended"}

func (k StepKind) String() string { return stepNames[k] }

// Step is one thing that was decided about an asker, or done. It does not change
// any more.
type Step struct {
	Ref  // the asker
	Kind StepKind
	At   time.Time
	// Queue is the path of the asker's leaf; empty for a pod of no queue.
	Queue string
	// Standby is true where another process decides, and this one follows.
	Standby bool
	// Hold is the hold as it is after the step, or was when it ended; the zero value
	// where there is none.
	Hold reservations.Hold
	// Decision is what was decided, of StepRefused and StepHeld; Required is the same
	// of an asker that requires a node. Types names the types of their amounts.
	Decision *victims.Decision
	Required *required.Decision
	Types    []string
	// Going are the victims that are let go, of StepCommitted.
	Going []Victim
	// Ended says how the hold ended, and Node where the asker was placed, if it was
	// (StepEnded).
	Ended reservations.End
	Node  string
	// Losses is how many holds the asker lost in a row with this step; 0 where the step is
	// no loss.
	Losses int
	// Reason is what people are told; none where it went as decided.
	Reason reasons.Reason
}

// journal is the steps that nobody has taken.
type journal struct {
	open  bool
	steps []Step
	lost  int
	ready chan struct{}
}

// OpenJournal begins the journal: there is no step of what was before. Call it
// once, and take the steps from then on.
func (s *Store) OpenJournal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal.open = true
}

// Steps delivers a value when there are steps to take.
func (s *Store) Steps() <-chan struct{} { return s.journal.ready }

// TakeSteps returns what happened since the last call, in order, and how many
// steps were lost because nobody came.
func (s *Store) TakeSteps() (steps []Step, lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	steps, lost = s.journal.steps, s.journal.lost
	s.journal.steps, s.journal.lost = nil, 0
	return steps, lost
}

// enterStep writes a step about an asker into the journal.
func (s *Store) enterStep(p *pod, step Step, now time.Time) {
	switch {
	case !s.journal.open:
		return
	case len(s.journal.steps) >= mostSteps:
		s.journal.lost++
		return
	}
	step.Ref, step.At, step.Standby = p.Ref(), now, s.standby
	if p.app != nil {
		if q := s.draft.Queue(p.app.leaf); q != nil {
			step.Queue = q.Path
		}
	}
	if step.Decision != nil || step.Required != nil {
		step.Types = s.scenery.types
	}
	if step.Hold.Asker == "" {
		step.Hold, _ = s.holds.Of(p.UID)
	}
	s.journal.steps = append(s.journal.steps, step)
}

// signal tells the taker of the journal that there is something.
func (j *journal) signal() {
	if len(j.steps) == 0 {
		return
	}
	select {
	case j.ready <- struct{}{}:
	default:
	}
}
