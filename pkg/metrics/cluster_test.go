package metrics

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newStore(tb testing.TB, tree string) *store.Store {
	tb.Helper()
	s := store.New(specOf(tb, tree), store.Options{InitialBackoff: -1})
	s.Start(now)
	Register()
	Follow(&s.Readers, mostQueues)
	for _, c := range []*queueCounts{&unmetTime, &gone} {
		c.of, c.shown = map[countKey]int64{}, nil
	}
	tb.Cleanup(func() { cluster.source.Store(nil) })
	return s
}

func specOf(tb testing.TB, tree string) *config.Spec {
	spec := queuestest.MustTree(tb, tree)
	spec.Rules = expect.Get(queuestest.Rules("provided"))(tb)
	return spec
}

func add(s *store.Store, name, queue, request, node string) {
	s.Upsert(pod(name, queue, request, node), now)
}

func pod(name, queue, request, node string) objects.Pod {
	return objects.Pod{
		Identity: objects.Identity{
			UID: types.UID(name), Namespace: "ns", Name: name, Created: now,
			Labels: map[string]string{"queue": queue, "applicationId": name},
		},
		Status:  objects.Status{Node: node},
		Request: queuestest.Vector(request + " pods=1"),
	}
}

const busyTree = `root
  a guaranteed.vcore=2 guaranteed.gpu=1 max.memory=64 maxapps=7 props=preemption.delay:1s
  b`

func preempt(tb testing.TB, s *store.Store, asker types.UID, at time.Time) {
	tb.Helper()
	input, why := s.BeginPlan(asker, "", nil, at)
	if input == nil {
		tb.Fatal(why)
	}
	d := search.Plan(input.Snapshot, input.Ask, planner.Params{})
	why = s.AcceptPlan(asker, &d, at)
	expect.That(tb, why.None(), "%s", why)
}

// compare compares the series of a metric. Those that differ only in the label by are in one
// line, with the values of their other labels before it: "root.a gpu: max=1 pending=0".
func compare(t *testing.T, name, by, want string) {
	t.Helper()
	lines := map[string]string{}
	for _, m := range series(t)[name].GetMetric() {
		var others []string
		for _, l := range m.GetLabel() {
			if l.GetName() != by && l.GetValue() != "" {
				others = append(others, l.GetValue())
			}
		}
		value := m.GetGauge().GetValue() + m.GetCounter().GetValue() // one is nil
		lines[strings.Join(others, " ")] += fmt.Sprintf(" %s=%v", label(m, by), value)
	}
	got := "\n"
	for _, others := range slices.Sorted(maps.Keys(lines)) {
		got += others + ":" + lines[others] + "\n"
	}
	expect.Same(t, name, want, got)
}

func TestQueuesAndHolds(t *testing.T) {
	s := newStore(t, busyTree)
	s.UpsertNode("n1", queuestest.Vector("vcore=1 memory=64 pods=9"), now)
	add(s, "b1", "root.b", "vcore=1", "n1")
	add(s, "a1", "root.a", "vcore=1 memory=8", "")
	s.NoNode("a1", "", reasons.Brief(reasons.NoNodeFits), now)
	preempt(t, s, "a1", now.Add(2*time.Second))
	compare(t, "paddock_holds", "state", `
queue: clear=0 clearing=1
required: clear=0 clearing=0
`)
	compare(t, "paddock_queue_applications", "state", `
root: all=2 running=2
root.a: all=1 max=7 running=1
root.b: all=1 running=1
`)
	compare(t, "paddock_queue_resource", "state", `
root memory: allocated=0 arriving=8 max=64 pending=8
root pods: allocated=1 arriving=1 leaving=1 max=9 pending=1
root vcore: allocated=1 arriving=1 leaving=1 max=1 pending=1
root.a gpu: allocated=0 guaranteed=1 pending=0
root.a memory: allocated=0 arriving=8 max=64 pending=8
root.a pods: allocated=0 arriving=1 pending=1
root.a vcore: allocated=0 arriving=1 guaranteed=2 pending=1
root.b memory: allocated=0 pending=0
root.b pods: allocated=1 leaving=1 pending=0
root.b vcore: allocated=1 leaving=1 pending=0
`)
}

