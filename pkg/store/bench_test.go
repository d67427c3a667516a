package store

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// wide is a tree of 5,125 queues, six levels deep, with quotas at every level.
func wide(tb testing.TB) (*config.Spec, []string) {
	tb.Helper()
	var leaves []string
	var grow func(n *queuestest.Node, path string, fanouts []int)
	grow = func(n *queuestest.Node, path string, fanouts []int) {
		if len(fanouts) == 0 {
			leaves = append(leaves, path)
			return
		}
		for i := range fanouts[0] {
			c := &queuestest.Node{
				Name:       fmt.Sprintf("q%d", i),
				Max:        map[string]resources.Amount{"vcore": 1e9, "memory": 1e15},
				Guaranteed: map[string]resources.Amount{"vcore": resources.Amount(1000 * (1 + i))},
			}
			n.Children = append(n.Children, c)
			grow(c, path+"."+c.Name, fanouts[1:])
		}
	}
	root := &queuestest.Node{Name: "root"}
	grow(root, "root", []int{4, 5, 5, 5, 9})
	spec := expect.Get(queuestest.Spec(root))(tb)
	return spec, leaves
}

var request3 = queuestest.Vector("vcore=500m memory=1Gi pods=1")

func benchPod(i int, leaf string) objects.Pod {
	name := fmt.Sprintf("pod%07d", i)
	p := newPod(name, leaf, "app"+leaf, request3)
	p.Created, p.Priority = epoch.Add(time.Duration(i)), int32(i%3)
	return p
}

// benchStore is a started store with pods, pending or running, spread over all leaves.
func benchStore(b *testing.B, window, pods int, node string) (*Store, []objects.Pod) {
	b.Helper()
	spec, leaves := wide(b)
	s := New(spec, model.Options{Window: window, MaxWindow: window})
	s.UpsertNode("n1", queuestest.Vector("vcore=100000 memory=400000Gi pods=200000"), epoch)
	all := make([]objects.Pod, pods)
	for i := range all {
		all[i] = benchPod(i, leaves[i*7%len(leaves)])
		all[i].Node = node
		s.Upsert(all[i], epoch)
	}
	s.Start(epoch)
	s.TakeActivations()
	return s, all
}

const batch = 5000

// BenchmarkEvent measures each event of a pod's life separately.
func BenchmarkEvent(b *testing.B) {
	type phase struct {
		name string
		do   func(s *Store, p *objects.Pod)
	}
	bind := func(s *Store, p *objects.Pod) {
		bound := *p
		bound.Node = "n1"
		s.Upsert(bound, epoch)
	}
	phases := []phase{
		{"create", func(s *Store, p *objects.Pod) { s.Upsert(*p, epoch) }},
		{"gate", func(s *Store, p *objects.Pod) { s.Gate(p.UID, epoch) }},
		{"judge", func(s *Store, p *objects.Pod) { s.CheckQuota(p.UID) }},
		{"assume", func(s *Store, p *objects.Pod) { s.Assume(p.UID, "n1", NoSnapshot, epoch) }},
		{"confirm", bind},
		{"delete", func(s *Store, p *objects.Pod) { s.Delete(p.UID, epoch) }},
	}
	s, _ := benchStore(b, 2*batch, 20_000, "n1")
	_, leaves := wide(b)
	for i := range phases {
		b.Run(phases[i].name, func(b *testing.B) {
			b.ReportAllocs()
			b.StopTimer()
			for done := 0; done < b.N; done += batch {
				n := min(batch, b.N-done)
				pods := make([]objects.Pod, n)
				for j := range pods {
					pods[j] = benchPod(1_000_000+j, leaves[j*11%len(leaves)])
				}
				for k, ph := range phases {
					if k == i {
						b.StartTimer()
					}
					for j := range pods {
						ph.do(s, &pods[j])
					}
					if k == i {
						b.StopTimer()
					}
				}
				s.TakeActivations()
			}
		})
	}
}

