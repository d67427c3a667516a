package events

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
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

func (d *fixture) many(t *testing.T, n int, report func(name string) output.Report) {
	t.Helper()
	for i := range n {
		p := newPod(fmt.Sprint("p", i))
		expect.OK(t, errors.Join(d.client.Tracker().Add(p), d.pods.Add(p)))
		d.queue.add(report(p.Name))
	}
}

// onPatch has a function decide about each write on a pod; nil lets it through.
func (d *fixture) onPatch(decide func(pod string) error) {
	d.client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		err := decide(a.(clienttesting.PatchAction).GetName())
		return err != nil, nil, err
	})
}

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

type conditions map[corev1.PodConditionType]corev1.PodCondition

func (d *fixture) conditions(t *testing.T, name string) conditions {
	t.Helper()
	pod := expect.Get(d.client.CoreV1().Pods("ns").Get(t.Context(), name, metav1.GetOptions{}))(t)
	out := conditions{}
	for _, c := range pod.Status.Conditions {
		out[c.Type] = c
	}
	expect.Same(t, "conditions of one type each", len(pod.Status.Conditions), len(out))
	return out
}

func newPod(name string, conditions ...corev1.PodCondition) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{SchedulerName: "yunikorn"}, Status: corev1.PodStatus{Conditions: conditions},
	}
}

func reportOf(name string, why reasons.Reason) output.Report {
	return output.Report{Ref: objects.Ref{UID: types.UID("uid-" + name), Namespace: "ns", Name: name}, Reason: why}
}

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
		expect.Same(t, "patch of", "ns/p status", p.GetNamespace()+"/"+p.GetName()+" "+p.GetSubresource())
		expect.Same(t, "type", types.StrategicMergePatchType, p.GetPatchType())
		const want = `{"metadata":{"uid":"uid-p"},"status":{"conditions":[{"lastTransitionTime":"2000-01-01T00:00:00Z",` +
			`"message":"queue root.a: \"100%s\" used. ` + remedy + `","reason":"OverMax","status":"False","type":"paddock.io/Admitted"}]}}`
		expect.Same(t, "patch", want, string(p.GetPatch()))
		events := []string{`yunikorn: p Warning OverMax Scheduling: queue root.a: "100%s" used. ` + remedy}
		expect.Same(t, "events", events, d.recorder.events)
	})
}

func TestTellKeepsOtherConditions(t *testing.T) {
	long := metav1.NewTime(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC))
	began := metav1.NewTime(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) // of the bubble
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulingGated", LastTransitionTime: long}
	waits := func(reason, message string, since metav1.Time) corev1.PodCondition {
		return corev1.PodCondition{
			Type: Admitted, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: since,
		}
	}
	before := waits("InOrder", "3 pods", long)
	admitted := waits("Admitted", "the pod was let through to be scheduled", began)
	admitted.Status = corev1.ConditionTrue
	gated := []corev1.PodCondition{scheduled}
	for _, c := range []struct {
		name   string
		before []corev1.PodCondition
		why    reasons.Reason
		want   corev1.PodCondition
		events int
	}{
		{"first", gated, overMax("full"), waits("OverMax", "full. "+remedy, began), 1},
		{"another reason, the same status since long", append(gated, before), overMax("full"),
			waits("OverMax", "full. "+remedy, long), 1},
		{"taken back", []corev1.PodCondition{before, scheduled}, letThrough, admitted, 0},
		{
			"much to say", gated, overMax(strings.Repeat("é", 5000)),
			waits("OverMax", strings.Repeat("é", (1024-len(". ..."+remedy))/2)+"... "+remedy, began), 1,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newFixture(t, newPod("p", c.before...))
			expect.OK(t, d.Tell(t.Context(), reportOf("p", c.why)))
			want := conditions{Admitted: c.want, corev1.PodScheduled: scheduled}
			expect.Same(t, c.name+": conditions", want, d.conditions(t, "p"))
			expect.Same(t, c.name+": events", c.events, len(d.recorder.events))
		})
	}
}

