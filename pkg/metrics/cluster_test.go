package metrics

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newStore is a store that has started and is shown.
func newStore(tb testing.TB, tree string) *store.Store {
	tb.Helper()
	spec := queuestest.MustTree(tb, tree)
	spec.Rules = expect.Get(queuestest.Rules("provided"))(tb)
	s := store.New(spec, store.Options{InitialBackoff: -1})
	s.Start(now)
	Register()
	Follow(s, mostQueues)
	for _, c := range []*queueCounts{&unmetTime, &gone} {
		c.of, c.shown = map[countKey]int64{}, nil
	}
	tb.Cleanup(func() { cluster.source.Store(nil) })
	return s
}

func add(s *store.Store, name, queue, request, node string) {
	s.Upsert(objects.Pod{
		Identity: objects.Identity{
			UID: types.UID(name), Namespace: "ns", Name: name, Created: now,
			Labels: map[string]string{"queue": queue, "applicationId": name},
		},
		Status:  objects.Status{Node: node},
		Request: queuestest.Vector(request + " pods=1"),
	}, now)
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
	if why := s.AcceptPlan(asker, &d, at); !why.None() {
		tb.Fatal(why)
	}
}

func compare(t *testing.T, want string, names ...string) {
	t.Helper()
	expect.Holds(t, testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(want), names...))
}

func TestQueuesAndHolds(t *testing.T) {
	s := newStore(t, busyTree)
	s.UpsertNode("n1", queuestest.Vector("vcore=1 memory=64 pods=9"), now)
	add(s, "b1", "root.b", "vcore=1", "n1")
	s.Upsert(objects.Pod{
		Identity: objects.Identity{UID: "a1", Namespace: "ns", Name: "a1", Created: now, Labels: map[string]string{"queue": "root.a"}},
		Spec:     objects.Spec{Priority: 9},
		Request:  queuestest.Vector("vcore=1 memory=8 pods=1"),
	}, now)
	s.NoNode("a1", "", reasons.Brief(reasons.NoNodeFits), now)
	preempt(t, s, "a1", now.Add(2*time.Second))
	compare(t, `
# HELP paddock_holds [ALPHA] Nodes held for pods, by the kind of pod, and whether the victims are gone.
# TYPE paddock_holds gauge
paddock_holds{kind="queue",state="clear"} 0
paddock_holds{kind="queue",state="clearing"} 1
paddock_holds{kind="required",state="clear"} 0
paddock_holds{kind="required",state="clearing"} 0
# HELP paddock_queue_applications [ALPHA] Applications of a queue and those below it: all that have pods, those that count as running, and how many may.
# TYPE paddock_queue_applications gauge
paddock_queue_applications{queue="root",state="all"} 2
paddock_queue_applications{queue="root",state="running"} 2
paddock_queue_applications{queue="root.a",state="all"} 1
paddock_queue_applications{queue="root.a",state="max"} 7
paddock_queue_applications{queue="root.a",state="running"} 1
paddock_queue_applications{queue="root.b",state="all"} 1
paddock_queue_applications{queue="root.b",state="running"} 1
# HELP paddock_queue_resource [ALPHA] What a queue is guaranteed, may use at most, uses and waits for: cores of vcore, bytes of memory and storage, else counts.
# TYPE paddock_queue_resource gauge
paddock_queue_resource{queue="root",resource="memory",state="allocated"} 0
paddock_queue_resource{queue="root",resource="memory",state="arriving"} 8
paddock_queue_resource{queue="root",resource="memory",state="max"} 64
paddock_queue_resource{queue="root",resource="memory",state="pending"} 8
paddock_queue_resource{queue="root",resource="pods",state="allocated"} 1
paddock_queue_resource{queue="root",resource="pods",state="arriving"} 1
paddock_queue_resource{queue="root",resource="pods",state="leaving"} 1
paddock_queue_resource{queue="root",resource="pods",state="max"} 9
paddock_queue_resource{queue="root",resource="pods",state="pending"} 1
paddock_queue_resource{queue="root",resource="vcore",state="allocated"} 1
paddock_queue_resource{queue="root",resource="vcore",state="arriving"} 1
paddock_queue_resource{queue="root",resource="vcore",state="leaving"} 1
paddock_queue_resource{queue="root",resource="vcore",state="max"} 1
paddock_queue_resource{queue="root",resource="vcore",state="pending"} 1
paddock_queue_resource{queue="root.a",resource="gpu",state="allocated"} 0
paddock_queue_resource{queue="root.a",resource="gpu",state="guaranteed"} 1
paddock_queue_resource{queue="root.a",resource="gpu",state="pending"} 0
paddock_queue_resource{queue="root.a",resource="memory",state="allocated"} 0
paddock_queue_resource{queue="root.a",resource="memory",state="arriving"} 8
paddock_queue_resource{queue="root.a",resource="memory",state="max"} 64
paddock_queue_resource{queue="root.a",resource="memory",state="pending"} 8
paddock_queue_resource{queue="root.a",resource="pods",state="allocated"} 0
paddock_queue_resource{queue="root.a",resource="pods",state="arriving"} 1
paddock_queue_resource{queue="root.a",resource="pods",state="pending"} 1
paddock_queue_resource{queue="root.a",resource="vcore",state="allocated"} 0
paddock_queue_resource{queue="root.a",resource="vcore",state="arriving"} 1
paddock_queue_resource{queue="root.a",resource="vcore",state="guaranteed"} 2
paddock_queue_resource{queue="root.a",resource="vcore",state="pending"} 1
paddock_queue_resource{queue="root.b",resource="memory",state="allocated"} 0
paddock_queue_resource{queue="root.b",resource="memory",state="pending"} 0
paddock_queue_resource{queue="root.b",resource="pods",state="allocated"} 1
paddock_queue_resource{queue="root.b",resource="pods",state="leaving"} 1
paddock_queue_resource{queue="root.b",resource="pods",state="pending"} 0
paddock_queue_resource{queue="root.b",resource="vcore",state="allocated"} 1
paddock_queue_resource{queue="root.b",resource="vcore",state="leaving"} 1
paddock_queue_resource{queue="root.b",resource="vcore",state="pending"} 0
`, "paddock_queue_resource", "paddock_queue_applications", "paddock_holds")
}

