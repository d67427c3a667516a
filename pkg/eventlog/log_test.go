package eventlog

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func cores(n resources.Amount) resources.Vector {
	return resources.VectorOf(resources.Entry{Name: "pods", Amount: 1}, resources.Entry{Name: "vcore", Amount: n})
}

func spec(t testing.TB, queues string) *config.Spec {
	t.Helper()
	return expect.Get(config.Parse([]byte("partitions:\n- name: default\n  placementrules: [{name: provided, create: true}]\n  queues:\n  - {name: root, submitacl: '*', queues: [" + queues + "]}\n")))(t)
}

type logged struct {
	*store.Store
	log  *Log
	read uint64
	now  time.Time
}

func newLogged(t testing.TB, queues string, size int) *logged {
	s := store.New(spec(t, queues), store.Options{QueueGrace: time.Second})
	l := &logged{Store: s, log: New(s.Follow(output.Facts), size), now: epoch}
	s.UpsertNode("old", cores(8000), epoch)
	s.Start(epoch)
	return l
}

func (l *logged) pod(uid, queue, app, node string) {
	l.Upsert(objects.Pod{
		Identity: objects.Identity{
			UID: types.UID(uid), Namespace: "ns", Name: uid, Created: l.now,
			Labels:      map[string]string{"queue": queue, "applicationId": app},
			Annotations: map[string]string{placement.KeyUserInfo: `{"user":"eva","groups":["dev"]}`},
		},
		Status:  objects.Status{Node: node},
		Request: cores(4000),
	}, l.now)
}

// news are the records since the last call, a line each.
func (l *logged) news(t testing.TB) []string {
	t.Helper()
	expect.Same(t, "lost events", int64(0), l.log.Collect())
	records, _, next, _ := l.log.Range(nil, l.read, 1000)
	l.read = next
	var out []string
	for _, r := range records {
		line := fmt.Sprintf("%d/%d/%d %s", r.Type, r.Change, r.Detail, r.Object)
		for _, more := range []string{r.Reference, r.Message} {
			if more != "" {
				line += " | " + more
			}
		}
		if !r.Amount.IsZero() {
			line += " | " + r.Amount.String()
		}
		out = append(out, line)
		expect.Same(t, line+": time", l.now.UnixNano(), r.Nanos)
	}
	return out
}

func (l *logged) want(t testing.TB, want ...string) {
	t.Helper()
	expect.Same(t, "records", want, l.news(t))
	l.now = l.now.Add(time.Second)
}

// TestRecords is the life of a few pods, in YuniKorn's numbers.
func TestRecords(t *testing.T) {
	l := newLogged(t, "{name: a}, {name: b, limits: [{limit: l, users: ['*'], groups: [dev], maxapplications: 9}]}", Size)
	l.want(t) // nothing of what was there
	l.pod("p", "root.b", "job", "")
	l.want(t, "2/2/203 job", "4/2/405 root.b | job", "5/1/602 dev | job", "2/1/204 job", "2/2/201 job | p | pods=1 vcore=4000")
	l.Assume("p", "old", store.NoSnapshot, l.now)
	l.want(t, "3/2/303 old | p | pods=1 vcore=4000", "5/2/603 eva | root.b | pods=1 vcore=4000", "5/2/604 dev | root.b | pods=1 vcore=4000", "2/2/200 job | p | pods=1 vcore=4000")
	l.Forget("p", l.now)
	l.want(t, "5/3/603 eva | root.b | pods=1 vcore=4000", "5/3/604 dev | root.b | pods=1 vcore=4000", "2/3/500 job | p | pods=1 vcore=4000", "3/3/303 old | p | pods=1 vcore=4000")
	l.pod("p", "root.b", "job", "old")
	l.want(t, "3/2/303 old | p | pods=1 vcore=4000", "5/2/603 eva | root.b | pods=1 vcore=4000", "5/2/604 dev | root.b | pods=1 vcore=4000", "2/2/200 job | p | pods=1 vcore=4000", "2/1/206 job")
	l.Delete("p", l.now)
	l.want(t, "5/3/603 eva | root.b | pods=1 vcore=4000", "5/3/604 dev | root.b | pods=1 vcore=4000", "2/3/500 job | p | pods=1 vcore=4000", "3/3/303 old | p | pods=1 vcore=4000",
		"2/1/208 job", "2/3/100 job | p | pods=1 vcore=4000", "5/3/602 dev | job", "4/3/405 root.b | job", "2/3/0 job")
}