func TestGatedPods(t *testing.T) {
	s := newStore(t, "root\n  a max.vcore=1\n  p parent")
	add(s, "running", "root.a", "vcore=1", "n1")
	add(s, "over", "root.a", "vcore=1", "")
	add(s, "lost", "root.p", "vcore=1", "")
	compare(t, "paddock_gated_pods", "reason", `
: OverMax=1 QueueNotLeaf=1
`)
}

const unmetGuarantee = "paddock_queue_unmet_guarantee_seconds_total"

func TestGuarantees(t *testing.T) {
	s := newStore(t, "root\n  a guaranteed.vcore=2 props=preemption.delay:5s\n  b guaranteed.vcore=1")
	ended := func() int {
		m := series(t)["paddock_time_to_guarantee_seconds"].GetMetric()[0]
		return int(m.GetHistogram().GetSampleCount())
	}
	before := ended()
	clock, leads := clocktesting.NewFakeClock(now), true
	g := &Guarantees{Store: &s.Readers, Leading: func() bool { return leads }, Clock: clock}
	pass := func(d time.Duration) {
		clock.Step(d)
		g.look(clock.Now())
	}
	g.look(now)
	add(s, "a1", "root.a", "vcore=1", "")
	add(s, "b1", "root.b", "vcore=1", "")
	pass(time.Second)
	s.NoNode("a1", "", reasons.Brief(reasons.NoNodeFits), clock.Now())
	pass(2 * time.Second)
	pass(3 * time.Second)
	s.Upsert(pod("b1", "root.b", "vcore=1", "n1"), clock.Now())
	pass(time.Second)
	compare(t, unmetGuarantee, "reason", `
root.a: InOrder=2 PreemptionDelayed=4
root.b: InOrder=6
`)
	expect.Same(t, "waits that ended", 1, ended()-before)
	leads = false // the other process counts now
	pass(time.Hour)
	leads = true
	pass(time.Hour)
	spec := queuestest.MustTree(t, "root\n  a guaranteed.vcore=2 props=preemption.delay:5s\n  c")
	s.Delete("b1", clock.Now())
	s.Configure(spec, clock.Now())
	s.Tick(clock.Now().Add(time.Minute))
	pass(time.Second)
	compare(t, unmetGuarantee, "reason", `
root.a: InOrder=2 PreemptionDelayed=5
`)
}

func TestGuaranteesRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, "root\n  a guaranteed.vcore=2")
		add(s, "a1", "root.a", "vcore=1", "")
		g := &Guarantees{Store: &s.Readers, Leading: func() bool { return true }, Clock: clock.RealClock{}}
		go g.Run(t.Context())
		time.Sleep(2 * lookInterval)
		synctest.Wait()
		expect.That(t, series(t)[unmetGuarantee] != nil, "nothing was measured")
	})
}

// manyQueues is a tree with so many leaves below one parent, and as many parents.
func manyQueues(leaves int) string {
	var b strings.Builder
	b.WriteString("root\n")
	for i := range leaves / 100 {
		fmt.Fprintf(&b, "  p%02d parent guaranteed.vcore=200 max.vcore=1000 max.memory=1000\n", i)
		for j := range 99 {
			fmt.Fprintf(&b, "    q%02d guaranteed.vcore=2 guaranteed.memory=4 max.vcore=100 max.memory=1000\n", j)
		}
	}
	return b.String()
}

func series(tb testing.TB) map[string]*dto.MetricFamily {
	tb.Helper()
	families := expect.Get(legacyregistry.DefaultGatherer.Gather())(tb)
	out := map[string]*dto.MetricFamily{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), subsystem+"_") {
			out[f.GetName()] = f
		}
	}
	return out
}

const mostQueues = 1000

