package events

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/output"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// queue is a source of reports that gives each away once, as the store does.
type queue struct {
	mu      sync.Mutex
	waiting []output.Report
	limits  []int
}

func (q *queue) add(r output.Report) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, r)
}

func (q *queue) NextReports(_ time.Time, limit int) []output.Report {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limits = append(q.limits, limit)
	n := min(limit, len(q.waiting))
	next := q.waiting[:n]
	q.waiting = q.waiting[n:]
	return next
}

// recorder writes down events and the profile that speaks.
type recorder struct{ events []string }

type voice struct {
	profile string
	*recorder
}

func (v voice) Eventf(regarding, _ runtime.Object, kind, reason, action, note string, args ...any) {
	pod := regarding.(*corev1.Pod)
	v.events = append(v.events, fmt.Sprintf("%s: %s %s %s %s: ", v.profile, pod.Name, kind, reason, action)+fmt.Sprintf(note, args...))
}

// fixture is a reporter and all that it deals with. It belongs into a bubble.
type fixture struct {
	*Reporter
	client   *fake.Clientset
	pods     cache.Indexer
	queue    *queue
	recorder *recorder
	leading  atomic.Bool
	log      func() string
}

func newFixture(t *testing.T, pods ...*corev1.Pod) *fixture {
	d := &fixture{
		client: fake.NewClientset(), queue: &queue{}, recorder: &recorder{},
		pods: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
	}
	for _, p := range pods {
		expect.OK(t, errors.Join(d.client.Tracker().Add(p), d.pods.Add(p)))
	}
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	d.log = logger.GetSink().(ktesting.Underlier).GetBuffer().String
	d.leading.Store(true)
	d.Reporter = &Reporter{
		Reports: d.queue, Client: d.client, Pods: corelisters.NewPodLister(d.pods), Leading: d.leading.Load,
		Recorder: func(profile string) events.EventRecorder { return voice{profile, d.recorder} },
		Clock:    clock.RealClock{}, Logger: logger,
	}
	return d
}

// many adds pods and a report of each.
func (d *fixture) many(t *testing.T, n int, report func(name string) output.Report) {
	t.Helper()
	for i := range n {
		p := newPod(fmt.Sprint("p", i))
		expect.OK(t, errors.Join(d.client.Tracker().Add(p), d.pods.Add(p)))
		d.queue.add(report(p.Name))
	}
}

// run starts the reporter and returns what ends it.
func (d *fixture) run(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	return func() { cancel(); <-done }
}

// pass lets time pass in the bubble.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (d *fixture) patches() []clienttesting.PatchAction {
	var out []clienttesting.PatchAction
	for _, a := range d.client.Actions() {
		if p, ok := a.(clienttesting.PatchAction); ok {
			out = append(out, p)
		}
	}
	return out
}

func (d *fixture) condition(t *testing.T, name string) corev1.PodCondition {
	t.Helper()
	pod := expect.Get(d.client.CoreV1().Pods("ns").Get(t.Context(), name, metav1.GetOptions{}))(t)
	for _, c := range pod.Status.Conditions {
		if c.Type == Admitted {
			return c
		}
	}
	return corev1.PodCondition{}
}

func newPod(name string, conditions ...corev1.PodCondition) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{SchedulerName: "yunikorn"},
		Status:     corev1.PodStatus{Conditions: conditions},
	}
}

func reportOf(name string, why reasons.Reason) output.Report {
	return output.Report{Ref: objects.Ref{UID: types.UID("uid-" + name), Namespace: "ns", Name: name}, Reason: why}
}

// reportFull is the report of a pod in a queue that is full.
func reportFull(name string) output.Report { return reportOf(name, overMax("full")) }

func overMax(text string) reasons.Reason { return reasons.New(reasons.OverMax, "%s", text) }

// remedy ends whatever is told of OverMax.
const remedy = "Wait until pods of the queue finish, raise the max in queues.yaml, or ask for less; waiting does not help a pod that alone asks for more than the max."