func TestGatedPods(t *testing.T) {
	s := newStore(t, "root\n  a max.vcore=1\n  p parent")
	add(s, "running", "root.a", "vcore=1", "n1")
	add(s, "over", "root.a", "vcore=1", "")
	add(s, "lost", "root.p", "vcore=1", "")
	compare(t, `
# HELP paddock_gated_pods [ALPHA] Pods of queues that are kept out of the scheduler's own queue, by the reason.
# TYPE paddock_gated_pods gauge
paddock_gated_pods{reason="OverMax"} 1
paddock_gated_pods{reason="QueueNotLeaf"} 1
`, "paddock_gated_pods")
}

func TestGuarantees(t *testing.T) {
	s := newStore(t, "root\n  a guaranteed.vcore=2 props=preemption.delay:5s\n  b guaranteed.vcore=1")
	ended := func() uint64 {
		return series(t)["paddock_time_to_guarantee_seconds"].GetMetric()[0].GetHistogram().GetSampleCount()
	}
	before := ended()
	clock, leads := clocktesting.NewFakeClock(now), true
	g := &Guarantees{Source: s, Leading: func() bool { return leads }, Clock: clock}
	pass := func(d time.Duration) {
		clock.Step(d)
		g.look(clock.Now())
	}
	want := func(lines string) {
		t.Helper()
		compare(t, `
# HELP paddock_queue_unmet_guarantee_seconds_total [ALPHA] For how long a queue was under its guarantee while pods waited that preemption could lawfully make room for, by what they waited for.
# TYPE paddock_queue_unmet_guarantee_seconds_total counter
`+lines, "paddock_queue_unmet_guarantee_seconds_total")
	}
	g.look(now)
	add(s, "a1", "root.a", "vcore=1", "")
	add(s, "b1", "root.b", "vcore=1", "")
	pass(time.Second)
	s.NoNode("a1", "", reasons.Brief(reasons.NoNodeFits), clock.Now())
	pass(2 * time.Second)
	pass(3 * time.Second)
	s.Upsert(objects.Pod{Identity: objects.Identity{UID: "b1", Namespace: "ns", Name: "b1", Created: now, Labels: map[string]string{"queue": "root.b", "applicationId": "b1"}}, Status: objects.Status{Node: "n1"}, Request: queuestest.Vector("vcore=1 pods=1")}, clock.Now())
	pass(time.Second)
	want(`paddock_queue_unmet_guarantee_seconds_total{queue="root.a",reason="InOrder"} 2
paddock_queue_unmet_guarantee_seconds_total{queue="root.a",reason="PreemptionDelayed"} 4
paddock_queue_unmet_guarantee_seconds_total{queue="root.b",reason="InOrder"} 6
`)
	if after := ended(); after != before+1 {
		t.Errorf("%d waits ended, want one", after-before)
	}
	leads = false // the other process counts now
	pass(time.Hour)
	leads = true
	pass(time.Hour)
	spec := queuestest.MustTree(t, "root\n  a guaranteed.vcore=2 props=preemption.delay:5s\n  c")
	s.Delete("b1", clock.Now())
	s.Configure(spec, clock.Now())
	s.Tick(clock.Now().Add(time.Minute))
	pass(time.Second)
	want(`paddock_queue_unmet_guarantee_seconds_total{queue="root.a",reason="InOrder"} 2
paddock_queue_unmet_guarantee_seconds_total{queue="root.a",reason="PreemptionDelayed"} 5
`)
}

