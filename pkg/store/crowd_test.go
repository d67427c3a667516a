package store_test

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
)

// invented is a request of n types that no other pod requests.
func invented(pod, n int) resources.Vector {
	entries := []resources.Entry{{Name: resources.Pods, Amount: 1}, {Name: resources.CPU, Amount: 1}}
	for i := range n {
		entries = append(entries, resources.Entry{Name: fmt.Sprintf("e%d.example.com/r%d", pod, i), Amount: 1})
	}
	return resources.VectorOf(entries...)
}

// cost is the work of a store: what it allocates, and how often it looks at a queue.
type cost struct {
	allocations, bytes uint64
	visits             int
}

// isAtMostTwice tells whether the cost is at most twice another one.
func (c cost) isAtMostTwice(other cost) bool { return c.isAtMost(20, other) }

// isLinear tells whether the cost grew as the pods did, which are twice as many. Work that
// grows with their square costs four times as much. Maps grow in steps.
func (c cost) isLinear(half cost) bool { return c.isAtMost(25, half) }

// isAtMost tells whether the cost is at most so many tenths of another one.
func (c cost) isAtMost(tenths int, other cost) bool {
	n := uint64(tenths)
	return 10*c.allocations <= n*other.allocations && 10*c.bytes <= n*other.bytes && 10*c.visits <= tenths*other.visits
}

// crowd is a tenant with pods that find no node.
type crowd struct {
	pods   int
	types  int  // invented types of each pod
	queues bool // each pod names a queue of its own, which a rule makes
	most   int  // such queues at most; 0 for no bound
}

// beside measures what the store does for a crowd, asking for plans included, and then for
// pods of another tenant and plans for one of them. Also, if set, is called at each event.
func (c crowd) beside(t *testing.T, also func(*store.Store)) (own, others cost, s *store.Store) {
	t.Helper()
	spec := queuestest.MustTree(t, "root\n  a guaranteed.vcore=8000\n  evil")
	spec.Rules = expect.Get(queuestest.Rules("provided create"))(t)
	spec.PreemptionEnabled = true
	s = store.New(spec, store.Options{DynamicQueues: queues.DynamicLimits{PerNamespace: c.most}})
	s.UpsertNode("n1", queuestest.Vector("vcore=8 memory=8Gi pods=2000"), epoch)
	s.Start(epoch)
	pod := func(name, namespace, queue string, request resources.Vector) objects.Pod {
		p := newPod(name, queue, name, request)
		p.Namespace = namespace
		return p
	}
	later, asked := epoch.Add(time.Hour), 0
	tried := func(p objects.Pod, prefix string) {
		s.Upsert(p, later)
		for _, ref := range s.TakeActivations() {
			class := prefix + string(ref.UID)
			s.Gate(ref.UID, later)
			if _, why := s.BeginPlan(ref.UID, class, nil, later); why.None() != (c.types == 0 || p.Namespace != "evil") {
				t.Fatalf("%s with %d invented types: %v", ref.Name, c.types, why)
			}
			asked++
			s.NoNode(ref.UID, class, reasons.Brief(reasons.NoNodeFits), later)
		}
		if also != nil {
			also(s)
		}
	}
	own = workOf(s, func() {
		for i := range c.pods {
			queue := "root.evil"
			if c.queues {
				queue = fmt.Sprintf("root.e%d", i)
			}
			tried(pod(fmt.Sprintf("evil%d", i), "evil", queue, invented(i, c.types)), "evil")
		}
	})
	expect.That(t, asked > 0 || c.types > cache.MostTypes, "no pod of %+v asked for a plan", c)
	others = workOf(s, func() {
		tried(pod("asker", "a", "root.a", queuestest.Vector("vcore=9 memory=1Gi pods=1")), "a")
		for i := range 100 {
			p := pod(fmt.Sprintf("a%d", i), "a", "root.a", queuestest.Vector("vcore=1m memory=1Mi pods=1"))
			s.Upsert(p, later)
			s.TakeActivations()
			s.Gate(p.UID, later)
			s.CheckQuota(p.UID)
			s.Assume(p.UID, "n1", store.NoSnapshot, later)
			p.Node = "n1"
			s.Upsert(p, later)
			if _, why := s.BeginPlan("asker", "a", nil, later.Add(time.Duration(i)*time.Minute)); !why.None() {
				t.Fatalf("no plan with %d invented types: %v", c.types, why)
			}
			if also != nil {
				also(s)
			}
			s.Delete(p.UID, later)
		}
	})
	return own, others, s
}

func workOf(s *store.Store, do func()) cost {
	visits := func() int {
		m := s.Model()
		return m.Cache.Tree().Visits() + m.Pending.Order.Visits() + m.Pending.RetryEarly.Visits() + m.Pending.AheadOnly.Visits() + m.PreemptionQueue.Order.Visits()
	}
	var before, after runtime.MemStats
	visited := visits()
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return cost{after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc, visits() - visited}
}