func TestSeriesAreBounded(t *testing.T) {
	s := newStore(t, manyQueues(2000))
	add(s, "shown", "root.p00.q00", "vcore=1", "")
	add(s, "hidden", "root.p19.q98", "vcore=1", "")
	clock := clocktesting.NewFakeClock(now)
	g := &Guarantees{Store: &s.Readers, Leading: func() bool { return true }, Clock: clock}
	g.look(now)
	g.look(now.Add(time.Second))
	got := series(t)
	queuesOf := func(name string) (queues []string) {
		for _, m := range got[name].GetMetric() {
			queues = append(queues, label(m, "queue"))
		}
		return slices.Compact(queues)
	}
	queues := queuesOf("paddock_queue_applications")
	expect.Same(t, "queues that are shown", mostQueues, len(queues))
	expect.That(t, slices.Contains(queues, "root.p19"), "a parent is hidden before its children")
	expect.That(t, !slices.Contains(queues, "root.p19.q98"), "a leaf is shown before parents")
	gauge := func(name string) float64 { return series(t)[name].GetMetric()[0].GetGauge().GetValue() }
	expect.Same(t, "number of queues shown", 1000.0, gauge("paddock_queues_shown"))
	expect.Same(t, "number of queues hidden", 1001.0, gauge("paddock_queues_hidden"))
	unmet := queuesOf(unmetGuarantee)
	expect.Same(t, "unmet", []string{"other", "root.p00", "root.p00.q00", "root.p19"}, unmet)

	Follow(&s.Readers, 0)
	got = series(t)
	expect.That(t, got["paddock_queue_resource"] == nil, "resources are shown")
	expect.That(t, got["paddock_queue_applications"] == nil, "applications are shown")
	expect.Same(t, "number of queues hidden", 2001.0, gauge("paddock_queues_hidden"))
	cluster.source.Store(nil)
	expect.That(t, series(t)["paddock_queues_hidden"] == nil, "something is shown without a source")
}

// TestOtherQueues: the counters of queue "other" only grow, by what is counted of queues
// while they have no series of their own.
func TestOtherQueues(t *testing.T) {
	const guarantees = " guaranteed.vcore=1 maxapps=9"
	s := newStore(t, "root\n  a"+guarantees+"\n  b"+guarantees+"\n  c"+guarantees)
	Follow(&s.Readers, 3) // root, a and b
	for _, q := range []string{"a", "b", "c"} {
		add(s, q, "root."+q, "vcore=1", "")
	}
	at := now
	g := &Guarantees{Store: &s.Readers, Leading: func() bool { return true }, Clock: clocktesting.NewFakeClock(now)}
	count := func() {
		at = at.Add(time.Second)
		g.look(at)
		for q := range s.Snapshot().All() {
			gone.add(countKey{q.Path, string(record.Queue), "regular"}, 1)
		}
	}
	expectOther := func(when string, unmet, victims float64) {
		t.Helper()
		wants := map[string]float64{unmetGuarantee: unmet, "paddock_preemption_victims_total": victims}
		for name, want := range wants {
			sum := 0.0
			for _, m := range series(t)[name].GetMetric() {
				if label(m, "queue") == otherQueues {
					sum += m.GetCounter().GetValue()
				}
			}
			expect.Same(t, when+": "+name, want, sum)
		}
	}
	count()
	count()
	expectOther("c is hidden", 1, 2)
	Follow(&s.Readers, 4)
	expectOther("c is shown", 1, 2)
	count()
	expectOther("c counts for itself", 1, 2)
	Follow(&s.Readers, 2)
	expectOther("b and c are hidden", 1, 2)
	count()
	expectOther("b and c count for others", 3, 4)
	count()
	for _, pod := range []types.UID{"a", "c"} {
		s.Delete(pod, at)
	}
	s.Configure(specOf(t, "root\n  b"+guarantees), at)
	s.Tick(at.Add(time.Minute))
	expect.Same(t, "queues that are left, root and b", 2, s.Snapshot().Len())
	expectOther("a, with a count that was not shown, and c are removed", 5, 6)
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// BenchmarkScrape is a scrape of everything, with so many queues, all of which have pods.
func BenchmarkScrape(b *testing.B) {
	for _, queues := range []int{500, 5000} {
		s := newStore(b, manyQueues(queues))
		for i := range queues {
			add(s, fmt.Sprint("pod-", i), fmt.Sprintf("root.p%02d.q%02d", i/100, i%99), "vcore=1", "n1")
		}
		b.Run(fmt.Sprint("queues=", queues), func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				w := httptest.NewRecorder()
				legacyregistry.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
				size = w.Body.Len()
			}
			b.ReportMetric(float64(size), "bytes/scrape")
		})
	}
}

// BenchmarkChoose is what each scrape does to know which of 5,000 queues to show.
func BenchmarkChoose(b *testing.B) {
	s := newStore(b, manyQueues(5000)).Snapshot()
	for _, most := range []int{0, 1000, 10_000} {
		b.Run(fmt.Sprint("most=", most), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				choose(s, most)
			}
		})
	}
}

