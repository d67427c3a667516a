package stage

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// The configuration of every world is read back as the tree of the scenario.
func TestQueuesAreReadBack(t *testing.T) {
	for _, c := range scenario.Cases(t, "../../../pkg/planner/testdata") {
		tree, err := Queues(c.World, "root", 7*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		text, err := Document(tree.Children()...)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := config.Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		read := scenario.World{Root: spec.Root}
		for q := range c.World.Root.All() {
			got := read.Queue(q.Path)
			if got == nil || got.Leaf != q.Leaf {
				t.Errorf("%s: %s is read as %+v", c.Name, q.Path, got)
				continue
			}
			want := q.Policies
			if want.PreemptionDelay = got.Policies.PreemptionDelay; q.Leaf {
				want.PreemptionDelay = 7 * time.Second
			}
			if got.Policies != want || len(got.Children) != len(q.Children) {
				t.Errorf("%s: %s has policies %+v, want %+v", c.Name, q.Path, got.Policies, want)
			}
			if diff := cmp.Diff(quotas(q), quotas(got)); diff != "" {
				t.Errorf("%s: %s (-want +got)\n%s", c.Name, q.Path, diff)
			}
		}
	}
}

// No node of a scenario has more pods than fit, because the cluster would reject them.
func TestNodesAreNotOvercommitted(t *testing.T) {
	for _, c := range scenario.Cases(t, "../../../pkg/planner/testdata") {
		for _, n := range c.World.Nodes {
			left := maps.Clone(n.Allocatable)
			for i := range c.World.Pods {
				for name, a := range c.World.Pods[i].Request {
					if c.World.Pods[i].Node == n.Name {
						left[name] -= a
					}
				}
			}
			for name, a := range left {
				if a < 0 {
					t.Errorf("%s: node %s has %d too little %s", c.Name, n.Name, -a, name)
				}
			}
		}
	}
}

// No scenario may depend on the quota of a leaf.
func TestOverOwnMax(t *testing.T) {
	var over []string
	for _, c := range scenario.Cases(t, "../../../pkg/planner/testdata") {
		if OverOwnMax(&c) {
			over = append(over, c.Name)
		}
	}
	if diff := cmp.Diff([]string{"laws/law7_max_is_a_fence_for_its_own_victims/3"}, over); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
