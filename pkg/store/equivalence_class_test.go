package store

import (
	"fmt"
	"slices"
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

// front is the pod that the scheduler takes next; nil if there is none.
func front(s *Store) *model.Pod {
	var first *model.Pod
	for p := range s.model.Pending.Window.Pods() {
		if first == nil || s.model.Pending.Keys.Before(p.UID, first.UID) {
			first = p
		}
	}
	return first
}

// In a full cluster every pod costs one cycle, and later each placed pod a few more,
// however many pods wait.
func TestCyclesOnFullCluster(t *testing.T) {
	s := New(queuestest.MustTree(t, "root\n  a guaranteed.vcore=4\n  b guaranteed.vcore=2"), model.Options{InitialBackoff: -1, MaxBackoff: -1})
	s.Start(epoch)
	var pods []types.UID // the oldest first
	for i := range 600 {
		queue := "ab"[i%2 : i%2+1]
		name := fmt.Sprintf("%s%03d", queue, i)
		pods = append(pods, types.UID(name))
		s.Upsert(objects.Pod{
			Identity: objects.Identity{
				UID: types.UID(name), Namespace: "ns", Name: name, Created: epoch.Add(time.Duration(i) * time.Second),
				Labels: map[string]string{placement.KeyQueue: "root." + queue, placement.KeyApplicationID: "app-" + queue},
			},
			Request: queuestest.Vector("vcore=1 pods=1"),
		}, epoch)
		s.TakeActivations()
	}
	cycles, room := 0, 0
	run := func() {
		for p := front(s); p != nil; p = front(s) {
			if cycles++; room == 0 {
				s.NoNode(p.UID, "kind "+p.Name[:1], reasons.Brief(reasons.NoNodeFits), epoch)
			} else if room--; !s.Assume(p.UID, "n1", NoSnapshot, epoch).OK() {
				t.Errorf("%s is refused", p.Name)
			}
			s.TakeActivations()
		}
	}
	run()
	if cycles != len(pods) {
		t.Errorf("%d cycles for %d pods that find no node", cycles, len(pods))
	}
	cycles = 0
	const ends = 100
	for range ends {
		room++
		for _, uid := range pods { // the scheduler brings back those that it has
			if s.model.Pods[uid].State == state.Unschedulable {
				s.Gate(uid, epoch)
			}
		}
		s.TakeActivations()
		run()
	}
	if cycles > 5*ends {
		t.Errorf("%d cycles when %d pods end", cycles, ends)
	}
	ran := map[string]int{}
	for _, p := range s.model.SortedPods() {
		if p.State == state.Assumed {
			ran[p.Name[:1]]++
			if !slices.Contains(pods[:2*ends], p.UID) {
				t.Errorf("%s got a node out of turn", p.Name)
			}
		}
	}
	if ran["a"] != 66 || ran["b"] != 34 { // 66/4 = 33/2 by guarantees; the last node goes to b, where more pods wait
		t.Errorf("pods that got a node: %v", ran)
	}
}
