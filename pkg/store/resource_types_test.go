package store

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// invented is a request of n types that no other pod requests.
func invented(pod, n int) resources.Vector {
	entries := []resources.Entry{{Name: resources.Pods, Amount: 1}, {Name: resources.CPU, Amount: 1}}
	for i := range n {
		entries = append(entries, resources.Entry{Name: fmt.Sprintf("e%d.example.com/r%d", pod, i), Amount: 1})
	}
	return resources.VectorOf(entries...)
}

// cost is what a store allocates.
type cost struct{ allocations, bytes uint64 }

// costBeside measures what the store allocates for 1,000 pods of one tenant with n
// invented types each, and then for pods of another tenant and plans for one of them.
func costBeside(t *testing.T, n int) (own, others cost, s *Store) {
	t.Helper()
	spec := queuestest.MustTree(t, "root\n  a guaranteed.vcore=8000\n  evil")
	spec.PreemptionEnabled = true
	s = New(spec, model.Options{})
	s.UpsertNode("n1", queuestest.Vector("vcore=8 memory=8Gi pods=2000"), epoch)
	s.Start(epoch)
	pod := func(name, queue string, request resources.Vector) objects.Pod {
		return objects.Pod{
			UID: types.UID(name), Namespace: queue, Name: name, Created: epoch, Request: request,
			Labels: map[string]string{placement.KeyQueue: "root." + queue, placement.KeyApplicationID: name},
		}
	}
	tried := func(p objects.Pod, kind string) {
		s.Upsert(p, epoch)
		for _, ref := range s.TakeActivations() {
			s.Gate(ref.UID, epoch)
			s.NoNode(ref.UID, kind+string(ref.UID), reasons.Brief(reasons.NoNodeFits), epoch)
		}
	}
	measure := func(do func()) cost {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		return cost{after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc}
	}
	own = measure(func() {
		for i := range 1000 {
			tried(pod(fmt.Sprintf("evil%d", i), "evil", invented(i, n)), "evil")
		}
	})
	later := epoch.Add(time.Hour)
	others = measure(func() {
		tried(pod("asker", "a", queuestest.Vector("vcore=9 memory=1Gi pods=1")), "a")
		for i := range 100 {
			p := pod(fmt.Sprintf("a%d", i), "a", queuestest.Vector("vcore=1m memory=1Mi pods=1"))
			s.Upsert(p, later)
			s.TakeActivations()
			s.Gate(p.UID, later)
			s.CheckQuota(p.UID)
			s.Assume(p.UID, "n1", NoSnapshot, later)
			p.Node = "n1"
			s.Upsert(p, later)
			if _, why := s.Attempt("asker", "a", nil, later.Add(time.Duration(i)*time.Minute)); !why.None() {
				t.Fatalf("no plan: %v", why)
			}
			s.Delete(p.UID, later)
		}
	})
	return own, others, s
}

// TestInventedTypes: pods with types that no node offers cost others at most twice what
// as many ordinary pods cost, in allocations and in bytes. Usage sums and plans have only
// types that a node offers or a queue names.
func TestInventedTypes(t *testing.T) {
	_, ordinary, _ := costBeside(t, 0)
	for _, n := range []int{20, cache.MostTypes - 1, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			own, others, s := costBeside(t, n)
			t.Logf("ordinary pods cost others %+v, pods with invented types %+v; their own cost is %+v", ordinary, others, own)
			if others.allocations > 2*ordinary.allocations || others.bytes > 2*ordinary.bytes {
				t.Errorf("pods with %d invented types each cost others %+v, ordinary ones %+v", n, others, ordinary)
			}
			if got := len(s.model.Preemption.Snapshot.Names()); got > 4 {
				t.Errorf("plans have %d types", got)
			}
			for q := range s.model.Cache.Tree().All() {
				if got := q.Pending.Len(); got > 3 {
					t.Errorf("queue %s: %d types are pending", q.Path, got)
				}
			}
		})
	}
}
