package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// TestTwinsOfAGroupThatIsNotComplete: pods of a complete group belong to equivalence
// classes like all pods. When the group is no longer complete, a pod of a failed class
// does not keep its group from starting.
func TestTwinsOfAGroupThatIsNotComplete(t *testing.T) {
	now := epoch
	s := New(queuestest.MustTree(t, "root\n  a max.vcore=8"), model.Options{})
	s.FollowPodGroups()
	s.Start(now)
	s.SetPodGroup("ns", "x", 2, now)
	add := func(name, group string, cores int) types.UID {
		s.Upsert(objects.Pod{
			UID: types.UID(name), Namespace: "ns", Name: name, Created: now, Request: queuestest.Vector(fmt.Sprintf("vcore=%d pods=1", cores)),
			Labels: map[string]string{placement.KeyApplicationID: "app" + group, placement.KeyQueue: "root.a", objects.PodGroupLabel: group},
		}, now)
		return types.UID(name)
	}
	fail := func(uids ...types.UID) {
		for _, uid := range uids {
			s.NoNode(uid, "alike", reasons.New(reasons.NoNodeFits, "no node has room"), now)
		}
	}
	back := func(d time.Duration, uids ...types.UID) {
		now = now.Add(d)
		for _, uid := range uids {
			s.Gate(uid, now)
		}
		s.TakeActivations()
	}
	x1, x2, x3, x4 := add("x1", "x", 1), add("x2", "x", 1), add("x3", "x", 1), add("x4", "x", 1)
	for _, uid := range []types.UID{x1, x2} {
		if v := s.Assume(uid, "n", NoSnapshot, now); !v.OK() {
			t.Fatal(v.Reason)
		}
	}
	fail(x3, x4)
	back(time.Minute, x3, x4) // one of them is admitted, for both
	if s.model.Pods[x3].State != state.Admitted || s.model.Pods[x4].State != state.Queued {
		t.Fatalf("x3 %v, x4 %v", s.model.Pods[x3].State, s.model.Pods[x4].State)
	}
	fail(x3)
	plain := add("plain", "", 5)
	s.Delete(x1, now)
	s.Delete(x2, now)
	add("large", "", 2)
	x5 := add("x5", "x", 1) // the queue has room for one
	if s.model.Pods[x5].State != state.GroupBlocked {
		t.Fatalf("x5 %v: %v", s.model.Pods[x5].State, s.Explain(x5))
	}
	s.TakeActivations()
	s.Delete(plain, now)
	var let []string
	for _, r := range s.TakeActivations() {
		let = append(let, r.Name)
	}
	if got := strings.Join(let, " "); got != "x4 x5" {
		t.Errorf("let through %q, want x4 x5: %v", got, s.Explain(x5))
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