func TestRecordsOfNodesAndForeignPods(t *testing.T) {
	l := newLogged(t, "{name: a}", Size)
	l.UpsertNode("new", cores(1000), l.now)
	l.want(t, "3/2/0 new | the node is known to the scheduler now | pods=1 vcore=1000", "4/1/403 root | pods=2 vcore=9000")
	l.UpsertNode("new", cores(2000), l.now)
	l.want(t, "3/1/304 new | pods=1 vcore=2000", "4/1/403 root | pods=2 vcore=10000")
	l.SetNodeSchedulable("new", true, l.now)
	l.want(t)
	l.SetNodeSchedulable("new", false, l.now)
	l.want(t, "3/1/302 new | schedulable: false")
	l.SetNodeSchedulable("new", true, l.now)
	l.want(t, "3/1/302 new | schedulable: true")
	l.Upsert(objects.Pod{Identity: objects.Identity{UID: "s"}, Spec: objects.Spec{Foreign: true, Static: true}, Status: objects.Status{Node: "new"}, Request: cores(10)}, l.now)
	l.Upsert(objects.Pod{Identity: objects.Identity{UID: "f"}, Spec: objects.Spec{Foreign: true}, Status: objects.Status{Node: "new"}, Request: cores(20)}, l.now)
	l.Upsert(objects.Pod{Identity: objects.Identity{UID: "f"}, Spec: objects.Spec{Foreign: true}, Status: objects.Status{Node: "new"}, Request: cores(30)}, l.now)
	l.want(t, "3/2/303 new | s | foreign allocation: static | pods=1 vcore=10", "3/2/303 new | f | foreign allocation: default | pods=1 vcore=20")
	l.Delete("f", l.now)
	l.want(t, "3/3/303 new | f | foreign allocation: default | pods=1 vcore=30")
	l.DeleteNode("new", l.now)
	l.want(t, "3/3/300 new | the node is gone", "4/1/403 root | pods=1 vcore=8000")
}

func TestRecordsOfQueues(t *testing.T) {
	l := newLogged(t, "{name: a}, {name: b}", Size)
	l.want(t)
	l.pod("p", "root.d.e", "job", "")
	l.want(t, "4/2/401 root.d", "4/2/401 root.d.e", "2/2/203 job", "4/2/405 root.d.e | job", "2/1/204 job", "2/2/201 job | p | pods=1 vcore=4000")
	l.Delete("p", l.now)
	l.news(t)
	l.now = l.now.Add(time.Minute)
	l.Tick(l.now)
	l.want(t, "4/3/401 root.d", "4/3/401 root.d.e")
	l.Configure(spec(t, "{name: a, resources: {guaranteed: {vcore: 1}}}, {name: b, queues: [{name: c, resources: {max: {vcore: 3}}, limits: [{limit: l, users: [u], maxapplications: 1}]}]}"), l.now)
	l.want(t, "4/1/404 root.a | vcore=1000", "4/1/402 root.b | leaf queue: false", "4/2/0 root.b.c", "4/1/403 root.b.c | vcore=3000", "5/1/600 u | root.b.c")
	l.Configure(spec(t, "{name: a}, {name: b, queues: [{name: c, resources: {max: {vcore: 4}}, limits: [{limit: l, groups: [g], maxapplications: 1}]}]}"), l.now)
	l.want(t, "4/1/404 root.a", "4/1/403 root.b.c | vcore=4000", "5/1/601 g | root.b.c", "5/3/600 u | root.b.c")
}

func TestRecordsOfRefusals(t *testing.T) {
	l := newLogged(t, "{name: a, queues: [{name: x}]}", Size)
	l.pod("p", "root.a", "job", "")
	l.pod("p", "root.a", "job", "")
	got := l.news(t)
	expect.That(t, len(got) == 1 && strings.HasPrefix(got[0], "2/1/202 job | p | "), "%q", got)
	l.now = l.now.Add(2 * time.Second)
	expect.Same(t, "reports", 1, len(l.NextReports(l.now, 9)))
	got = l.news(t)
	// 1/0/0: what people were told
	expect.That(t, len(got) == 1 && strings.HasPrefix(got[0], "1/0/0 p | "), "%q", got)
}

