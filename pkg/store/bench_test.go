package store_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// wide is a tree of 5,125 queues, six levels deep, with quotas at every level.
func wide(tb testing.TB) (*config.Spec, []string) {
	tb.Helper()
	var leaves []string
	var grow func(n *config.Queue, path string, fanouts []int)
	grow = func(n *config.Queue, path string, fanouts []int) {
		if len(fanouts) == 0 {
			leaves = append(leaves, path)
			return
		}
		for i := range fanouts[0] {
			c := &config.Queue{Settings: config.Settings{Name: fmt.Sprintf("q%d", i)}}
			c.Max = resources.LimitFrom(map[string]resources.Amount{"vcore": 1e9, "memory": 1e15})
			c.Guaranteed = resources.GuaranteeFrom(map[string]resources.Amount{"vcore": resources.Amount(1000 * (1 + i))})
			n.Children = append(n.Children, c)
			grow(c, path+"."+c.Name, fanouts[1:])
		}
	}
	root := &config.Queue{Settings: config.Settings{Name: "root"}}
	grow(root, "root", []int{4, 5, 5, 5, 9})
	return expect.Get(queuestest.Spec(root))(tb), leaves
}

var request3 = queuestest.Vector("vcore=500m memory=1Gi pods=1")

func benchPod(i int, leaf string) objects.Pod {
	name := fmt.Sprintf("pod%07d", i)
	p := newPod(name, leaf, "app"+leaf, request3)
	p.Created, p.Priority = epoch.Add(time.Duration(i)), int32(i%3)
	return p
}

// benchStore is a started store with pods, pending or running, spread over all leaves.
func benchStore(b *testing.B, window, pods int, node string) (*store.Store, []objects.Pod) {
	b.Helper()
	spec, leaves := wide(b)
	s := store.New(spec, store.Options{Window: window, MaxWindow: window})
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
		do   func(s *store.Store, p *objects.Pod)
	}
	bind := func(s *store.Store, p *objects.Pod) {
		bound := *p
		bound.Node = "n1"
		s.Upsert(bound, epoch)
	}
	phases := []phase{
		{"create", func(s *store.Store, p *objects.Pod) { s.Upsert(*p, epoch) }},
		{"gate", func(s *store.Store, p *objects.Pod) { s.Gate(p.UID, epoch) }},
		{"judge", func(s *store.Store, p *objects.Pod) { s.CheckQuota(p.UID) }},
		{"assume", func(s *store.Store, p *objects.Pod) { s.Assume(p.UID, "n1", store.NoSnapshot, epoch) }},
		{"confirm", bind},
		{"delete", func(s *store.Store, p *objects.Pod) { s.Delete(p.UID, epoch) }},
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

func BenchmarkGate(b *testing.B) {
	s, pods := benchStore(b, 64, 100_000, "")
	var first, waits *model.Pod
	for i := range pods {
		switch p := s.Model().Pods[pods[i].UID]; p.State {
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
			s := store.New(queuestest.MustTree(b, c.tree), store.Options{Window: 64})
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
					s.Assume(r.UID, "n1", store.NoSnapshot, epoch)
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

// BenchmarkNode adds and removes nodes, which may change every share: one a second, and a hundred a
// second. The latter are small changes, so the order is updated once for all of them.
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
				s.Model().Pending.Demand.Changed()
				s.NextReports(now, 0)
			}
		})
	}
}

// contendedStore is a started store with nodes full of pods of queues without a
// guarantee; askers of root.a have waited past their delay.
func contendedStore(b testing.TB, nodes, podsPerNode, askers int) *store.Store {
	b.Helper()
	s := store.New(queuestest.MustTree(b, fmt.Sprintf("root\n  a guaranteed.vcore=%d props=preemption.delay:1s\n  b\n    x\n    y\n  c", max(askers, 1))),
		store.Options{Window: 1024, MaxWindow: 1024})
	s.SetPreemption(store.PreemptionOptions{RetryInterval: time.Hour, Round: time.Second, HoldTimeout: time.Hour})
	for n := range nodes {
		s.UpsertNode(fmt.Sprintf("n%05d", n), queuestest.Vector(fmt.Sprintf("vcore=%d memory=1000Gi pods=200", podsPerNode)), epoch)
		for i := range podsPerNode {
			s.Upsert(runningPod(n, i), epoch)
		}
	}
	for i := range askers {
		s.Upsert(contender(fmt.Sprintf("a%05d", i), "root.a", 1000+i), epoch)
	}
	s.Start(epoch)
	return s
}

// contender is a pod of a contended store, created so many seconds ago.
func contender(name, queue string, age int) objects.Pod {
	p := newPod(name, queue, fmt.Sprint(queue, age%50), queuestest.Vector("vcore=1 memory=1Gi pods=1"))
	p.Created = epoch.Add(-time.Duration(age) * time.Second)
	return p
}

