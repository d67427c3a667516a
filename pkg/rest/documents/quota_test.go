package documents

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// TestAHolderUsesTheMaxOfOthers: a max refuses a pod beside one that holds a node, as it does in the
// cycle of the pod. It does not refuse the pod that holds the node.
func TestAHolderUsesTheMaxOfOthers(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := store.New(queuestest.MustTree(t, "root\n  a max.vcore=1\n  lab"), store.Options{})
	s.UpsertNode("n1", queuestest.Vector("vcore=1 pods=10"), now)
	pod := func(name, queue string) objects.Pod {
		return objects.Pod{
			Identity: objects.Identity{
				UID: types.UID(name), Namespace: "ns", Name: name, Created: now,
				Labels: map[string]string{placement.KeyQueue: queue, placement.KeyApplicationID: name},
			},
			Request: queuestest.Vector("vcore=1 pods=1"),
		}
	}
	victim, holder := pod("victim", "root.lab"), pod("holder", "root.a")
	victim.Node, holder.Claim = "n1", &reservations.Claim{Node: "n1", Since: now, Victims: []types.UID{"victim"}}
	for _, p := range []objects.Pod{victim, holder, pod("next", "root.a")} {
		s.Upsert(p, now)
	}
	s.Start(now)
	for name, want := range map[types.UID]bool{"holder": false, "next": true} {
		x, known := s.Explanation(name, now)
		expect.That(t, known && (x.Hold != nil) == (name == "holder"), "%s: %+v", name, x)
		quota := ExplanationOf(x).Quota
		expect.Same(t, string(name)+" is refused", want, quota[len(quota)-1].Refuses != nil)
	}
}