// BenchmarkLife measures a pod from its creation to its end.
func BenchmarkLife(b *testing.B) {
	s, _ := benchStore(b, batch, 0, "")
	_, leaves := wide(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p := benchPod(i%1000, leaves[i%len(leaves)])
		s.Upsert(p, epoch)
		s.TakeActivations()
		s.Gate(p.UID, epoch)
		s.Key(p.UID)
		s.CheckQuota(p.UID)
		s.Assume(p.UID, "n1", NoSnapshot, epoch)
		p.Node = "n1"
		s.Upsert(p, epoch)
		s.Delete(p.UID, epoch)
	}
}

func BenchmarkGate(b *testing.B) {
	s, pods := benchStore(b, 64, 100_000, "")
	var first, waits *model.Pod
	for i := range pods {
		switch p := s.model.Pods[pods[i].UID]; p.State {
		case state.Admitted:
			first = p
		case state.Queued:
			waits = p
		}
	}
	b.Run("admitted", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			first.State = state.Admitted
			s.Gate(first.UID, epoch)
		}
	})
	b.Run("in order", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Gate(waits.UID, epoch)
		}
	})
}

// BenchmarkUnblock: 5,000 applications wait in one full leaf; one pod finishes, and a pod
// of one application takes its place.
func BenchmarkUnblock(b *testing.B) {
	for _, c := range []struct{ name, leaf, tree string }{
		{"max", "root.a", "root\n  a max.pods=10"},
		{"max of parent", "root.p.a", "root\n  p max.pods=10\n    a"},
		{"maxapplications", "root.a", "root\n  a maxapps=10"},
		{"user limit", "root.a", "root limit=*;max.pods=10\n  a"},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := New(queuestest.MustTree(b, c.tree), model.Options{Window: 64})
			s.Start(epoch)
			add := func(i int) {
				p := benchPod(i, c.leaf)
				p.Labels[placement.KeyApplicationID] = fmt.Sprintf("app%d", i)
				s.Upsert(p, epoch)
			}
			for i := range 5000 {
				add(i)
			}
			b.ReportAllocs()
			var running []types.UID
			for i := 5000; b.Loop(); i++ {
				for _, r := range s.TakeActivations() {
					s.Assume(r.UID, "n1", NoSnapshot, epoch)
					running = append(running, r.UID)
				}
				s.Delete(running[0], epoch)
				running = running[1:]
				add(i)
			}
		})
	}
}

// BenchmarkConfigure loads a configuration of 5,000 queues while 20,000 pods are pending
// or running.
func BenchmarkConfigure(b *testing.B) {
	s, _ := benchStore(b, 64, 20_000, "")
	spec, _ := wide(b)
	for b.Loop() {
		s.Configure(spec, epoch)
	}
}

// BenchmarkNode adds and removes nodes, which may change every share: one a second, and a
// hundred a second. The latter are small changes, so the order is updated once for all of
// them.
func BenchmarkNode(b *testing.B) {
	for _, c := range []struct {
		name  string
		every time.Duration
	}{
		{"one a second", time.Second},
		{"a hundred a second", 10 * time.Millisecond},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, _ := benchStore(b, 64, 20_000, "n1") // all run: the order is read each time
			now := epoch
			for i := 0; b.Loop(); i++ {
				now = now.Add(c.every)
				if due, ok := s.NextDeadline(); ok && !due.After(now) {
					s.Tick(now)
				}
				if i%2 == 0 {
					s.UpsertNode("n2", queuestest.Vector(fmt.Sprintf("vcore=%d", 1+i%4)), now)
				} else {
					s.DeleteNode("n2", now)
				}
			}
		})
	}
}

// BenchmarkDemand measures one computation of the demand over pods that found no node.
func BenchmarkDemand(b *testing.B) {
	for _, pods := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(pods), func(b *testing.B) {
			s, all := benchStore(b, pods, pods, "")
			for i := range all {
				s.Gate(all[i].UID, epoch)
				s.NoNode(all[i].UID, "", reasons.New(reasons.NoNodeFits, "0 of 1 nodes fit"), epoch)
			}
			now := epoch
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Second)
				s.model.Pending.Demand.Changed()
				s.demand.Take(0, now)
			}
		})
	}
}