func TestTellWritesNoCondition(t *testing.T) {
	warning := reportOf("p", reasons.New(reasons.SoftGangIgnored, "application a: no gang"))
	warning.Warning = true
	entry, _ := reasons.Explain(reasons.SoftGangIgnored)
	for _, c := range []struct {
		name   string
		report output.Report
		events []string
	}{
		{"a warning is no reason to wait, and takes nothing back", warning,
			[]string{"yunikorn: p Warning SoftGangIgnored Scheduling: application a: no gang. " + entry.Remedy}},
		{"the pod was replaced", reportFull("replaced"), nil},
		{"the pod is gone", reportFull("gone"), nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			replaced := newPod("replaced")
			replaced.UID = "another"
			d := newFixture(t, newPod("p"), replaced)
			expect.OK(t, d.Tell(t.Context(), c.report))
			expect.Same(t, c.name+": events", c.events, d.recorder.events)
			expect.Same(t, c.name+": requests", 0, len(d.client.Actions()))
		})
	}
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
			d.onPatch(func(string) error { return c.err })
			err := d.Tell(t.Context(), reportFull("p"))
			told := errors.Is(err, c.err) && strings.Contains(fmt.Sprint(err), "ns/p")
			expect.That(t, told == c.told && (err != nil) == c.told, "%s: %v", c.name, err)
			expect.Same(t, c.name+": events without the condition", []string(nil), d.recorder.events)
		})
	}
}

func TestRunTellsOnlyWhileLeading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, newPod("p"), newPod("q"), newPod("r"))
		d.queue.waiting = []output.Report{reportFull("p"), reportFull("q"), reportFull("r")}
		d.leading.Store(false)
		go d.Run(t.Context())
		pass(10 * time.Second)
		expect.Same(t, "how often a standby takes reports", 0, len(d.queue.limits))
		expect.Same(t, "requests of a standby", 0, len(d.client.Actions()))
		// The lease is lost right after the first write.
		d.onPatch(func(string) error { d.leading.Store(false); return nil })
		d.leading.Store(true)
		pass(10 * time.Second)
		expect.Same(t, "writes, none after the lease was lost", 1, len(d.patches()))
		for range 2 {
			d.leading.Store(true)
			pass(time.Second)
		}
		expect.Same(t, "writes, with what was left, once it leads again", 3, len(d.patches()))
		expect.Same(t, "events", 3, len(d.recorder.events))
	})
}

func TestRunWritesNoFasterThanPermitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.many(t, 200, reportFull)
		go d.Run(t.Context())
		last := 0
		for second := range 9 {
			pass(time.Second)
			n := len(d.patches())
			expect.That(t, n <= 50+20*(second+1) && n >= min(last+15, 200),
				"after %d s: %d writes, %d a second before", second+1, n, last)
			last = n
		}
		expect.Same(t, "writes in the end", 200, last)
		for _, l := range d.queue.limits {
			expect.Same(t, "reports that are taken at once", batch, l)
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
		d.onPatch(func(string) error {
			if out.Load() {
				return apierrors.NewInternalError(errors.New("webhook"))
			}
			return nil
		})
		go d.Run(t.Context())
		pass(time.Minute)
		out.Store(false)
		pass(time.Second)
		d.queue.add(beyond("late"))
		pass(time.Second)
		expect.Same(t, "conditions, that about demand", 1, len(d.conditions(t, "late")))
		pass(time.Minute)
		expect.Same(t, "events, one of each pod that failed during the outage", 300, len(d.recorder.events))
	})
}

// TestRunGoesOnWithOtherPods: in a namespace the status of more pods than a batch has cannot be written.
// That delays no report of another namespace, and a later report of a pod replaces the one that failed.
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
		d.onPatch(func(pod string) error {
			if strings.HasPrefix(pod, "bad") && !repaired.Load() {
				return apierrors.NewInternalError(errors.New("webhook"))
			}
			return nil
		})
		go d.Run(t.Context())
		pass(10 * time.Second)
		add("good", "full")
		add("bad0", "new")
		pass(2 * time.Second)
		expect.Same(t, "the reason of another pod", "OverMax", d.conditions(t, "good")[Admitted].Reason)
		expect.Same(t, "log lines about one pod", 1, strings.Count(d.log(), `pod="ns/bad1"`))
		repaired.Store(true)
		pass(time.Minute)
		for i := range batch + 10 {
			name, want := fmt.Sprint("bad", i), "old. "+remedy
			if i == 0 {
				want = "new. " + remedy
			}
			expect.Same(t, name, want, d.conditions(t, name)[Admitted].Message)
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
			d.queue.waiting = []output.Report{reportFull("p"), reportFull("q")}
			calls := 0
			d.onPatch(func(pod string) error {
				if calls++; pod == "p" {
					return final
				}
				return nil
			})
			go d.Run(t.Context())
			pass(2 * time.Second)
			expect.Same(t, fmt.Sprintf("writes, after %v", final), 2, calls)
			expect.Same(t, "the reason of the other pod", "OverMax", d.conditions(t, "q")[Admitted].Reason)
			expect.Same(t, "events", 1, len(d.recorder.events))
			expect.That(t, strings.Contains(d.log(), `pod="ns/p"`), "log: %s", d.log())
		})
	}
}