// mostTypes is how many types there are to visit at an event, at most: those of plans, of the
// books of all queues, and of the requests that are charged. Also, if set, is called before.
func (c crowd) mostTypes(t *testing.T, also func(*store.Store)) (most int) {
	c.beside(t, func(s *store.Store) {
		if also != nil {
			also(s)
		}
		n := len(s.Model().Preemption.Snapshot.Names())
		for q := range s.Model().Cache.Tree().All() {
			for _, v := range []resources.Vector{q.Allocated, q.Leaving, q.Arriving, q.Preempted, q.Admitted, q.Pending} {
				n += v.Len()
			}
		}
		for _, p := range s.Model().Pods {
			n += p.Request.Len()
		}
		most = max(most, n)
	})
	return most
}

// TestInventedTypes: pods with types that no node offers cost others at most twice what
// as many ordinary pods cost, have the store look at no more than twice as many queues for
// themselves, and leave no more types to visit at any event.
func TestInventedTypes(t *testing.T) {
	ordinaryOwn, ordinary, _ := crowd{pods: 1000}.beside(t, nil)
	want := crowd{pods: 1000}.mostTypes(t, nil)
	for _, n := range []int{20, cache.MostTypes - 1, 200} {
		own, others, _ := crowd{pods: 1000, types: n}.beside(t, nil)
		expect.That(t, others.isAtMostTwice(ordinary) && own.visits <= 2*ordinaryOwn.visits,
			"pods with %d invented types each cost others %+v and themselves %+v, ordinary ones %+v and %+v",
			n, others, own, ordinary, ordinaryOwn)
		got := (crowd{pods: 1000, types: n}).mostTypes(t, nil)
		expect.That(t, got <= want, "with %d types an event may visit %d, without %d", n, got, want)
	}
}

// TestInventedQueues: pods that each have a queue made, or would have one made beyond the
// bound, cost others at most twice what as many ordinary pods cost. A thousand such queues
// cost others at most twice what a hundred cost.
func TestInventedQueues(t *testing.T) {
	made := map[int]cost{}
	for _, n := range []int{100, 1000} {
		ordinaryOwn, ordinary, _ := crowd{pods: n}.beside(t, nil)
		for _, most := range []int{0, n / 10} {
			own, others, s := crowd{pods: n, queues: true, most: most}.beside(t, nil)
			expect.That(t, others.isAtMostTwice(ordinary) && own.visits <= 2*ordinaryOwn.visits,
				"%d pods with queues, at most %d, cost others %+v and themselves %+v, ordinary ones %+v and %+v",
				n, most, others, own, ordinary, ordinaryOwn)
			expect.Same(t, "queues of root", 2+cmp.Or(most, n), len(s.Snapshot().Root().Children))
			if most == 0 {
				made[n] = others
			}
		}
	}
	expect.That(t, made[1000].isAtMostTwice(made[100]),
		"1,000 queues cost others %+v, 100 queues %+v", made[1000], made[100])
}

// TestACrowdCostsAsMuchAsItIsLarge: what the pods of a tenant cost itself grows with their
// number, and not with its square.
func TestACrowdCostsAsMuchAsItIsLarge(t *testing.T) {
	for _, c := range []crowd{{}, {types: 20}, {types: cache.MostTypes - 1}, {types: 200}, {queues: true}, {queues: true, most: 50}} {
		half, all := c.costs(t, nil)
		expect.That(t, all.isLinear(half), "500 pods of %+v cost %+v, 1,000 cost %+v", c, half, all)
	}
}

func (c crowd) costs(t *testing.T, also func(*store.Store)) (half, all cost) {
	c.pods = 500
	half, _, _ = c.beside(t, also)
	c.pods = 1000
	all, _, _ = c.beside(t, also)
	return half, all
}

// TestWorkThatGrowsIsFound plants work at each event that grows with the queues, without
// an allocation, a list that grows by copying, and books with invented types.
func TestWorkThatGrowsIsFound(t *testing.T) {
	_, ordinary, _ := crowd{pods: 1000}.beside(t, nil)
	lists := map[*store.Store][]string{}
	if half, all := (crowd{types: 20}).costs(t, func(s *store.Store) {
		lists[s] = append(slices.Clone(lists[s]), make([]string, 20)...)
	}); all.isLinear(half) {
		t.Errorf("a list that grows by copying is not found: %+v, %+v", half, all)
	}
	if got, want := (crowd{pods: 1000, types: 20}).mostTypes(t, func(s *store.Store) {
		root := s.Model().Cache.Tree().Root()
		root.Pending = root.Pending.Add(invented(len(s.Model().Pods), 1))
	}), (crowd{pods: 1000}).mostTypes(t, nil); got <= want {
		t.Errorf("invented types in the books are not found: %d, %d", got, want)
	}
	for name, planted := range map[string]func(*store.Store){
		"a walk through all queues": func(s *store.Store) {
			for q := range s.Model().Cache.Tree().All() {
				q.Empty()
			}
		},
		"new shares of all queues": func(s *store.Store) {
			s.Model().TellCapacity()
			s.Model().Pending.Order.Next()
		},
	} {
		_, others, _ := crowd{pods: 1000, queues: true}.beside(t, planted)
		expect.That(t, !others.isAtMostTwice(ordinary), "%s is not found: %+v, %+v", name, others, ordinary)
	}
}
