package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// The scripts about watched queues and nodes must fail for stores that react to too many
// or too few changes.
func TestScriptsNoticeMissedWatches(t *testing.T) {
	forget := func(s *Store, about func(preemption.Watched) bool) {
		for _, p := range s.model.SortedPods() {
			what := slices.Clone(s.model.Preemption.Watches.Of(p.UID))
			s.model.Preemption.Watches.Set(p.UID, slices.DeleteFunc(what, about))
		}
	}
	isNode := func(s *Store, x preemption.Watched) bool {
		for n := range s.model.Cache.Nodes.All() {
			if x == preemption.WatchedNode(n.Name()) {
				return true
			}
		}
		return false
	}
	bugs := map[string]func(*Store){
		"none":                   func(*Store) {},
		"deaf to nodes":          func(s *Store) { forget(s, func(x preemption.Watched) bool { return isNode(s, x) }) },
		"deaf to queues":         func(s *Store) { forget(s, func(x preemption.Watched) bool { return !isNode(s, x) }) },
		"everything is a change": func(s *Store) { s.changeAll() },
		"no second between plans": func(s *Store) {
			for _, p := range s.model.SortedPods() {
				if p.Asker != nil {
					p.Asker.TriedAt = time.Time{}
				}
			}
		},
	}
	for name, plant := range bugs {
		t.Run(name, func(t *testing.T) {
			var s script
			wrong := ""
			datadriven.RunTest(t, "testdata/preempt_watched.txt", func(t *testing.T, d *datadriven.TestData) string {
				if d.Cmd != "store" {
					plant(s.store)
				}
				if out := s.do(t, d); wrong == "" && strings.TrimSpace(out) != strings.TrimSpace(d.Expected) {
					wrong = d.Pos + ": " + out
				}
				return d.Expected
			})
			expect.Same(t, "noticed here: "+wrong, name == "none", wrong == "")
		})
	}
}

// changeAll plants a bug: everything that is watched counts as changed.
func (s *Store) changeAll() {
	for _, p := range s.model.SortedPods() {
		for _, x := range s.model.Preemption.Watches.Of(p.UID) {
			s.model.Preemption.Watches.Change(x)
		}
	}
}