var letThrough = reasons.Reason{}

func TestTellWritesConditionAndEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, newPod("p"))
		expect.OK(t, d.Tell(t.Context(), reportOf("p", overMax(`queue root.a: "100%s" used`))))
		patches := d.patches()
		if len(patches) != 1 || len(d.client.Actions()) != 1 {
			t.Fatalf("requests: %v, want one patch", d.client.Actions())
		}
		p := patches[0]
		if p.GetNamespace() != "ns" || p.GetName() != "p" || p.GetSubresource() != "status" || p.GetPatchType() != types.StrategicMergePatchType {
			t.Errorf("patch of %s/%s %s as %s", p.GetNamespace(), p.GetName(), p.GetSubresource(), p.GetPatchType())
		}
		const want = `{"metadata":{"uid":"uid-p"},"status":{"conditions":[{"lastTransitionTime":"2000-01-01T00:00:00Z",` +
			`"message":"queue root.a: \"100%s\" used. ` + remedy + `","reason":"OverMax","status":"False","type":"paddock.io/Admitted"}]}}`
		expect.Same(t, "patch", want, string(p.GetPatch()))
		events := []string{`yunikorn: p Warning OverMax Scheduling: queue root.a: "100%s" used. ` + remedy}
		expect.Same(t, "events", events, d.recorder.events)
	})
}

func TestTellKeepsOtherConditions(t *testing.T) {
	long := metav1.NewTime(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC))
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulingGated", LastTransitionTime: long}
	before := corev1.PodCondition{Type: Admitted, Status: corev1.ConditionFalse, Reason: "InOrder", Message: "3 pods", LastTransitionTime: long}
	for _, c := range []struct {
		name   string
		before []corev1.PodCondition
		why    reasons.Reason
		want   corev1.PodCondition
		events int
	}{
		{"first", []corev1.PodCondition{scheduled}, overMax("full"), corev1.PodCondition{
			Type: Admitted, Status: corev1.ConditionFalse, Reason: "OverMax", Message: "full. " + remedy}, 1},
		{"another reason, the same status since long", []corev1.PodCondition{before, scheduled}, overMax("full"), corev1.PodCondition{
			Type: Admitted, Status: corev1.ConditionFalse, Reason: "OverMax", Message: "full. " + remedy, LastTransitionTime: long}, 1},
		{"taken back", []corev1.PodCondition{scheduled, before}, letThrough, corev1.PodCondition{
			Type: Admitted, Status: corev1.ConditionTrue, Reason: "Admitted", Message: "the pod was let through to be scheduled"}, 0},
		{"much to say", []corev1.PodCondition{scheduled}, overMax(strings.Repeat("é", 5000)), corev1.PodCondition{
			Type: Admitted, Status: corev1.ConditionFalse, Reason: "OverMax", Message: strings.Repeat("é", (maxNote-len(". ..."+remedy))/2) + "... " + remedy}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t, newPod("p", c.before...))
				expect.OK(t, d.Tell(t.Context(), reportOf("p", c.why)))
				if c.want.LastTransitionTime.IsZero() {
					c.want.LastTransitionTime = metav1.Now()
				}
				pod := expect.Get(d.client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{}))(t)
				got := map[corev1.PodConditionType]corev1.PodCondition{}
				for _, c := range pod.Status.Conditions {
					c.LastTransitionTime = metav1.NewTime(c.LastTransitionTime.UTC())
					got[c.Type] = c
				}
				c.want.LastTransitionTime = metav1.NewTime(c.want.LastTransitionTime.UTC())
				want := map[corev1.PodConditionType]corev1.PodCondition{Admitted: c.want, corev1.PodScheduled: scheduled}
				if diff := cmp.Diff(want, got); diff != "" || len(pod.Status.Conditions) != 2 {
					t.Errorf("conditions (-want +got)\n%s", diff)
				}
				if len(d.recorder.events) != c.events {
					t.Errorf("events: %q, want %d", d.recorder.events, c.events)
				}
			})
		})
	}
}

