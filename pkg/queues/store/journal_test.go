package store

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// TestAJournalThatNobodyReads costs nothing, and one that nobody takes in time is
// bounded: what is lost is counted.
func TestAJournalThatNobodyReads(t *testing.T) {
	s := New(specification(t, "root\n  a"), Options{})
	s.Start(epoch)
	s.Upsert(Pod{UID: "p", Name: "p", Namespace: "ns", Labels: map[string]string{"queue": "root.a", "applicationId": "x"}}, epoch)
	refuse := func() {
		s.Decline("p", &victims.Decision{Ask: &victims.Ask{UID: "p"}, Outcome: victims.Refuse}, epoch)
	}
	refuse()
	if steps, lost := s.TakeSteps(); len(steps) > 0 || lost > 0 {
		t.Errorf("%d steps, %d lost, and nobody asked", len(steps), lost)
	}
	s.OpenJournal()
	refuse()
	select {
	case <-s.Steps():
	default:
		t.Error("nobody is told of a step")
	}
	steps, _ := s.TakeSteps()
	if len(steps) != 1 || steps[0].UID != "p" || steps[0].Queue != "root.a" || steps[0].Reason.Code != reasons.PreemptionRefused || !steps[0].At.Equal(epoch) {
		t.Errorf("%+v", steps)
	}
	for range mostSteps + 3 {
		refuse()
	}
	if steps, lost := s.TakeSteps(); len(steps) != mostSteps || lost != 3 {
		t.Errorf("%d steps, %d lost", len(steps), lost)
	}
	if steps, lost := s.TakeSteps(); len(steps) > 0 || lost > 0 {
		t.Errorf("%d steps, %d lost, twice", len(steps), lost)
	}
}

// TestWhatTheJournalLacks: the stranger who reads journals notices steps that are
// missing, doubled, or about another hold.
func TestWhatTheJournalLacks(t *testing.T) {
	for _, bug := range []string{"", "an end is lost", "a beginning is lost", "a beginning is told twice", "an end is of another hold"} {
		t.Run(bug, func(t *testing.T) {
			found := 0
			for seed := range 25 {
				c := newStrife(seed)
				if err := c.run(func(s *Store) live { return &forger{Store: s, bug: bug} }); err != nil {
					found++
				}
			}
			if (found > 0) != (bug != "") {
				t.Errorf("noticed in %d of 25 histories", found)
			}
		})
	}
}

// forger is a store whose journal is tampered with.
type forger struct {
	*Store
	bug string
}

func (f *forger) Tick(now time.Time) {
	f.Store.Tick(now)
	f.tamper()
}

func (f *forger) Claim(uid types.UID, d *victims.Decision, now time.Time) reasons.Reason {
	defer f.tamper()
	return f.Store.Claim(uid, d, now)
}

func (f *forger) tamper() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Step
	for _, s := range f.journal.steps {
		switch {
		case s.Kind == StepEnded && f.bug == "an end is lost", s.Kind == StepHeld && f.bug == "a beginning is lost":
			continue
		case s.Kind == StepHeld && s.Required == nil && f.bug == "a beginning is told twice":
			out = append(out, s)
		case s.Kind == StepEnded && f.bug == "an end is of another hold":
			s.Hold.Since = s.Hold.Since.Add(1)
		}
		out = append(out, s)
	}
	f.journal.steps = out
}

// The journal costs the decision little.
func BenchmarkStep(b *testing.B) {
	s := New(specification(b, "root\n  a"), Options{})
	s.OpenJournal()
	p := &pod{Pod: &Pod{UID: "p"}}
	d := &victims.Decision{}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%1000 == 0 {
			s.TakeSteps()
		}
		s.mu.Lock()
		s.enterStep(p, Step{Kind: StepRefused, Decision: d}, epoch)
		s.mu.Unlock()
	}
}
