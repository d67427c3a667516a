package store

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// readers follow the store of a script by its history, its copy and its steps. After each
// command they compare the derived state with the store.
type readers struct {
	history   reader
	decisions *EventReader
	copy      *copyOf
	steps     stepReader
	started   bool

	before func(*Store) // plants a bug
}

func newReaders(s *Store) *readers {
	return &readers{
		history: reader{facts: s.Follow(output.Facts)}, decisions: s.Follow(output.Decisions),
		copy: newCopy(), steps: stepReader{holds: map[types.UID]reservations.Hold{}},
	}
}

func (r *readers) read(s *Store) error {
	if r.before != nil {
		r.before(s)
	}
	if err := r.copy.read(s); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	events, _ := r.decisions.Take(nil)
	var steps []output.Step
	for _, e := range events {
		steps = append(steps, *e.Step)
	}
	if err := r.steps.follow(s, steps); err != nil {
		return fmt.Errorf("steps: %w", err)
	}
	if !r.started { // what existed before Start is not in the history
		if r.started = s.Ready(); r.started {
			r.history.facts.Take(nil)
			r.history.story = storyOf(s)
		}
		return nil
	}
	return r.history.read(s)
}

// TestScriptsNoticePlantedBugs: they notice that readers do not get what they should.
func TestScriptsNoticePlantedBugs(t *testing.T) {
	plants := map[string]func(*readers){
		"a mark is lost": func(r *readers) {
			r.before = func(s *Store) { s.model.History.Pods.Take(1, s.model.RecordOf) }
		},
		"a pod that is gone stays": func(r *readers) {
			r.before = func(s *Store) { s.model.History.Pods.TakeGone(100) }
		},
	}
	for bug := range planted {
		plants[bug] = func(r *readers) { r.history.bug = bug }
	}
	for _, bug := range stepBugs {
		plants[bug] = func(r *readers) { r.steps.bug = bug }
	}
	files := expect.Get(filepath.Glob("testdata/*.txt"))(t)
	for bug, plant := range plants {
		t.Run(bug, func(t *testing.T) {
			noticed := false
			for i := 0; i < len(files) && !noticed; i++ {
				var s script
				datadriven.RunTest(t, files[i], func(t *testing.T, d *datadriven.TestData) string {
					noticed = noticed || strings.Contains(s.do(t, d), "!! readers: ")
					if d.Cmd == "store" {
						plant(s.readers)
					}
					return d.Expected
				})
			}
			expect.That(t, noticed, "no script notices it")
		})
	}
}