// TestLongestClearHold: of the holds without a victim left, the one that has waited longest.
func TestLongestClearHold(t *testing.T) {
	s := newStore(t, busyTree)
	says := func(seconds string) {
		t.Helper()
		want := "\n: queue=" + seconds + " required=0\n"
		compare(t, "paddock_longest_clear_hold_timestamp_seconds", "kind", want)
	}
	at := now
	for _, n := range []string{"1", "2"} {
		s.UpsertNode("n"+n, queuestest.Vector("vcore=1 pods=9"), now)
		add(s, "b"+n, "root.b", "vcore=1", "n"+n)
	}
	for _, n := range []string{"1", "2"} {
		add(s, "a"+n, "root.a", "vcore=1", "")
		s.NoNode(types.UID("a"+n), "", reasons.Brief(reasons.NoNodeFits), now)
		at = at.Add(2 * time.Second)
		preempt(t, s, types.UID("a"+n), at)
		if n == "1" {
			says("0") // its victim is there
		}
		going, why := s.Commit(types.UID("a"+n), nil, at)
		if !why.None() || len(going) == 0 {
			t.Fatalf("%d pods go: %s", len(going), why)
		}
		s.Delete(going[0].UID, at)
		says("1.767323047e+09") // of the first one, also after the second
	}
	s.Delete("a1", at)
	says("1.767323049e+09")
}

func victim(uid string, optedOut, originator bool) planner.Victim {
	return planner.Victim{Pod: &planner.Pod{UID: uid, OptedOut: optedOut, Originator: originator}}
}

// steps is a history: a refusal, a preemption of three pods and an unknown one, committed
// twice; a hold for a DaemonSet pod that was called off; and what another process does.
func steps() []output.Step {
	p, d := objects.Ref{UID: "p", Name: "p"}, objects.Ref{UID: "d", Name: "d"}
	hold := reservations.Hold{Asker: "p", Since: now}
	forDaemon := reservations.Hold{Asker: "d", Since: now, NodeBound: true}
	going := []output.Victim{
		{Ref: objects.Ref{UID: "1"}, Queue: "root.a"}, {Ref: objects.Ref{UID: "2"}, Queue: "root.a"},
		{Ref: objects.Ref{UID: "3"}, Queue: "root.gone"}, {Ref: objects.Ref{UID: "4"}},
	}
	return []output.Step{
		{Ref: p, Kind: output.StepRefused, Decision: &planner.Decision{Outcome: planner.Refuse, Stopped: planner.Law4, Rejected: []planner.Rejection{{Rule: planner.Law5, Pods: 3}}}},
		{Ref: p, Kind: output.StepHeld, Hold: hold, Decision: &planner.Decision{
			Outcome: planner.Preempt, Victims: []planner.Victim{victim("1", false, false), victim("2", true, true), victim("3", false, true)},
		}},
		{Ref: p, Kind: output.StepCommitted, Hold: hold, Going: going[:3]},
		{Ref: p, Kind: output.StepCommitted, Hold: hold, Going: going},
		{Ref: p, Kind: output.StepVictimsDeleted, Hold: hold},
		{Ref: p, Kind: output.StepEnded, Hold: hold, At: now.Add(5 * time.Second), Ended: reservations.Bound},
		{Ref: d, Kind: output.StepHeld, Hold: forDaemon, NodeBoundDecision: &daemonset.Decision{Outcome: planner.Hold, Stopped: daemonset.RuleNoVictims}},
		{Ref: d, Kind: output.StepAborted, Hold: forDaemon, Reason: reasons.Brief(reasons.HoldGivenUp)},
		{Ref: d, Kind: output.StepTakenUp, Hold: forDaemon},
		{Ref: d, Kind: output.StepLost, Hold: forDaemon, Losses: 1, Reason: reasons.Brief(reasons.HoldSuperseded)},
		{Ref: p, Kind: output.StepEnded, Hold: hold, Losses: 1, Ended: reservations.Superseded, Reason: reasons.Brief(reasons.HoldSuperseded)},
		{Ref: p, Kind: output.StepEnded, Hold: hold, Losses: 2, Ended: reservations.Superseded, Reason: reasons.Brief(reasons.HoldSuperseded)},
		{Ref: p, Kind: output.StepEnded, Hold: hold, Ended: reservations.GivenUp, Reason: reasons.Brief(reasons.HoldGivenUp)},
		{Ref: p, Kind: output.StepEnded, Hold: hold, Standby: true, Losses: 1, Ended: reservations.Superseded, Reason: reasons.Brief(reasons.HoldSuperseded)},
		{Ref: d, Kind: output.StepRefused, Standby: true, NodeBoundDecision: &daemonset.Decision{Outcome: planner.Refuse}},
	}
}

