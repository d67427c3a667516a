package store

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// Some pods in Permit are members of the preemptor's own PodGroup: as victims they would
// make room for it, but its group would lack them. The group may be complete by now, as
// when minMember was reduced, while the pods still wait: upstream checks when the next
// member comes.
func TestMatesAtPermitAreNoVictims(t *testing.T) {
	for _, c := range []struct {
		name string
		min  int
	}{
		{"the PodGroup has not started", 2},
		{"it could have, and the scheduler has not noticed", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(queuestest.MustTree(t, "root\n  owed guaranteed.vcore=4 props=preemption.delay:1s\n  b"), model.Options{InitialBackoff: -1})
			s.SetPreemption(PreemptionOptions{RetryInterval: 15 * time.Second, Round: time.Second, HoldTimeout: time.Hour})
			s.FollowPodGroups()
			s.UpsertNode("n1", queuestest.Vector("vcore=2 pods=10"), epoch)
			s.Start(epoch)
			s.SetPodGroup("ns", "g", c.min, epoch)
			add := func(name, queue, group string) types.UID {
				labels := map[string]string{placement.KeyQueue: queue, placement.KeyApplicationID: name}
				if group != "" {
					labels[objects.PodGroupLabel] = group
				}
				s.Upsert(objects.Pod{Identity: objects.Identity{UID: types.UID(name), Namespace: "ns", Name: name, Created: epoch, Labels: labels}, Request: queuestest.Vector("vcore=1 pods=1")}, epoch)
				return types.UID(name)
			}
			atPermit := []types.UID{add("stranger", "root.b", ""), add("mate", "root.owed", "g")}
			asker := add("asker", "root.owed", "g")
			for _, uid := range atPermit {
				if v := s.Assume(uid, "n1", NoSnapshot, epoch); !v.OK() {
					t.Fatal(v)
				}
			}
			s.NoNode(asker, "", reasons.Brief(reasons.NoNodeFits), epoch)
			now := epoch.Add(5 * time.Second)
			s.Tick(now)
			attempt, why := s.Attempt(asker, "", atPermit, now)
			if attempt == nil {
				t.Fatal(why)
			}
			protection := func(uid types.UID) planner.Protection {
				pods := attempt.World.Nodes[0].Pods
				i := slices.IndexFunc(pods, func(p *planner.Pod) bool { return p.UID == string(uid) })
				return pods[i].Protection
			}
			if got := protection("stranger"); got != planner.Unprotected {
				t.Errorf("the stranger: %v", got)
			}
			if got := protection("mate"); got != planner.Binding {
				t.Errorf("the mate: %v, want %v", got, planner.Binding)
			}
			if c.min > 1 {
				return // another attempt needs a complete group
			}
			s.NoNode(asker, "", reasons.Brief(reasons.NoNodeFits), now)
			now = now.Add(15 * time.Second)
			s.Tick(now)
			if attempt, why = s.Attempt(asker, "", atPermit[1:], now); attempt == nil {
				t.Fatal(why)
			}
			if got := protection("stranger"); got != planner.Binding {
				t.Errorf("the stranger, which has left Permit: %v, want %v", got, planner.Binding)
			}
		})
	}
}