func TestRecordsOfPreemption(t *testing.T) {
	l := newLogged(t, "{name: a, resources: {guaranteed: {vcore: 8}}, properties: {preemption.delay: 1s}}, {name: b, properties: {preemption.delay: 1s}}", Size)
	l.UpsertNode("old", resources.VectorOf(resources.Entry{Name: "pods", Amount: 9}, resources.Entry{Name: "vcore", Amount: 8000}), l.now)
	l.pod("b1", "root.b", "fill", "old")
	l.pod("b2", "root.b", "fill", "old")
	l.pod("a1", "root.a", "want", "")
	l.now = l.now.Add(2 * time.Second)
	l.NoNode("a1", "", reasons.New(reasons.BackingOff, "no node"), l.now)
	l.now = l.now.Add(2 * time.Second)
	l.Tick(l.now)
	input, why := l.BeginPlan("a1", "", nil, l.now)
	if !why.None() {
		t.Fatal(why)
	}
	plan := search.Plan(input.Snapshot, input.Ask, planner.Params{})
	l.log.Collect()
	_, l.read = l.log.Bounds()
	if why := l.AcceptPlan("a1", &plan, l.now); !why.None() {
		t.Fatal(why)
	}
	l.want(t, "3/2/306 old | a1 | pods=1 vcore=4000")
	victim := plan.Victims[0].UID
	going, why := l.Commit("a1", nil, l.now)
	expect.That(t, len(going) == 1, "%d pods go: %s", len(going), why)
	// 1/0/0: what people were told
	told := "1/0/0 " + victim + " | fill | preempted for ns/a1 of queue root.a"
	got := l.news(t)
	expect.That(t, len(got) == 1 && strings.HasPrefix(got[0], told), "%q", got)
	l.Delete(types.UID(victim), l.now)
	got = l.news(t)
	expect.That(t, slices.Contains(got, "2/3/501 fill | "+victim+" | pods=1 vcore=4000"), "%q", got)
	l.now = l.now.Add(time.Second)
	l.pod("a1", "root.a", "want", "old")
	got = l.news(t)
	expect.That(t, slices.Contains(got, "3/3/306 old | a1 | pods=1 vcore=4000"), "%q has no end of the hold", got)
}

func TestRing(t *testing.T) {
	var happened events
	l := New(&happened, 4)
	add := func(at ...int64) {
		for _, n := range at {
			happened = append(happened, output.Event{Kind: output.NodeOpened, At: time.Unix(0, n)})
		}
		l.Collect()
	}
	check := func(first uint64, limit int, want []int64, wantLowest, wantNext uint64) {
		t.Helper()
		records, lowest, next, _ := l.Range(nil, first, limit)
		var got []int64
		for _, r := range records {
			got = append(got, r.Nanos)
		}
		what := fmt.Sprintf("from %d, %d", first, limit)
		expect.Same(t, what, want, got)
		expect.Same(t, what+": there are", []uint64{wantLowest, wantNext}, []uint64{lowest, next})
	}
	check(0, 9, nil, 0, 0)
	for n := range int64(3) {
		add(n)
	}
	check(0, 9, []int64{0, 1, 2}, 0, 3)
	check(1, 1, []int64{1}, 0, 3)
	check(3, 9, nil, 0, 3)
	_, _, _, more := l.Range(nil, 3, 9)
	add(3, 4, 5, 6, 7, 8)
	<-more
	check(5, 9, []int64{5, 6, 7, 8}, 5, 9)
	check(4, 9, nil, 5, 9)
	check(1<<63, 9, nil, 5, 9)
	got, _, _, _ := l.Range(make([]Record, 1), 7, 9)
	expect.That(t, len(got) == 3, "a list of one and the two that are left make %d", len(got))
}

// events are what is to be taken.
type events []output.Event

func (e *events) Take(into []output.Event) ([]output.Event, int) {
	into = append(into, *e...)
	*e = nil
	return into, 0
}

// TestRunSaysWhatIsLost: Run logs losses once, also those that a reader found, and ends
// with its context.
func TestRunSaysWhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(&flood{}, 10)
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.Run(t.Context(), clock.RealClock{}, logger)
		}()
		l.Collect() // for a reader, which comes first and does not log the loss
		time.Sleep(2*interval + time.Millisecond)
		synctest.Wait()
		said := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
		expect.That(t, strings.Count(said, "lost=") == 1 && strings.Contains(said, "lost=7"),
			"%q, want to be told of 7 once", said)
		_, next := l.Bounds()
		expect.That(t, next == 1, "%d records, want the one there is", next)
	})
}

type flood struct{ taken bool }

func (f *flood) Take(into []output.Event) ([]output.Event, int) {
	if f.taken {
		return into, 0
	}
	f.taken = true
	return append(into, output.Event{Kind: output.NodeOpened, Node: "n", At: epoch}), 7
}

func TestLongMessagesAreCut(t *testing.T) {
	expect.That(t, len(short(strings.Repeat("x", maxMessage))) == maxMessage, "cut though it fits")
	expect.Same(t, "cut", strings.Repeat("x", maxMessage-1), short(strings.Repeat("x", maxMessage-1)+"é"))
}