// TestGuaranteesRun lets it run by its clock.
func TestGuaranteesRun(t *testing.T) {
	s := newStore(t, "root\n  a guaranteed.vcore=2")
	add(s, "a1", "root.a", "vcore=1", "")
	clock := clocktesting.NewFakeClock(now)
	g := &Guarantees{Source: s, Leading: func() bool { return true }, Clock: clock}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); g.Run(ctx) }()
	defer func() { // it counts for no other test
		cancel()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("it goes on after its end")
		}
	}()
	deadline := time.After(time.Minute)
	for series(t)["paddock_queue_unmet_guarantee_seconds_total"] == nil {
		select {
		case <-deadline:
			t.Fatal("nothing was measured")
		case <-time.After(time.Millisecond):
			clock.Step(lookInterval)
		}
	}
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

// series returns the families of ours on /metrics.
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

// mostQueues are shown in tests.
const mostQueues = 1000

// Without queues of their own all other series are there.
func TestNoQueueIsShown(t *testing.T) {
	s := newStore(t, manyQueues(200))
	Follow(s, 0)
	got := series(t)
	if got["paddock_queue_resource"] != nil || got["paddock_queue_applications"] != nil {
		t.Errorf("shown: %v", got["paddock_queue_resource"])
	}
	if n := got["paddock_queues_hidden"].GetMetric()[0].GetGauge().GetValue(); n != 201 {
		t.Errorf("%v are said to be hidden, want 201", n)
	}
}

func TestSeriesAreBounded(t *testing.T) {
	s := newStore(t, manyQueues(2000))
	add(s, "shown", "root.p00.q00", "vcore=1", "")
	add(s, "hidden", "root.p19.q98", "vcore=1", "")
	clock := clocktesting.NewFakeClock(now)
	g := &Guarantees{Source: s, Leading: func() bool { return true }, Clock: clock}
	g.look(now)
	g.look(now.Add(time.Second))
	got := series(t)
	var queues []string
	for _, m := range got["paddock_queue_applications"].GetMetric() {
		if q := label(m, "queue"); label(m, "state") == "all" {
			queues = append(queues, q)
		}
	}
	if len(queues) != mostQueues || !slices.Contains(queues, "root.p19") || slices.Contains(queues, "root.p19.q98") {
		t.Errorf("%d queues are shown, the last is %s", len(queues), queues[len(queues)-1])
	}
	expect.Same(t, "queues that are said to be shown", float64(mostQueues), got["paddock_queues_shown"].GetMetric()[0].GetGauge().GetValue())
	if n := got["paddock_queues_hidden"].GetMetric()[0].GetGauge().GetValue(); n != 2000+1-mostQueues {
		t.Errorf("%v are said to be hidden", n)
	}
	var waits []string
	for _, m := range got["paddock_queue_unmet_guarantee_seconds_total"].GetMetric() {
		waits = append(waits, label(m, "queue"))
	}
	expect.Same(t, "unmet", []string{"other", "root.p00", "root.p00.q00", "root.p19"}, waits)
}