// runningPod is pod i of node n of a contended store.
func runningPod(n, i int) objects.Pod {
	p := contender(fmt.Sprintf("v%05d-%02d", n, i), []string{"root.b.x", "root.b.y", "root.c"}[i%3], 100+i*7+n%13)
	p.Node = fmt.Sprintf("n%05d", n)
	return p
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
					p := runningPod((i*changed+k)%5000, i%30)
					s.Delete(p.UID, now)
					s.Upsert(p, now)
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
				d, held := planFor(s, r.UID, "class", nil, now)
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

// BenchmarkDaemonSetPod is all the work of the store for one DaemonSet pod on a full node, from its
// creation until it runs: decided, checked again, victims gone, placed. It must not cost more in a
// larger cluster, nor while all other nodes are held for pods of the same DaemonSet.
func BenchmarkDaemonSetPod(b *testing.B) {
	for _, nodes := range []int{100, 5000} {
		for _, held := range []bool{false, true} {
			b.Run(fmt.Sprintf("nodes=%d/others held=%v", nodes, held), func(b *testing.B) {
				s := daemonStore(b, nodes, 30, held)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					serve(b, s, daemonPod(fmt.Sprintf("x%d", i), nodes-1))
				}
			})
		}
	}
}

// daemonStore is a contended store. All its nodes but the last may be held for DaemonSet pods.
func daemonStore(tb testing.TB, nodes, podsPerNode int, held bool) *store.Store {
	s := contendedStore(tb, nodes, podsPerNode, 0)
	o := s.Preemption()
	o.NodeBoundParams = daemonset.Params{}
	s.SetPreemption(o)
	for n := range nodes - 1 {
		if held {
			makeRoomFor(tb, s, daemonPod(fmt.Sprintf("d%05d", n), n))
		}
	}
	s.TakeWork()
	return s
}

func daemonPod(name string, node int) objects.Pod {
	p := newPod(name, "root.a", "daemon", queuestest.Vector("vcore=1 memory=1Gi pods=1"))
	p.RequiredNode = fmt.Sprintf("n%05d", node)
	return p
}

// afterDelay is when the pods of a contended store may preempt.
var afterDelay = epoch.Add(time.Minute)

// makeRoomFor makes a pod hold its node and its victims leave.
func makeRoomFor(b testing.TB, s *store.Store, p objects.Pod) []output.Victim {
	b.Helper()
	s.Upsert(p, afterDelay)
	s.TakeActivations()
	a, why := s.BeginNodeBoundPlan(p.UID, nil, afterDelay)
	if a == nil {
		b.Fatal(why)
	}
	d := daemonset.Plan(a.Node, a.Ask, a.Params)
	if held, why := s.ApplyPlan(p.UID, &d, afterDelay); !held || d.Outcome != planner.Preempt {
		b.Fatal(d, why)
	}
	going, why := s.Commit(p.UID, nil, afterDelay)
	if !why.None() || len(going) != 1 {
		b.Fatal(going, why)
	}
	return going
}

// serve does all steps for a pod, and restores its node.
func serve(b testing.TB, s *store.Store, p objects.Pod) {
	b.Helper()
	n, i := 0, 0
	expect.Get(fmt.Sscanf(makeRoomFor(b, s, p)[0].Name, "v%d-%d", &n, &i))(b)
	victim := runningPod(n, i)
	s.VictimsDeleted(p.UID, afterDelay)
	s.Delete(victim.UID, afterDelay)
	s.TakeActivations()
	if v := s.Assume(p.UID, p.RequiredNode, store.NoSnapshot, afterDelay); !v.OK() {
		b.Fatalf("%s: %s", p.Name, v.Reason)
	}
	p.Node = p.RequiredNode
	s.Upsert(p, afterDelay)
	s.TakeWork()
	s.TakeVacated()
	s.Delete(p.UID, afterDelay)
	s.Upsert(victim, afterDelay)
}

// spent is the average number of bytes that a store allocates for a DaemonSet pod while
// all other nodes are held for pods like it; beside runs extra work for each. It does not
// depend on the machine or its load.
func spent(t *testing.T, nodes int, beside func(s *store.Store)) float64 {
	const runs = 50
	s := daemonStore(t, nodes, 5, true)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range runs {
		serve(t, s, daemonPod(fmt.Sprintf("x%d", i), nodes-1))
		beside(s)
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / runs
}

// TestADaemonSetPodCostsTheSame: the cost does not depend on the number of nodes or of
// held nodes, because only the pod's own node is visited.
func TestADaemonSetPodCostsTheSame(t *testing.T) {
	const most = 1.25
	grows := func(beside func(s *store.Store)) float64 {
		few, many := spent(t, 50, beside), spent(t, 1000, beside)
		t.Logf("%.0f bytes with 50 nodes, %.0f with 1000", few, many)
		return many / few
	}
	by := grows(func(*store.Store) {})
	expect.That(t, by <= most, "a pod costs %.2f times as much with 1000 nodes as with 50", by)
	by = grows(func(s *store.Store) { s.Holds().Nodes() })
	expect.That(t, by > most, "it is not noticed that all held nodes are looked at: %.2f", by)
}
