package store

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// contendedStore is a started store with nodes full of pods of queues without a
// guarantee; askers of root.a have waited past their delay.
func contendedStore(b testing.TB, nodes, podsPerNode, askers int) *Store {
	b.Helper()
	s := New(queuestest.MustTree(b, fmt.Sprintf("root\n  a guaranteed.vcore=%d props=preemption.delay:1s\n  b\n    x\n    y\n  c", max(askers, 1))),
		model.Options{Window: 1024, MaxWindow: 1024})
	s.SetPreemption(PreemptionOptions{RetryInterval: time.Hour, Round: time.Second, HoldTimeout: time.Hour})
	add := func(name, queue, node string, age int) {
		p := newPod(name, queue, fmt.Sprint(queue, age%50), queuestest.Vector("vcore=1 memory=1Gi pods=1"))
		p.Created, p.Node = epoch.Add(-time.Duration(age)*time.Second), node
		s.Upsert(p, epoch)
	}
	for n := range nodes {
		node := fmt.Sprintf("n%05d", n)
		s.UpsertNode(node, queuestest.Vector(fmt.Sprintf("vcore=%d memory=1000Gi pods=200", podsPerNode)), epoch)
		for i := range podsPerNode {
			add(fmt.Sprintf("v%05d-%02d", n, i), []string{"root.b.x", "root.b.y", "root.c"}[i%3], node, 100+i*7+n%13)
		}
	}
	for i := range askers {
		add(fmt.Sprintf("a%05d", i), "root.a", "", 1000+i)
	}
	s.Start(epoch)
	return s
}

// BenchmarkPlanInput makes the input of a plan at 5,000 nodes and 150,000 pods, after pods
// on a few nodes came and went since the last plan.
func BenchmarkPlanInput(b *testing.B) {
	for _, changed := range []int{0, 10} {
		b.Run(fmt.Sprintf("%d nodes changed", changed), func(b *testing.B) {
			s := contendedStore(b, 5000, 30, 1)
			now := epoch.Add(time.Minute)
			s.BeginPlan("a00000", "", nil, now)
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				for k := range changed {
					p := s.model.Pods[types.UID(fmt.Sprintf("v%05d-%02d", (i*changed+k)%5000, i%30))].Pod
					s.Delete(p.UID, now)
					s.Upsert(*p, now)
				}
				now = now.Add(time.Second)
				b.StartTimer()
				if a, why := s.BeginPlan("a00000", "", nil, now); a == nil {
					b.Fatal(why)
				}
			}
		})
	}
}

// BenchmarkReclaim: a queue preempts for its guarantee, 1,000 pods on 500 nodes, one
// asker after the other like the scheduler, without the writes to the cluster.
func BenchmarkReclaim(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s := contendedStore(b, 500, 20, 1000)
		now := epoch.Add(2 * time.Second)
		b.StartTimer()
		going := 0
		s.Tick(now)
		for going < 1000 {
			refs := s.TakeActivations()
			if len(refs) == 0 {
				b.Fatalf("no pod is let through, and %d go", going)
			}
			for _, r := range refs {
				d, held := planFor(s, r.UID, "class", planner.Params{}, now)
				if !held {
					b.Fatalf("%s: %v", r.Name, d)
				}
				going += len(d.Victims)
				if _, why := s.Commit(r.UID, nil, now); !why.None() {
					b.Fatal(why)
				}
			}
		}
	}
}
