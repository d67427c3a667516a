package audit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/queues/store"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// court is a store with a record, and who judges again.
type court struct {
	*store.Store
	laws    *Laws
	record  *record.Record
	clock   *clocktesting.FakeClock
	counted []string
	lost    int64
}

func newCourt(t *testing.T) *court {
	c := &court{clock: clocktesting.NewFakeClock(began)}
	c.Store = store.New(queuestest.MustTree(t, "root\n  a guaranteed.vcore=4 props=preemption.delay:1s\n  b guaranteed.vcore=1"), store.Options{})
	c.OpenJournal()
	c.record = record.New(c, record.Options{})
	c.laws = &Laws{
		Clock: c.clock, Logger: ktesting.NewLogger(t, ktesting.NewConfig()),
		Count: func(law string) { c.counted = append(c.counted, law) }, Lost: func() int64 { return c.lost },
	}
	c.record.Follow(c.laws.Hear)
	c.Start(c.clock.Now())
	c.UpsertNode("n1", queuestest.Vector("vcore=4 pods=9"), c.clock.Now())
	c.UpsertNode("n2", queuestest.Vector("vcore=2 pods=9"), c.clock.Now())
	c.pod("v1", "root.b", "vcore=2", "n1")
	c.pod("v2", "root.b", "vcore=2", "n1")
	c.pod("v3", "root.b", "vcore=2", "n2")
	c.pod("a", "root.a", "vcore=2", "")
	c.pass(2 * time.Second)
	return c
}

func (c *court) pass(d time.Duration) {
	c.clock.Step(d)
	c.Tick(c.clock.Now())
}

func (c *court) pod(name, queue, request, node string) {
	c.Upsert(store.Pod{
		UID: types.UID(name), Namespace: "ns", Name: name, Created: began, Node: node, Request: queuestest.Vector(request + " pods=1"),
		Labels: map[string]string{placement.KeyQueue: queue, placement.KeyApplicationID: queue},
	}, c.clock.Now())
}

func ref(name string) store.Ref { return store.Ref{UID: types.UID(name), Namespace: "ns", Name: name} }

// plan puts a plan into force.
func (c *court) plan(t *testing.T) {
	t.Helper()
	attempt, why := c.Attempt("a", "", nil, c.clock.Now())
	if attempt == nil {
		t.Fatal(why)
	}
	d := victims.Plan(attempt.World, attempt.Ask, victims.Params{})
	if why := c.Claim("a", &d, c.clock.Now()); !why.None() {
		t.Fatal(why)
	}
}

// carryOut deletes the victims, and some others.
func (c *court) carryOut(t *testing.T, others ...string) {
	t.Helper()
	going, why := c.Commit("a", nil, c.clock.Now())
	if !why.None() {
		t.Fatal(why)
	}
	for _, name := range others {
		c.laws.LetGo(ref("a"), ref(name))
	}
	for _, v := range going {
		c.laws.LetGo(ref("a"), v.Ref)
		c.Delete(v.UID, c.clock.Now())
	}
	c.Disrupted("a", c.clock.Now())
	c.record.Take()
}

func (c *court) judge(t *testing.T, counted ...string) {
	t.Helper()
	c.pass(2 * settleTime)
	c.record.Take()
	err := c.laws.Check()
	if (err != nil) != (len(counted) > 0) || !slices.Equal(c.counted, counted) {
		t.Errorf("counted %v, want %v; the check says %v", c.counted, counted, err)
	}
}

func TestAnExecutedDecisionIsJudgedAgain(t *testing.T) {
	c := newCourt(t)
	c.plan(t)
	c.carryOut(t)
	c.pod("a", "root.a", "vcore=2", "n1")
	c.judge(t)
	if c.laws.Judged() != 1 {
		t.Errorf("%d decisions were judged", c.laws.Judged())
	}
}

// TestACaseThatBreaksALaw is the planted bug: what was committed is against the
// laws, and whoever judged it first did not notice.
func TestACaseThatBreaksALaw(t *testing.T) {
	c := newCourt(t)
	c.plan(t)
	c.laws.Hear(&store.Step{}) // nothing to judge
	spoil := func(s *store.Step) {
		if s.Case != nil {
			s.Case.Victims[0].Pod.Priority = 7
		}
	}
	steps := record.New(c, record.Options{})
	steps.Follow(spoil)
	steps.Follow(c.laws.Hear)
	if _, why := c.Commit("a", nil, c.clock.Now()); !why.None() {
		t.Fatal(why)
	}
	steps.Take()
	c.judge(t, "6")
	err := c.laws.Check()
	for _, part := range []string{"1 violations in 1 decisions", "pod ns/a", "law 6: its priority is 7", "node n1", "2026-01-02T03:04:07Z"} {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("%v lacks %q", err, part)
		}
	}
}

// TestSomebodyElseIsLetGo: the executor deletes a pod that no decision names.
func TestSomebodyElseIsLetGo(t *testing.T) {
	c := newCourt(t)
	c.plan(t)
	c.carryOut(t, "v3")
	c.judge(t, LawNamed)
	if err := c.laws.Check(); !strings.Contains(fmt.Sprint(err), "pod ns/v3 was let go for it, and no decision") {
		t.Errorf("%v", err)
	}
}

// TestAPodIsLetGoBeforeItsDecisionIsHeardOf: the executor is faster than the
// record, within limits.
func TestAPodIsLetGoBeforeItsDecisionIsHeardOf(t *testing.T) {
	c := newCourt(t)
	c.laws.LetGo(ref("a"), ref("v1"))
	c.pass(settleTime - time.Second)
	if err := c.laws.Check(); err != nil {
		t.Errorf("too soon: %v", err)
	}
	c.laws.Hear(&store.Step{Kind: store.StepCommitted, Going: []store.Victim{{Ref: ref("v1")}}})
	c.judge(t)
}