func TestDecisions(t *testing.T) {
	newStore(t, "root\n  a\n  b")
	decided.Reset()
	rejected.Reset()
	held.Reset()
	lostHolds.Reset()
	c := NewDecisions()
	for _, step := range steps() {
		c.Count(&step)
	}
	expect.That(t, len(c.open) == 0, "holds that are over are remembered: %v", c.open)
	for range 2 { // what was put to the others stays there, once
		compare(t, "paddock_holds_lost_total", "reason", `
queue: HoldGivenUp=0 HoldNodeGone=0 HoldNodeUnschedulable=0 HoldSuperseded=2 HoldTimedOut=0
required: HoldGivenUp=0 HoldNodeGone=0 HoldNodeUnschedulable=0 HoldSuperseded=1 HoldTimedOut=0
`)
		compare(t, "paddock_preemption_decisions_total", "outcome", `
queue: preempt=1
queue law 4: refused=1
required HoldGivenUp: called off=1
required no selection found victims: hold=1
`)
		compare(t, "paddock_preemption_rejected_candidates_total", "rule", `
queue: law 5=3
`)
		compare(t, "paddock_preemption_victims_total", "class", `
queue none: unknown=1
queue other: originator=1
queue root.a: opted out=1 regular=1
`)
	}
	lasted := held.WithLabelValues(string(record.Queue), string(reservations.Bound))
	expect.Same(t, "seconds of the hold", 5.0, expect.Get(testutil.GetHistogramMetricValue(lasted))(t))
}

// TestVictimsAreCountedOnceForAHold: also where a DaemonSet pod gets a further victim before the
// delete of the first has succeeded.
func TestVictimsAreCountedOnceForAHold(t *testing.T) {
	newStore(t, "root\n  a")
	c, d := NewDecisions(), objects.Ref{UID: "d", Name: "d"}
	hold := reservations.Hold{Asker: "d", Since: now, NodeBound: true}
	going := []output.Victim{{Ref: objects.Ref{UID: "1"}, Queue: "root.a"}, {Ref: objects.Ref{UID: "2"}, Queue: "root.a"}}
	decide := func(uid string, class daemonset.Class) *daemonset.Decision {
		victims := []daemonset.Victim{{Pod: &planner.Pod{UID: uid}, Class: class}}
		return &daemonset.Decision{Outcome: planner.Preempt, Victims: victims}
	}
	for _, step := range []output.Step{
		{Ref: d, Kind: output.StepHeld, Hold: hold, NodeBoundDecision: decide("1", daemonset.Regular)},
		{Ref: d, Kind: output.StepCommitted, Hold: hold, Going: going[:1]},
		{Ref: d, Kind: output.StepHeld, Hold: hold, NodeBoundDecision: decide("2", daemonset.Originator)},
		{Ref: d, Kind: output.StepCommitted, Hold: hold, Going: going},
		{Ref: d, Kind: output.StepEnded, Hold: hold, Ended: reservations.Bound},
	} {
		c.Count(&step)
	}
	compare(t, "paddock_preemption_victims_total", "class", `
required root.a: originator=1 regular=1
`)
}

func TestFindingsAndLostStepsAreCounted(t *testing.T) {
	Audited([]string{"quota"})
	for _, c := range []struct {
		name    string
		counter metrics.CounterMetric
		tell    func()
		want    float64
	}{
		{"findings of a kind", drifts.WithLabelValues("quota"), func() { Drifted("quota") }, 1},
		{"steps one by one, though they are told many at a time", lost, func() { StepsLost(3) }, 3},
	} {
		value := func() float64 { return expect.Get(testutil.GetCounterMetricValue(c.counter))(t) }
		before := value() // not 0 where the test runs again
		c.tell()
		expect.Same(t, c.name, before+c.want, value())
	}
}
