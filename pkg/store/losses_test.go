package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// contest is a preemptor on a node where another scheduler takes all room that is made.
type contest struct {
	*testing.T
	store   *Store
	now     time.Time
	victims int
	lost    []time.Duration // since the first loss
	first   time.Time
}

func newContest(t *testing.T, pods int) *contest {
	t.Helper()
	c := &contest{T: t, store: New(specification(t, "root\n  owed guaranteed.vcore=1 props=preemption.delay:1s\n  b"), model.Options{}), now: epoch}
	c.store.Start(c.now)
	c.store.UpsertNode("n1", queuestest.Vector(fmt.Sprintf("vcore=%d pods=1000", pods)), c.now)
	for i := range pods {
		c.upsert(fmt.Sprintf("v%03d", i), "root.b", "n1")
	}
	c.upsert("a", "root.owed", "")
	return c
}

func (c *contest) upsert(name, queue, node string) {
	c.Helper()
	p := objects.Pod{
		Identity: objects.Identity{
			UID: types.UID(name), Namespace: "ns", Name: name, Created: epoch,
			Labels: map[string]string{"queue": queue, "applicationId": name},
		},
		Status:  objects.Status{Node: node},
		Request: queuestest.Vector("vcore=1 pods=1"),
	}
	if queue == "" {
		p.Foreign, p.Scheduler = true, "default-scheduler"
	}
	c.store.Upsert(p, c.now)
	if err := c.store.Check(); err != nil {
		c.Fatal(err)
	}
}

// step advances one second, in which the preemptor is tried as often as the scheduler
// may.
func (c *contest) step() {
	c.Helper()
	c.now = c.now.Add(time.Second)
	c.store.Tick(c.now)
	attempt, why := c.store.Attempt("a", "", nil, c.now)
	if attempt == nil {
		if why.Code == reasons.HoldSuperseded && len(c.store.TakeWork()) > 0 {
			if c.first.IsZero() {
				c.first = c.now
			}
			c.lost = append(c.lost, c.now.Sub(c.first))
		}
		return
	}
	d := search.Plan(attempt.World, attempt.Ask, planner.Params{})
	if d.Outcome != planner.Preempt {
		c.Fatalf("no plan: %s", d.Sentence())
	}
	if why := c.store.AcceptPlan("a", &d, c.now); !why.None() {
		c.Fatal(why)
	}
	c.store.TakeWork()
	going, why := c.store.Commit("a", nil, c.now)
	if !why.None() {
		c.Fatal(why)
	}
	c.store.VictimsDeleted("a", c.now)
	for _, v := range going {
		c.victims++
		c.store.Delete(v.UID, c.now)
		c.upsert(fmt.Sprintf("f%03d", c.victims), "", "n1")
	}
}

// TestLostRoomCostsTheLoser has another scheduler take all room for two hours. The pause
// after a loss must double up to its bound, so that few pods are disrupted in vain.
func TestLostRoomCostsTheLoser(t *testing.T) {
	c := newContest(t, 20)
	for range 2 * 3600 {
		c.step()
	}
	// A plan is made when the pause ends, and the next loss is seen a second later.
	var want []time.Duration
	at := time.Duration(0)
	for i := range 20 {
		if at >= 2*time.Hour-5*time.Second {
			break
		}
		want = append(want, at)
		at += min(15*time.Second<<i, 16*time.Minute) + time.Second
	}
	if diff := cmp.Diff(want, c.lost); diff != "" {
		t.Errorf("losses (-want +got):\n%s", diff)
	}
	if c.victims != len(want) {
		t.Errorf("%d pods went in vain, want %d", c.victims, len(want))
	}
}

// TestRefusalsAreBounded: a refusal passes to one pod of the same controller (and of the
// same node if the pod can run on one node only), ends with its pause, and the number of
// refusals is bounded.
func TestRefusalsAreBounded(t *testing.T) {
	s := New(specification(t, "root\n  a"), model.Options{})
	s.Start(epoch)
	number := 0
	refuse := func(controller, node string, now time.Time) {
		number++
		p := model.NewPod(&objects.Pod{Identity: objects.Identity{UID: types.UID(fmt.Sprintf("refused-%d", number)), Controller: types.UID(controller)}, Spec: objects.Spec{RequiredNode: node}}, s.model.NoTurn)
		p.Asks.Losses.PlacedAt = now
		s.holds.SuspectRefusal(p, now)
		s.KubeletRefused(p.UID, "OutOfcpu", now)
	}
	inherits := func(controller, node string, now time.Time) bool {
		number++
		uid := types.UID(fmt.Sprintf("heir-%d", number))
		s.Upsert(objects.Pod{
			Identity: objects.Identity{UID: uid, Namespace: "ns", Name: string(uid), Created: epoch, Controller: types.UID(controller)},
			Spec:     objects.Spec{RequiredNode: node, Foreign: node != "", Peer: node != ""},
			Request:  queuestest.Vector("vcore=1 pods=1"),
		}, now)
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		return s.model.Pods[uid].Asks.Losses.Count > 0
	}
	refuse("rs", "", epoch)
	refuse("rs", "", epoch)
	refuse("ds", "n1", epoch)
	refuse("", "", epoch)
	for _, c := range []struct {
		controller, node string
		after            time.Duration
		want             bool
	}{
		{"", "", 0, false}, {"other", "", 0, false}, {"rs", "", 0, true}, {"rs", "", time.Second, true}, {"rs", "", time.Second, false},
		{"ds", "n2", 0, false}, {"ds", "n1", 15 * time.Second, false}, {"ds", "n1", 0, false},
	} {
		if got := inherits(c.controller, c.node, epoch.Add(c.after)); got != c.want {
			t.Errorf("a pod of %q on %q after %v takes over a loss: %t", c.controller, c.node, c.after, got)
		}
	}
	for i := range preemption.MostRefusals + 5 {
		refuse(fmt.Sprintf("c%04d", i), "", epoch.Add(time.Duration(i)*time.Millisecond))
	}
	if s.model.Preemption.Refusals.Len() != preemption.MostRefusals || inherits("c0004", "", epoch.Add(2*time.Second)) || !inherits("c0005", "", epoch.Add(2*time.Second)) {
		t.Errorf("%d are remembered, or not the last ones", s.model.Preemption.Refusals.Len())
	}
	refuse("late", "", epoch.Add(time.Hour))
	if s.model.Preemption.Refusals.Len() != 1 {
		t.Errorf("%d are remembered after their pauses", s.model.Preemption.Refusals.Len())
	}
	s.model.Preemption.Refusals.Suspect(preemption.Refusal{}, epoch.Add(time.Hour))
	if s.Check() == nil {
		t.Error("a refusal of no pod is not found")
	}
}
