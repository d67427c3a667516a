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

	// Planted bugs.
	before func(*Store)
	forge  func([]output.Step) []output.Step
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
	if r.forge != nil {
		steps = r.forge(steps)
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

// expectNotice plants a bug in what readers get, and requires that a script detects it.
func expectNotice(t *testing.T, plant func(*readers)) {
	t.Helper()
	files := expect.Get(filepath.Glob("testdata/*.txt"))(t)
	for _, file := range files {
		var s *script
		noticed := false
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "store" {
				s = newScript(t, d)
				plant(s.readers)
			} else if !noticed {
				noticed = strings.Contains(s.after(s.run(t, d)), "!! readers: ")
			}
			return d.Expected
		})
		if noticed {
			return
		}
	}
	t.Error("no script notices it")
}
