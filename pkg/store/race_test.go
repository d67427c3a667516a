package store

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// Goroutines use the store as in the process: events, cycles, binds, a clock,
// configurations, and readers without a lock. Run it with -race.
func TestConcurrentUse(t *testing.T) {
	specs := []*config.Spec{
		specification(t, "rule: provided create\nroot\n  a max.vcore=5\n  b maxapps=2\n  c parent template.max.vcore=2"),
		specification(t, "rule: provided create\nroot limit=*;max.vcore=4\n  a max.vcore=3\n    x\n  c parent"),
	}
	s := New(specs[0], model.Options{Window: 4, MaxWindow: 16, InitialBackoff: -1, MaxBackoff: -1})
	s.Start(epoch)
	const pods, rounds = 30, 400
	var writers, reader sync.WaitGroup
	write := func(f func(random *rand.Rand, i int)) {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(1, 2))
			for i := range rounds {
				f(random, i)
			}
		})
	}
	at := func(i int) time.Time { return epoch.Add(time.Duration(i) * 100 * time.Millisecond) }
	write(func(random *rand.Rand, i int) { s.Upsert(hammered(random.IntN(pods), random.IntN(4)), at(i)) })
	write(func(random *rand.Rand, i int) {
		p := hammered(random.IntN(pods), random.IntN(4))
		if random.IntN(3) == 0 {
			s.Delete(p.UID, at(i))
			return
		}
		p.Node = "n1"
		s.Upsert(p, at(i))
	})
	write(func(random *rand.Rand, i int) { cycleOnce(s, random, at(i)) })
	write(func(random *rand.Rand, i int) {
		s.Tick(at(i))
		s.NextReports(at(i), 3)
		s.NextDeadline()
		s.UpsertNode("n1", queuestest.Vector(fmt.Sprintf("vcore=%d", 1+random.IntN(9))), at(i))
		s.UpsertNamespace("ns", map[string]string{placement.KeyNamespaceMax: fmt.Sprintf(`{"cpu":"%d"}`, 1+random.IntN(9))}, at(i))
	})
	write(func(_ *rand.Rand, i int) {
		if i%20 == 0 {
			s.Configure(specs[i/20%2], at(i))
		}
	})
	var over atomic.Bool
	reader.Go(func() {
		for i := 0; !over.Load(); i++ {
			read(t, s.Snapshot())
			s.Key(hammered(i%pods, 0).UID)
			select {
			case <-s.Wake():
				s.TakeActivations()
			default:
			}
		}
	})
	writers.Wait()
	over.Store(true)
	reader.Wait()
	expect.OK(t, s.Check())
	for i := range pods {
		s.Delete(hammered(i, 0).UID, at(rounds))
	}
	s.Tick(at(100 * rounds))
	expect.Same(t, "usage of root after all pods", queues.Usage{}, s.Snapshot().Root().Usage)
}

func hammered(i, variant int) objects.Pod {
	queue := []string{"root.a", "root.b", "root.c.d", "root.a.x"}[variant]
	return newPod(fmt.Sprintf("p%d", i), queue, fmt.Sprintf("app%d", i%7), queuestest.Vector("vcore=1 pods=1"))
}

// cycleOnce runs one cycle of a pod like the scheduler, whether the pod was admitted or
// not.
func cycleOnce(s *Store, random *rand.Rand, now time.Time) {
	uid := hammered(random.IntN(30), 0).UID
	if !s.Gate(uid, now).None() {
		s.Explain(uid)
		return
	}
	switch {
	case !s.CheckQuota(uid).OK():
		s.QuotaRefused(uid, now)
		return
	case random.IntN(4) == 0:
		s.NoNode(uid, "", s.Explain(uid), now)
		return
	}
	if s.Assume(uid, "n1", NoSnapshot, now).OK() && random.IntN(3) == 0 {
		s.Forget(uid, now)
	}
}

// read visits all of a snapshot: the sums of children must equal those of their parent,
// unless a queue has both applications and children.
func read(t *testing.T, snap *queues.Snapshot) {
	for q := range snap.All() {
		if q.Leaf || len(q.Children) == 0 {
			continue
		}
		n := 0
		for _, c := range q.Children {
			n += snap.Queue(c).Applications
		}
		expect.That(t, n <= q.Applications,
			"%s has %d applications, its children %d", q.Path, q.Applications, n)
	}
}
