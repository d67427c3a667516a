package store_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

type arena struct {
	*store.Store
	mu     sync.Mutex                        // guards claims
	claims map[types.UID]*reservations.Claim // on askers in the API server
	made   atomic.Int32
}

const arenaPods = 24

// pod returns pod i: the first ones are askers, the others run in a queue without a guarantee.
func (a *arena) pod(i int, node string) objects.Pod {
	queue := "root.a"
	if i >= arenaPods/3 {
		queue = "root.b"
	}
	name := fmt.Sprintf("p%02d", i)
	a.mu.Lock()
	defer a.mu.Unlock()
	p := newPod(name, queue, fmt.Sprint(queue, i%5), queuestest.Vector("vcore=1 pods=1"))
	p.Created, p.Node, p.Claim = epoch.Add(-time.Hour), node, a.claims[p.UID]
	return p
}

func (a *arena) ask(i int, now time.Time) {
	p := a.pod(i, "")
	view := a.Holds()
	for n := range 4 {
		view.MayUse(fmt.Sprint("n", n), reservations.Pod{UID: p.UID})
	}
	planFor(a.Store, p.UID, "class", nil, now)
}

func (a *arena) execute(random *rand.Rand, now time.Time) {
	for _, w := range a.TakeWork() {
		a.mu.Lock()
		claim := w.Hold.Claim()
		if a.claims[w.UID] = &claim; w.Kind == output.WorkRelease {
			delete(a.claims, w.UID)
		}
		a.mu.Unlock()
		if w.Kind != output.WorkDeleteVictims {
			continue
		}
		going, why := a.Commit(w.UID, nil, now)
		if !why.None() {
			continue
		}
		if random.IntN(4) == 0 {
			a.FailPlan(w.UID, why, nil, now)
			continue
		}
		for _, v := range going {
			a.Delete(v.UID, now)
		}
		a.VictimsDeleted(w.UID, now)
		a.made.Add(1)
	}
}

// Goroutines use the store as in the process: events, cycles, plans, the executor, a clock,
// configurations, and readers without a lock. Run it with -race.
func TestConcurrentUse(t *testing.T) {
	const tree = "root\n  a guaranteed.vcore=6 props=preemption.delay:1s\n  b"
	specs := []*config.Spec{specification(t, tree), specification(t, tree+" max.vcore=12")}
	s := store.New(specs[0], store.Options{InitialBackoff: -1, MaxBackoff: -1})
	a := &arena{Store: s, claims: map[types.UID]*reservations.Claim{}}
	s.SetPreemption(store.PreemptionOptions{RetryInterval: time.Second, Round: time.Second, HoldTimeout: time.Second})
	for n := range 4 {
		s.UpsertNode(fmt.Sprint("n", n), queuestest.Vector("vcore=4 pods=9"), epoch)
	}
	s.Start(epoch)
	for i := range arenaPods {
		node := ""
		if i >= arenaPods/3 {
			node = fmt.Sprint("n", i%4)
		}
		s.Upsert(a.pod(i, node), epoch)
	}
	at := func(i int) time.Time { return epoch.Add(time.Duration(i) * 50 * time.Millisecond) }
	goroutines := []func(random *rand.Rand, now time.Time){
		func(random *rand.Rand, now time.Time) {
			i := arenaPods/3 + random.IntN(2*arenaPods/3)
			s.Upsert(a.pod(i, fmt.Sprint("n", i%4)), now)
		},
		func(random *rand.Rand, now time.Time) { s.Upsert(a.pod(random.IntN(arenaPods/3), ""), now) },
		func(random *rand.Rand, now time.Time) { a.ask(random.IntN(arenaPods/3), now) },
		func(random *rand.Rand, now time.Time) { a.execute(random, now) },
		func(random *rand.Rand, now time.Time) {
			uid := a.pod(random.IntN(arenaPods/3), "").UID
			if h, ok := s.Holds().Of(uid); ok && len(h.Awaited) == 0 && s.Assume(uid, h.Node, store.NoSnapshot, now).OK() && random.IntN(2) == 0 {
				s.Forget(uid, now)
			}
		},
		func(random *rand.Rand, now time.Time) {
			s.Tick(now)
			s.SetNodeSchedulable("n3", random.IntN(2) == 0, now)
			s.SetPriorityClass("low", random.IntN(2) == 0, now)
			s.TakeActivations()
			s.TakeVacated()
			s.Explain(a.pod(random.IntN(arenaPods), "").UID)
		},
		func(random *rand.Rand, now time.Time) {
			s.Configure(specs[random.IntN(2)], now)
			s.UpsertNamespace("ns", map[string]string{placement.KeyNamespaceMax: fmt.Sprintf(`{"cpu":"%d"}`, 20+random.IntN(9))}, now)
			s.NextReports(now, 3)
		},
		func(random *rand.Rand, now time.Time) {
			uid := a.pod(random.IntN(arenaPods), "").UID
			if s.Gate(uid, now).None() && !s.CheckQuota(uid).OK() {
				s.QuotaRefused(uid, now)
			}
			s.Key(uid)
			queuestest.ShowUsage(s.Snapshot())
		},
	}
	const rounds, steps = 30, 20
	for round := range rounds { // no goroutine is more than a round ahead of the others
		var wg sync.WaitGroup
		for g, do := range goroutines {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(g), uint64(round)))
				for i := range steps {
					do(random, at(round*steps+i))
				}
			})
		}
		wg.Wait()
	}
	for i := range arenaPods / 3 { // one after another, so that some pod asks when it may
		a.ask(i, at(700+40*i))
		a.execute(rand.New(rand.NewPCG(9, uint64(i))), at(700+40*i))
	}
	expect.OK(t, s.Check())
	expect.That(t, a.made.Load() > 0, "no room was made")
	for i := range arenaPods {
		s.Delete(a.pod(i, "").UID, at(1000))
	}
	expect.Holds(t, s.Check())
	expect.That(t, !s.Holds().Held(), "all pods are gone, and a node is held")
}
