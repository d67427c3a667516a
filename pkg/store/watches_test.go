package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// The scripts about watched queues and nodes must fail for stores that react to too many
// or too few changes.
func TestScriptsNoticeWhatIsHeard(t *testing.T) {
	forget := func(s *Store, about func(preemption.Watched) bool) {
		for _, p := range s.model.SortedPods() {
			what := slices.Clone(s.model.Preemption.Watches.Of(p.UID))
			s.model.Preemption.Watches.Set(p.UID, slices.DeleteFunc(what, about))
		}
	}
	bugs := map[string]func(*Store){
		"none":                   func(*Store) {},
		"deaf to nodes":          func(s *Store) { forget(s, preemption.Watched.IsNode) },
		"deaf to queues":         func(s *Store) { forget(s, func(x preemption.Watched) bool { return !x.IsNode() }) },
		"everything is a change": func(s *Store) { s.changeAll() },
		"no second between plans": func(s *Store) {
			for _, p := range s.model.SortedPods() {
				if p.Asks != nil {
					p.Asks.TriedAt = time.Time{}
				}
			}
		},
	}
	for name, plant := range bugs {
		t.Run(name, func(t *testing.T) {
			var s *script
			wrong := ""
			datadriven.RunTest(t, "testdata/preempt_named.txt", func(t *testing.T, d *datadriven.TestData) string {
				if d.Cmd == "store" {
					s = newScript(t, d)
					return d.Expected
				}
				plant(s.store)
				if out := s.after(s.run(t, d)); wrong == "" && strings.TrimSpace(out) != strings.TrimSpace(d.Expected) {
					wrong = d.Pos + ": " + out
				}
				return d.Expected
			})
			if (wrong == "") != (name == "none") {
				t.Errorf("it is noticed here: %q", wrong)
			}
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

// A change of a queue or node named by a refusal is not missed if it comes while the plan
// is made.
func TestChangesDuringAPlanAreHeard(t *testing.T) {
	for _, change := range []struct {
		name  string
		do    func(s *Store, now time.Time)
		heard bool
	}{
		{"a pod goes from a named node", func(s *Store, now time.Time) { s.Delete("on-n1", now) }, true},
		{"a pod of a named queue gets a node", func(s *Store, now time.Time) {
			other := askingPod("other")
			other.Node = "n9"
			s.Upsert(other, now)
		}, true},
		{"a pod goes from another node", func(s *Store, now time.Time) { s.Delete("on-n2", now) }, false},
		{"a pod comes to wait", func(s *Store, now time.Time) { s.Upsert(askingPod("other"), now) }, false},
		{"nothing", func(*Store, time.Time) {}, false},
	} {
		t.Run(change.name, func(t *testing.T) {
			s := New(queuestest.MustTree(t, "root\n  a guaranteed.vcore=9 props=preemption.delay:1s\n  b"), model.Options{Window: 1})
			now := epoch
			s.Start(now)
			for _, node := range []string{"n1", "n2"} {
				s.UpsertNode(node, queuestest.Vector("vcore=1 pods=10"), now)
				on := askingPod("on-" + node)
				on.Node, on.Labels[placement.KeyQueue] = node, "root.b"
				s.Upsert(on, now)
			}
			p := askingPod("p")
			s.Upsert(p, now)
			now = now.Add(2 * time.Second)
			attempt, why := s.Attempt(p.UID, "", nil, now)
			if attempt == nil {
				t.Fatal(why)
			}
			change.do(s, now)
			s.RejectPlan(p.UID, &planner.Decision{Ask: attempt.Ask, Named: []string{"root.a"}, FilterResults: planner.FilterResults{Unfit: []string{"n1"}}}, now)
			s.NoNode(p.UID, "", why, now)
			s.TakeActivations()
			s.Tick(now.Add(2 * time.Second))
			heard := false
			for _, ref := range s.TakeActivations() {
				heard = heard || ref.Name == p.Name
			}
			if heard != change.heard {
				t.Errorf("it is planned for again: %v, want %v", heard, change.heard)
			}
			expect.Holds(t, s.Check())
		})
	}
}

// One victim frees the room, another one the port that the preemptor needs. By amounts
// the second is not needed; only the filters know that it is. All victims of such a plan
// are deleted, but victims that are needed only by amounts are still checked.
func TestVictimsThatOnlyFiltersNeedGo(t *testing.T) {
	for _, c := range []struct {
		name, gone string
		want       []string
	}{
		{"as planned", "", []string{"port", "room"}},
		{"room without the one for amounts", "other", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := epoch
			s := New(queuestest.MustTree(t, "root\n  a guaranteed.vcore=3 props=preemption.delay:1s\n  b"), model.Options{InitialBackoff: -1, MaxBackoff: -1})
			s.Start(now)
			s.UpsertNode("n1", queuestest.Vector("vcore=7 pods=10"), now)
			pod := func(name, queue, node, request string) {
				s.Upsert(objects.Pod{
					Identity: objects.Identity{UID: types.UID(name), Namespace: "ns", Name: name, Created: now.Add(-time.Minute), Labels: map[string]string{placement.KeyQueue: queue, placement.KeyApplicationID: name}},
					Spec:     objects.Spec{Foreign: queue == ""},
					Status:   objects.Status{Node: node},
					Request:  queuestest.Vector(request + " pods=1"),
				}, now)
			}
			pod("other", "", "n1", "vcore=3")
			pod("room", "root.b", "n1", "vcore=3")
			pod("port", "root.b", "n1", "vcore=1")
			pod("asker", "root.a", "", "vcore=3")
			s.TakeActivations()
			attempt, why := s.Attempt("asker", "", nil, now)
			if attempt == nil {
				t.Fatal(why)
			}
			d := search.Plan(attempt.World, attempt.Ask, planner.Params{Fits: func(_ string, without []*planner.Pod) planner.Fit {
				if slices.ContainsFunc(without, func(p *planner.Pod) bool { return p.Name == "port" }) {
					return planner.Passes
				}
				return planner.Fails
			}})
			if why := s.AcceptPlan("asker", &d, now); !why.None() {
				t.Fatal(why)
			}
			if c.gone != "" {
				s.Delete(types.UID(c.gone), now)
			}
			going, why := s.Commit("asker", nil, now)
			var names []string
			for _, v := range going {
				names = append(names, v.Name)
			}
			if !slices.Equal(names, c.want) {
				t.Errorf("%v go, want %v: %v", names, c.want, why)
			}
			expect.Holds(t, s.Check())
		})
	}
}