// TestTellWarns: a warning is no reason to wait, and takes nothing back.
func TestTellWarns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, newPod("p"))
		warning := reportOf("p", reasons.New(reasons.SoftGangIgnored, "application a: no gang"))
		warning.Warning = true
		expect.OK(t, d.Tell(t.Context(), warning))
		entry, _ := reasons.Explain(reasons.SoftGangIgnored)
		events := []string{"yunikorn: p Warning SoftGangIgnored Scheduling: application a: no gang. " + entry.Remedy}
		expect.Same(t, "events", events, d.recorder.events)
		if len(d.client.Actions()) > 0 {
			t.Errorf("requests %v, want none", d.client.Actions())
		}
	})
}

func TestTellLeavesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		replaced := newPod("replaced")
		replaced.UID = "another"
		d := newFixture(t, replaced)
		for _, name := range []string{"replaced", "gone"} {
			if err := d.Tell(t.Context(), reportOf(name, overMax("full"))); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(d.client.Actions()) > 0 || len(d.recorder.events) > 0 {
			t.Errorf("requests %v, events %q; want none", d.client.Actions(), d.recorder.events)
		}
	})
}

var podResource = schema.GroupResource{Resource: "pods"}

func TestTellWhenThePatchFails(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		told bool // whether the error comes back
	}{
		{"gone a moment ago", apierrors.NewNotFound(podResource, "p"), false},
		{"replaced or changed a moment ago", apierrors.NewConflict(podResource, "p", errors.New("it was changed")), true},
		{"not permitted", apierrors.NewForbidden(podResource, "p", nil), true},
		{"server in trouble", apierrors.NewInternalError(errors.New("etcd")), true},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newFixture(t, newPod("p"))
			d.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.err })
			err := d.Tell(t.Context(), reportOf("p", overMax("full")))
			if (err != nil) != c.told || (c.told && (!errors.Is(err, c.err) || !strings.Contains(err.Error(), "ns/p"))) {
				t.Errorf("%s: %v", c.name, err)
			}
			if len(d.recorder.events) > 0 {
				t.Errorf("%s: events %q without the condition", c.name, d.recorder.events)
			}
		})
	}
}

func TestRunTellsOnlyWhileLeading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, newPod("p"), newPod("q"), newPod("r"))
		d.queue.waiting = []output.Report{reportOf("p", overMax("full")), reportOf("q", overMax("full")), reportOf("r", overMax("full"))}
		d.leading.Store(false)
		defer d.run(t)()
		pass(10 * time.Second)
		if len(d.queue.limits) > 0 || len(d.client.Actions()) > 0 {
			t.Fatalf("a standby took reports %d times and sent %v", len(d.queue.limits), d.client.Actions())
		}
		// The lease is lost right after the first write.
		d.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			d.leading.Store(false)
			return false, nil, nil
		})
		d.leading.Store(true)
		pass(10 * time.Second)
		if n := len(d.patches()); n != 1 {
			t.Fatalf("%d writes, want none after the lease was lost", n)
		}
		for range 2 {
			d.leading.Store(true)
			pass(time.Second)
		}
		if n := len(d.patches()); n != 3 || len(d.recorder.events) != 3 {
			t.Errorf("%d writes, %d events, want 3: what was left is told once it leads again", n, len(d.recorder.events))
		}
	})
}

func TestRunWritesNoFasterThanPermitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.many(t, 200, reportFull)
		defer d.run(t)()
		last := 0
		for second := range 9 {
			pass(time.Second)
			n := len(d.patches())
			if most := 50 + 20*(second+1); n > most || n < min(last+15, 200) {
				t.Errorf("after %d s: %d writes, %d a second before; want at most %d", second+1, n, last, most)
			}
			last = n
		}
		expect.Same(t, "writes in the end", 200, last)
		for _, l := range d.queue.limits {
			if l != batch {
				t.Fatalf("took %d reports at once, want %d", l, batch)
			}
		}
	})
}

