package store

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// BenchmarkDaemonSetPod is all the work of the store for one DaemonSet pod on a full
// node, from its creation until it runs: decided, checked again, victims gone, placed. It
// must not cost more in a larger cluster, nor while all other nodes are held for pods of
// the same DaemonSet.
func BenchmarkDaemonSetPod(b *testing.B) {
	for _, nodes := range []int{100, 5000} {
		for _, held := range []bool{false, true} {
			b.Run(fmt.Sprintf("nodes=%d/others held=%v", nodes, held), func(b *testing.B) {
				s := contendedStore(b, nodes, 30, 0)
				o := s.Preemption()
				o.NodeBoundParams = daemonset.Params{}
				s.SetPreemption(o)
				now := epoch.Add(time.Minute)
				if held {
					for n := range nodes - 1 {
						makeRoomFor(b, s, daemonPod(fmt.Sprintf("d%05d", n), n), now)
					}
				}
				s.TakeWork()
				b.ReportAllocs()
				b.ResetTimer()
				for i := 0; b.Loop(); i++ {
					serve(b, s, daemonPod(fmt.Sprintf("x%d", i), nodes-1), now)
				}
			})
		}
	}
}

func daemonPod(name string, node int) objects.Pod {
	p := newPod(name, "root.a", "daemon", queuestest.Vector("vcore=1 memory=1Gi pods=1"))
	p.RequiredNode = fmt.Sprintf("n%05d", node)
	return p
}

// makeRoomFor makes a pod hold its node and its victims leave.
func makeRoomFor(b testing.TB, s *Store, p objects.Pod, now time.Time) []output.Victim {
	b.Helper()
	s.Upsert(p, now)
	s.TakeActivations()
	a, why := s.BeginNodeBoundPlan(p.UID, nil, now)
	if a == nil {
		b.Fatal(why)
	}
	d := daemonset.Plan(a.Node, a.Ask, a.Params)
	if held, why := s.ApplyPlan(p.UID, &d, now); !held || d.Outcome != planner.Preempt {
		b.Fatal(d, why)
	}
	going, why := s.Commit(p.UID, nil, now)
	if !why.None() || len(going) != 1 {
		b.Fatal(going, why)
	}
	return going
}

// serve does all steps for a pod, and restores its node.
func serve(b testing.TB, s *Store, p objects.Pod, now time.Time) {
	b.Helper()
	victim := *s.model.Pods[makeRoomFor(b, s, p, now)[0].UID].Pod
	s.VictimsDeleted(p.UID, now)
	s.Delete(victim.UID, now)
	s.TakeActivations()
	if v := s.Assume(p.UID, p.RequiredNode, NoSnapshot, now); !v.OK() {
		b.Fatal(v.Reason)
	}
	p.Node = p.RequiredNode
	s.Upsert(p, now)
	s.TakeWork()
	s.TakeVacated()
	s.Delete(p.UID, now)
	victim.Deleting = false
	s.Upsert(victim, now)
}

// spent is the average number of bytes that a store allocates for a DaemonSet pod while
// all other nodes are held for pods like it; beside runs extra work for each. It does not
// depend on the machine or its load.
func spent(t *testing.T, nodes int, beside func(s *Store)) float64 {
	const runs = 50
	s := contendedStore(t, nodes, 5, 0)
	o := s.Preemption()
	o.NodeBoundParams = daemonset.Params{}
	s.SetPreemption(o)
	now := epoch.Add(time.Minute)
	for n := range nodes - 1 {
		makeRoomFor(t, s, daemonPod(fmt.Sprintf("d%05d", n), n), now)
	}
	s.TakeWork()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range runs {
		serve(t, s, daemonPod(fmt.Sprintf("x%d", i), nodes-1), now)
		beside(s)
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / runs
}

// TestADaemonSetPodCostsTheSame: the cost does not depend on the number of nodes or of
// held nodes, because only the pod's own node is visited.
func TestADaemonSetPodCostsTheSame(t *testing.T) {
	const most = 1.25
	grows := func(beside func(s *Store)) float64 {
		few, many := spent(t, 50, beside), spent(t, 1000, beside)
		t.Logf("%.0f bytes with 50 nodes, %.0f with 1000", few, many)
		return many / few
	}
	if by := grows(func(*Store) {}); by > most {
		t.Errorf("a pod costs %.2f times as much with 1000 nodes as with 50", by)
	}
	if by := grows(func(s *Store) { s.model.Preemption.Ledger.Nodes() }); by <= most {
		t.Errorf("it is not noticed that all held nodes are looked at: %.2f", by)
	}
}
