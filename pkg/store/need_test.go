package store

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

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