// TestWhatWasLost: nobody is accused of what may be among it, and it is said, for an
// hour: what comes later is judged as if nothing had been lost.
func TestWhatWasLost(t *testing.T) {
	c := newCourt(t)
	c.lost = 3
	c.laws.LetGo(ref("a"), ref("v1"))
	c.pass(2 * settleTime)
	if err := c.laws.Check(); len(c.counted) > 0 || !strings.Contains(fmt.Sprint(err), "3 steps of decisions were not recorded since the start, the last ones at 2026-01-02T03:04:07Z") {
		t.Errorf("counted %v: %v", c.counted, err)
	}
	c.pass(goingTime)
	c.laws.LetGo(ref("a"), ref("v3"))
	c.judge(t, LawNamed)
}

// TestWhoIsExcused: who was let go in the time for which a decision that was lost may
// go on.
func TestWhoIsExcused(t *testing.T) {
	for _, x := range []struct {
		name    string
		lost    time.Duration // after the start
		letGo   time.Duration
		counted []string
	}{
		{"lost right before", time.Minute, time.Minute, nil},
		{"heard of right after", time.Minute, time.Minute - settleTime/2, nil},
		{"the last moment", time.Minute, time.Minute + goingTime, nil},
		{"too late", time.Minute, time.Minute + goingTime + time.Second, []string{LawNamed}},
		{"an hour later", 0, time.Hour, []string{LawNamed}},
		{"lost when it was judged", time.Minute, time.Minute - 2*settleTime, []string{LawNamed}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newCourt(t)
			began := c.clock.Now()
			for at := time.Duration(0); at <= x.letGo+x.lost+settleTime; at += settleTime / 10 {
				c.clock.SetTime(began.Add(at))
				if at >= x.lost {
					c.lost = 1
				}
				if at == x.letGo {
					c.laws.LetGo(ref("a"), ref("v1"))
				}
				_ = c.laws.Check()
			}
			if !slices.Equal(c.counted, x.counted) {
				t.Errorf("counted %v, want %v", c.counted, x.counted)
			}
		})
	}
}

// TestLostStepsAreSaidForAnHour after the last ones.
func TestLostStepsAreSaidForAnHour(t *testing.T) {
	c := newCourt(t)
	for _, step := range []struct {
		after time.Duration
		lost  int64
		says  string
	}{
		{0, 0, ""},
		{time.Hour, 2, "2 steps of decisions were not recorded since the start, the last ones at 2026-01-02T04:04:07Z"},
		{lostSaid - time.Second, 2, "2 steps"},
		{time.Second, 2, ""},
		{time.Second, 7, "7 steps of decisions were not recorded since the start, the last ones at 2026-01-02T05:04:08Z"},
		{lostSaid, 7, ""},
	} {
		c.pass(step.after)
		c.lost = step.lost
		if got := fmt.Sprint(c.laws.Check()); !strings.HasPrefix(got, step.says) || (step.says == "") != (got == "<nil>") {
			t.Errorf("%+v: %s", step, got)
		}
	}
}

// TestTheAskerStartsElsewhere than on the node for which others had to go.
func TestTheAskerStartsElsewhere(t *testing.T) {
	for _, c := range []struct {
		name    string
		commit  bool
		place   func(*court)
		counted []string
	}{
		{"bound by somebody", true, func(c *court) { c.pod("a", "root.a", "vcore=2", "n2") }, []string{LawHold}},
		{"placed by this scheduler", true, func(c *court) { c.Assume("a", "n2", c.clock.Now()) }, []string{LawHold}},
		{"placed where it is to be", true, func(c *court) { c.Assume("a", "n1", c.clock.Now()); c.pod("a", "root.a", "vcore=2", "n1") }, nil},
		{"nobody had to go", false, func(c *court) { c.pod("a", "root.a", "vcore=2", "n2") }, nil},
		{"the hold was superseded", true, func(c *court) {
			c.Upsert(store.Pod{
				UID: "ds", Namespace: "ns", Name: "ds", Created: began, Node: "n1", RequiredNode: "n1", Request: queuestest.Vector("vcore=2 pods=1"),
				Labels: map[string]string{placement.KeyQueue: "root.b", placement.KeyApplicationID: "ds"},
			}, c.clock.Now())
			c.DeleteNode("n1", c.clock.Now())
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			court := newCourt(t)
			court.plan(t)
			if c.commit {
				court.carryOut(t)
			}
			c.place(court)
			court.judge(t, c.counted...)
		})
	}
}

// TestNamesAreForgotten: only the last victims are remembered.
func TestNamesAreForgotten(t *testing.T) {
	l := &Laws{Clock: clocktesting.NewFakeClock(began)}
	for i := range namedKept + 5 {
		l.name(types.UID(fmt.Sprint(i)))
		l.name(types.UID(fmt.Sprint(i)))
	}
	_, first := l.named["4"]
	_, sixth := l.named["5"]
	if len(l.named) != namedKept || len(l.order) != namedKept || first || !sixth {
		t.Errorf("%d names, %d in order, %t %t", len(l.named), len(l.order), first, sixth)
	}
}

// TestAllLaws: what is counted is in the list.
func TestAllLaws(t *testing.T) {
	all := AllLaws()
	if len(all) < 15 || !slices.Contains(all, LawNamed) || !slices.Contains(all, "D4") || slices.Contains(all, "") {
		t.Errorf("%v", all)
	}
}