// TestRunTakesNewReportsAfterAnOutage: reports that failed during an outage are written at
// the permitted rate. Reports about demand that come meanwhile do not wait for them.
func TestRunTakesNewReportsAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, newPod("late"))
		d.many(t, 300, reportFull)
		var out atomic.Bool
		out.Store(true)
		d.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return out.Load(), nil, apierrors.NewInternalError(errors.New("webhook"))
		})
		defer d.run(t)()
		pass(time.Minute)
		out.Store(false)
		pass(time.Second)
		d.queue.add(beyond("late"))
		pass(time.Second)
		pod := expect.Get(d.client.CoreV1().Pods("ns").Get(t.Context(), "late", metav1.GetOptions{}))(t)
		if len(pod.Status.Conditions) != 1 {
			t.Errorf("conditions %+v, want that about demand", pod.Status.Conditions)
		}
		pass(time.Minute)
		expect.Same(t, "events, one of each pod that failed during the outage", 300, len(d.recorder.events))
	})
}

// TestRunGoesOnWithOtherPods: in a namespace the status of more pods than a batch has cannot be
// written. That delays no report of another namespace, and a later report of a pod replaces
// the one that failed.
func TestRunGoesOnWithOtherPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		add := func(name, why string) {
			p := newPod(name)
			if d.pods.Add(p) == nil && d.client.Tracker().Add(p) != nil {
				t.Logf("another report of %s", name)
			}
			d.queue.add(reportOf(name, overMax(why)))
		}
		for i := range batch + 10 {
			add(fmt.Sprint("bad", i), "old")
		}
		var repaired atomic.Bool
		d.client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			failed := strings.HasPrefix(a.(clienttesting.PatchAction).GetName(), "bad") && !repaired.Load()
			return failed, nil, apierrors.NewInternalError(errors.New("webhook"))
		})
		defer d.run(t)()
		pass(10 * time.Second)
		add("good", "full")
		add("bad0", "new")
		pass(2 * time.Second)
		if got := d.condition(t, "good"); got.Reason != "OverMax" {
			t.Errorf("the report of another pod waits: %+v", got)
		}
		if n := strings.Count(d.log(), `pod="ns/bad1"`); n != 1 {
			t.Errorf("%d log lines about the same failure of one pod, want 1", n)
		}
		repaired.Store(true)
		pass(time.Minute)
		for i := range batch + 10 {
			want := "old. " + remedy
			if i == 0 {
				want = "new. " + remedy
			}
			expect.Same(t, fmt.Sprint("bad", i), want, d.condition(t, fmt.Sprint("bad", i)).Message)
		}
		expect.Same(t, "events, one of each pod", batch+11, len(d.recorder.events))
	})
}

func TestRunGivesUpWhatCannotSucceed(t *testing.T) {
	for _, final := range []error{
		apierrors.NewForbidden(podResource, "p", errors.New("no role")),
		apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil),
		apierrors.NewBadRequest("no"),
		apierrors.NewMethodNotSupported(podResource, "patch"),
		apierrors.NewRequestEntityTooLargeError("no"),
		&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: "etcdserver: request is too large"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newFixture(t, newPod("p"), newPod("q"))
			d.queue.waiting = []output.Report{reportOf("p", overMax("full")), reportOf("q", overMax("full"))}
			calls := 0
			d.client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				calls++
				return a.(clienttesting.PatchAction).GetName() == "p", nil, final
			})
			defer d.run(t)()
			pass(2 * time.Second)
			if calls != 2 || d.condition(t, "q").Reason != "OverMax" || len(d.recorder.events) != 1 || !strings.Contains(d.log(), `pod="ns/p"`) {
				t.Errorf("%v: calls %d, events %q\n%s", final, calls, d.recorder.events, d.log())
			}
		})
	}
}