// TestOtherQueues: the counters of queue "other" only grow, by what is counted of queues
// while they have no series of their own.
func TestOtherQueues(t *testing.T) {
	const guarantees = " guaranteed.vcore=1 maxapps=9"
	s := newStore(t, "root\n  a"+guarantees+"\n  b"+guarantees+"\n  c"+guarantees)
	Follow(s, 3) // root, a and b
	for _, q := range []string{"a", "b", "c"} {
		add(s, q, "root."+q, "vcore=1", "")
	}
	at := now
	g := &Guarantees{Source: s, Leading: func() bool { return true }, Clock: clocktesting.NewFakeClock(now)}
	count := func() {
		at = at.Add(time.Second)
		g.look(at)
		for q := range s.Snapshot().All() {
			gone.add(countKey{q.Path, string(record.Queue), "regular"}, 1)
		}
	}
	expectOther := func(when string, unmet, victims float64) {
		t.Helper()
		got := series(t)
		for name, want := range map[string]float64{"paddock_queue_unmet_guarantee_seconds_total": unmet, "paddock_preemption_victims_total": victims} {
			sum := 0.0
			for _, m := range got[name].GetMetric() {
				if label(m, "queue") == otherQueues {
					sum += m.GetCounter().GetValue()
				}
			}
			expect.Same(t, when+": "+name, want, sum)
		}
	}
	configure := func(tree string) {
		spec := queuestest.MustTree(t, tree)
		spec.Rules = expect.Get(queuestest.Rules("provided"))(t)
		s.Configure(spec, at)
	}
	count()
	count()
	expectOther("c is hidden", 1, 2)
	Follow(s, 4)
	expectOther("c is shown", 1, 2)
	count()
	expectOther("c counts for itself", 1, 2)
	Follow(s, 2)
	expectOther("b and c are hidden", 1, 2)
	count()
	expectOther("b and c count for others", 3, 4)
	count()
	for _, pod := range []types.UID{"a", "c"} {
		s.Delete(pod, at)
	}
	configure("root\n  b" + guarantees)
	s.Tick(at.Add(time.Minute))
	if n := s.Snapshot().Len(); n != 2 {
		t.Fatalf("%d queues are left, want root and b", n)
	}
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

func TestNothingToShow(t *testing.T) {
	newStore(t, "root")
	cluster.source.Store(nil)
	if got := series(t); got["paddock_queue_resource"] != nil {
		t.Errorf("shown without a source: %v", got)
	}
}

// BenchmarkScrape is a scrape of everything, with so many queues, all of which
// have pods.
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
				size = scrape(b)
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

// scrape asks for /metrics as Prometheus does and returns the size of the answer.
func scrape(tb testing.TB) int {
	tb.Helper()
	w := httptest.NewRecorder()
	legacyregistry.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		tb.Fatal(w.Code)
	}
	return w.Body.Len()
}

// TestLongestClearHold: of the holds without a victim left, the one that has waited
// longest.
func TestLongestClearHold(t *testing.T) {
	s := newStore(t, busyTree)
	says := func(seconds string) {
		t.Helper()
		compare(t, `
# HELP paddock_longest_clear_hold_timestamp_seconds [ALPHA] Unix time since which the hold that has been clear for longest waits for no pod; 0 if no hold is clear.
# TYPE paddock_longest_clear_hold_timestamp_seconds gauge
paddock_longest_clear_hold_timestamp_seconds{kind="queue"} `+seconds+`
paddock_longest_clear_hold_timestamp_seconds{kind="required"} 0
`, "paddock_longest_clear_hold_timestamp_seconds")
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
		if _, why := s.Commit(types.UID("a"+n), nil, at); !why.None() {
			t.Fatal(why)
		}
		h, _ := s.Holds().Of(types.UID("a" + n))
		s.Delete(h.Chosen[0], at)
		says("1.767323047e+09") // of the first one, also after the second
	}
	s.Delete("a1", at)
	says("1.767323049e+09")
}
