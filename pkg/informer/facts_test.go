package informer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// recorder is a store that records its calls, one line each: foreign pods, whether nodes
// are schedulable, PriorityClasses and budgets.
type recorder struct {
	*store.Store
	mu    sync.Mutex
	lines []string
}

func (r *recorder) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// heard takes the next lines once there are as many as wanted.
func (r *recorder) heard(t *testing.T, want ...string) {
	t.Helper()
	expect.Same(t, "heard", want, r.next(t, len(want)))
}

// heardOf is heard for lines in any order.
func (r *recorder) heardOf(t *testing.T, want ...string) {
	t.Helper()
	got := r.next(t, len(want))
	slices.Sort(got)
	slices.Sort(want)
	expect.Same(t, "heard", want, got)
}

func (r *recorder) next(t *testing.T, n int) (lines []string) {
	t.Helper()
	plugintest.Eventually(t, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.lines) < n {
			return fmt.Errorf("told only %q", r.lines)
		}
		lines, r.lines = slices.Clone(r.lines[:n]), slices.Clone(r.lines[n:])
		return nil
	})
	return lines
}

// silent checks that there were no calls other than those taken.
func (r *recorder) silent(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines) > 0 {
		t.Errorf("told without need: %q", r.lines)
	}
}

func (r *recorder) Upsert(pod objects.Pod, now time.Time) {
	if pod.Foreign {
		r.say("foreign %s on %q deleting=%v", pod.UID, pod.Node, pod.Deleting)
	}
	r.Store.Upsert(pod, now)
}

func (r *recorder) Delete(uid types.UID, now time.Time) {
	if strings.HasPrefix(string(uid), "f") {
		r.say("gone %s", uid)
	}
	r.Store.Delete(uid, now)
}

func (r *recorder) SetNodeSchedulable(name string, ok bool, now time.Time) {
	r.say("node %s schedulable=%v", name, ok)
	r.Store.SetNodeSchedulable(name, ok, now)
}

func (r *recorder) DeleteNode(name string, now time.Time) {
	r.say("node %s gone", name)
	r.Store.DeleteNode(name, now)
}

func (r *recorder) SetPriorityClass(name string, optOut bool, now time.Time) {
	r.say("class %s optOut=%v", name, optOut)
	r.Store.SetPriorityClass(name, optOut, now)
}

func (r *recorder) UpsertBudget(b objects.Budget, now time.Time) {
	covers := b.Matches != nil && b.Matches(map[string]string{"app": "web"})
	r.say("budget %s/%s allows %d, covers web: %v", b.Namespace, b.Name, b.Allowed, covers)
	r.Store.UpsertBudget(b, now)
}

func (r *recorder) DeleteBudget(namespace, name string, now time.Time) {
	r.say("budget %s/%s gone", namespace, name)
	r.Store.DeleteBudget(namespace, name, now)
}

func TestForeign(t *testing.T) {
	o := Options{ManagedProfiles: []string{profile, "second"}}
	for name, want := range map[string]bool{profile: false, "second": false, "default-scheduler": true, "": true} {
		pod := podOf("cpu=1")
		pod.Spec.SchedulerName = name
		got := o.Translate(pod)
		expect.Same(t, "profile "+name+": foreign", want, got.Foreign)
		if foreign := map[bool]string{true: name}; got.Scheduler != foreign[want] {
			t.Errorf("profile %q: its scheduler is %q", name, got.Scheduler)
		}
		got.Foreign, got.Scheduler = false, ""
		expect.Same(t, fmt.Sprintf("profile %q: differs in more", name), Translate(pod, RequestOptions{}), got)
	}
}

func TestWatchTellsOfForeignPodsWithANode(t *testing.T) {
	client := fake.NewClientset(plugintest.Foreign(managed("a", "f1", "n1")), plugintest.Foreign(managed("b", "f2", "")))
	s := newFixture(t, client)
	s.start(t)
	s.store.heard(t, `foreign f1 on "n1" deleting=false`)

	ctx, pods := t.Context(), client.CoreV1().Pods("ns")
	update := func(pod *corev1.Pod) {
		t.Helper()
		expect.Get(pods.Update(ctx, pod, metav1.UpdateOptions{}))(t)
	}
	relabelled := plugintest.Foreign(managed("b", "f2", ""))
	relabelled.Labels = map[string]string{"x": "y"}
	update(relabelled)
	update(plugintest.Foreign(managed("b", "f2", "n2")))
	s.store.heard(t, `foreign f2 on "n2" deleting=false`)

	leaving := plugintest.Foreign(managed("a", "f1", "n1"))
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	update(leaving)
	s.store.heard(t, `foreign f1 on "n1" deleting=true`)
	expect.OK(t, pods.Delete(ctx, "a", metav1.DeleteOptions{}))
	s.store.heard(t, "gone f1")

	expect.Get(pods.Create(ctx, plugintest.Foreign(managed("c", "f3", "")), metav1.CreateOptions{}))(t)
	expect.OK(t, pods.Delete(ctx, "c", metav1.DeleteOptions{})) // it never had a node
	update(plugintest.Foreign(managed("b", "f4", "n2")))        // the delete in between was missed
	s.store.heard(t, "gone f2", `foreign f4 on "n2" deleting=false`)
	s.store.silent(t)
}

// TestWatchLosesSightOfAPodThatEnds has an informer like the scheduler's, for which a pod
// that has ended looks deleted.
func TestWatchLosesSightOfAPodThatEnds(t *testing.T) {
	s := newFixture(t, fake.NewClientset())
	s.store.Start(time.Now())
	h := Handler(s.watcher.pod, s.watcher.podGone)
	h.OnAdd(plugintest.Foreign(managed("a", "f1", "n1")), true)
	ended := plugintest.Foreign(managed("a", "f1", "n1"))
	ended.Status.Phase = corev1.PodSucceeded
	h.OnDelete(ended)
	s.store.heard(t, `foreign f1 on "n1" deleting=false`, "gone f1")
	s.store.silent(t)
}

func TestWatchTellsWhichNodesAreSchedulable(t *testing.T) {
	cordoned := func(name string, is bool) *corev1.Node {
		n := node(name, "cpu=1")
		n.Spec.Unschedulable = is
		return n
	}
	client := fake.NewClientset(cordoned("n1", false), cordoned("n2", true))
	s := newFixture(t, client)
	s.start(t)
	s.store.heardOf(t, "node n1 schedulable=true", "node n2 schedulable=false")
	ctx, nodes := t.Context(), client.CoreV1().Nodes()
	update := func(n *corev1.Node) { t.Helper(); expect.Get(nodes.Update(ctx, n, metav1.UpdateOptions{}))(t) }
	update(cordoned("n1", true))
	s.store.heard(t, "node n1 schedulable=false")
	heartbeat := cordoned("n1", true)
	heartbeat.Labels = map[string]string{"x": "y"}
	update(heartbeat)
	update(cordoned("n1", false))
	s.store.heard(t, "node n1 schedulable=true")
	expect.OK(t, nodes.Delete(ctx, "n1", metav1.DeleteOptions{}))
	expect.Get(nodes.Create(ctx, cordoned("n1", false), metav1.CreateOptions{}))(t)
	s.store.heard(t, "node n1 gone", "node n1 schedulable=true")
	replaced := cordoned("n1", false) // its delete was missed
	replaced.UID = "u2"
	update(replaced)
	s.store.heard(t, "node n1 gone", "node n1 schedulable=true")
	s.store.silent(t)
}

func class(name, allow string) *schedulingv1.PriorityClass {
	c := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if allow != "" {
		c.Annotations = map[string]string{"yunikorn.apache.org/allow-preemption": allow}
	}
	return c
}

func TestWatchFollowsPriorityClasses(t *testing.T) {
	labelled := class("labelled", "")
	labelled.Labels = map[string]string{"yunikorn.apache.org/allow-preemption": "false"} // applies to pods only
	client := fake.NewClientset(class("plain", ""), class("stay", "false"), class("go", "true"), class("odd", "False"), labelled)
	s := newFixture(t, client)
	s.start(t)
	s.store.heardOf(t, "class plain optOut=false", "class stay optOut=true", "class go optOut=false", "class odd optOut=false", "class labelled optOut=false")
	ctx, classes := t.Context(), client.SchedulingV1().PriorityClasses()
	expect.Get(classes.Update(ctx, class("plain", "false"), metav1.UpdateOptions{}))(t)
	s.store.heard(t, "class plain optOut=true")
	expect.Get(classes.Update(ctx, class("stay", ""), metav1.UpdateOptions{}))(t)
	s.store.heard(t, "class stay optOut=false")
	expect.OK(t, classes.Delete(ctx, "plain", metav1.DeleteOptions{}))
	s.store.heard(t, "class plain optOut=false")
	s.store.silent(t)
}

// failing makes all requests for PriorityClasses fail with the error stored in it, while
// there is one.
func failing(client *fake.Clientset, err error) *atomic.Pointer[error] {
	var failure atomic.Pointer[error]
	failure.Store(&err)
	client.PrependReactor("list", "priorityclasses", func(clienttesting.Action) (bool, runtime.Object, error) {
		if err := failure.Load(); err != nil {
			return true, nil, *err
		}
		return false, nil, nil
	})
	return &failure
}

// attempts waits until PriorityClasses were asked for n times.
func attempts(t *testing.T, client *fake.Clientset, n int) {
	t.Helper()
	plugintest.Eventually(t, func() error {
		if got := requests(client, "list", "priorityclasses"); got < n {
			return fmt.Errorf("%d attempts", got)
		}
		return nil
	})
}

func synced(s *fixture) func() error {
	return func() error {
		if !s.watcher.HasSynced() {
			return errors.New("not synced")
		}
		return nil
	}
}

// TestPriorityClassesMayBeForbidden uses upstream's role for schedulers, which does not
// include them. The scheduler starts without them, logs once what is missing, and reads
// them as soon as the role permits it.
func TestPriorityClassesMayBeForbidden(t *testing.T) {
	for name, refusal := range map[string]error{
		"forbidden":  apierrors.NewForbidden(schema.GroupResource{Group: "scheduling.k8s.io", Resource: "priorityclasses"}, "", errors.New("no role")),
		"not served": apierrors.NewNotFound(schema.GroupResource{Group: "scheduling.k8s.io", Resource: "priorityclasses"}, ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset(class("stay", "false"), managed("p", "u1", "n1"))
			failure := failing(client, refusal)
			s := newFixture(t, client)
			s.run(t)
			plugintest.Eventually(t, synced(s))
			attempts(t, client, 2)
			s.store.Start(time.Now())
			s.uses(t, "pods=1 vcore=1000", "0")
			s.store.silent(t)
			for _, want := range []string{"PriorityClasses cannot be read", "priorityclasses of API group scheduling.k8s.io", "manifests/rbac/second-scheduler.yaml"} {
				if n := strings.Count(s.log(), want); n != 1 {
					t.Errorf("the log has %q %d times, want once:\n%s", want, n, s.log())
				}
			}

			failure.Store(nil)
			s.store.heard(t, "class stay optOut=true")
		})
	}
}

// TestPriorityClassesAreWaitedFor checks that an API server that cannot answer does not
// count as a refusal. Without the annotations of the classes, protected pods would be
// preempted.
func TestPriorityClassesAreWaitedFor(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(class("stay", "false"))
	failure := failing(client, errors.New("connection refused"))
	s := newFixture(t, client)
	s.run(t)
	attempts(t, client, 2)
	plugintest.Eventually(t, func() error { return watched(client, "pods", "nodes", "namespaces", "poddisruptionbudgets") })
	if s.watcher.HasSynced() {
		t.Error("synced without the PriorityClasses")
	}
	failure.Store(nil)
	plugintest.Eventually(t, synced(s))
	s.store.heard(t, "class stay optOut=true")
	if strings.Contains(s.log(), "cannot be read") {
		t.Errorf("told of a missing role:\n%s", s.log())
	}
}

func budget(uid types.UID, allowed int32, selector *metav1.LabelSelector) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", UID: uid, Generation: 7},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
}

func web() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

func TestWatchFollowsBudgets(t *testing.T) {
	client := fake.NewClientset(budget("b1", 1, web()))
	s := newFixture(t, client)
	s.start(t)
	s.store.heard(t, "budget ns/b allows 1, covers web: true")
	ctx, budgets := t.Context(), client.PolicyV1().PodDisruptionBudgets("ns")
	update := func(b *policyv1.PodDisruptionBudget) {
		t.Helper()
		expect.Get(budgets.Update(ctx, b, metav1.UpdateOptions{}))(t)
	}
	update(budget("b1", 0, web()))
	s.store.heard(t, "budget ns/b allows 0, covers web: true")
	update(budget("b1", 0, nil))
	s.store.heard(t, "budget ns/b allows 0, covers web: false")
	update(budget("b2", 2, web())) // the delete in between was missed
	s.store.heard(t, "budget ns/b gone", "budget ns/b allows 2, covers web: true")
	expect.OK(t, budgets.Delete(ctx, "b", metav1.DeleteOptions{}))
	s.store.heard(t, "budget ns/b gone")
	s.store.silent(t)
}

func TestTranslateBudget(t *testing.T) {
	expression := func(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	for _, c := range []struct {
		name     string
		selector *metav1.LabelSelector
		covers   string // the covered ones of the pods none, web, db, old-web
	}{
		{"a label", web(), "web old-web"},
		{"one of two", expression("app", metav1.LabelSelectorOpIn, "web", "db"), "web db old-web"},
		{"both", &metav1.LabelSelector{MatchLabels: web().MatchLabels, MatchExpressions: expression("old", metav1.LabelSelectorOpDoesNotExist).MatchExpressions}, "web"},
		{"a label that must not be there", expression("old", metav1.LabelSelectorOpDoesNotExist), "none web db"},
		{"nil", nil, ""},
		{"empty", &metav1.LabelSelector{}, ""},
		{"invalid", expression("app", "Like", "web"), ""},
		{"invalid value", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "not a value"}}, ""},
	} {
		b := translateBudget(budget("u", 3, c.selector))
		var covers []string
		for _, pod := range []struct {
			name   string
			labels map[string]string
		}{
			{"none", nil}, {"web", map[string]string{"app": "web"}}, {"db", map[string]string{"app": "db"}},
			{"old-web", map[string]string{"app": "web", "old": "yes"}},
		} {
			if b.Matches != nil && b.Matches(pod.labels) {
				covers = append(covers, pod.name)
			}
		}
		expect.Same(t, c.name+": covers", c.covers, strings.Join(covers, " "))
		if (b.Matches == nil) != (c.covers == "") {
			t.Errorf("%s: the store can see that it covers no pod: %v", c.name, b.Matches == nil)
		}
		if b.Namespace != "ns" || b.Name != "b" || b.Allowed != 3 || b.Generation != 7 || b.DisruptedPods != nil {
			t.Errorf("%s: got %+v", c.name, b)
		}
	}
	disrupted := budget("u", 0, web())
	disrupted.Status.DisruptedPods = map[string]metav1.Time{"p": metav1.Now()}
	expect.Same(t, "disrupted", map[string]bool{"p": true}, translateBudget(disrupted).DisruptedPods)
}

// TestTranslateBudgetStatus checks what is read of the spec and the status apart from the
// selector.
func TestTranslateBudgetStatus(t *testing.T) {
	b := budget("u", 1, web())
	b.Status.ObservedGeneration, b.Status.CurrentHealthy, b.Status.DesiredHealthy = 6, 3, 2
	for _, c := range []struct {
		policy *policyv1.UnhealthyPodEvictionPolicyType
		want   bool
	}{{nil, false}, {ptr.To(policyv1.IfHealthyBudget), false}, {ptr.To(policyv1.AlwaysAllow), true}} {
		b.Spec.UnhealthyPodEvictionPolicy = c.policy
		if got := translateBudget(b); got.AlwaysAllow != c.want || got.Observed != 6 || got.Allowed != 1 || got.Healthy != 3 || got.Desired != 2 {
			t.Errorf("policy %v: got %+v", c.policy, got)
		}
	}
}

func TestTranslateHealth(t *testing.T) {
	ready := func(status corev1.ConditionStatus) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: status}}
	}
	for _, c := range []struct {
		status corev1.PodStatus
		want   objects.Health
	}{
		{corev1.PodStatus{}, objects.NotStarted},
		{corev1.PodStatus{Phase: corev1.PodPending, Conditions: ready(corev1.ConditionFalse)}, objects.NotStarted},
		{corev1.PodStatus{Phase: corev1.PodRunning}, objects.Unready},
		{corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready(corev1.ConditionFalse)}, objects.Unready},
		{corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready(corev1.ConditionUnknown)}, objects.Unready},
		{corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready(corev1.ConditionTrue)}, objects.Ready},
	} {
		if got := Translate(&corev1.Pod{Status: c.status}, RequestOptions{}).Health; got != c.want {
			t.Errorf("%+v: got %v, want %v", c.status, got, c.want)
		}
	}
}

func TestUnreadableClaimIsToldOnce(t *testing.T) {
	s := newFixture(t, fake.NewClientset())
	s.store.Start(time.Now())
	told := func(want int, when string) {
		t.Helper()
		if n := strings.Count(s.log(), "cannot be read"); n != want {
			t.Errorf("%s: told %d times, want %d:\n%s", when, n, want, s.log())
		}
	}
	held := func(message string) *corev1.Pod {
		return holding(managed("p", "u1", ""), corev1.ConditionTrue, message)
	}
	good := someClaim()
	h := Handler(s.watcher.pod, s.watcher.podGone)
	h.OnAdd(held(good.Message()), true)
	told(0, "readable")
	h.OnUpdate(held(good.Message()), held("n1"))
	told(1, "unreadable")
	if !strings.Contains(s.log(), `pod="ns/p"`) {
		t.Errorf("the log does not name the pod:\n%s", s.log())
	}
	h.OnUpdate(held("n1"), held("n1"))
	told(1, "the same")
	h.OnUpdate(held("n1"), held("n2"))
	told(2, "unreadable in another way")
	h.OnUpdate(held("n2"), holding(managed("p", "u1", ""), corev1.ConditionFalse, "n3"))
	told(2, "taken back")
	h.OnUpdate(holding(managed("p", "u1", ""), corev1.ConditionFalse, "n3"), held("n3"))
	told(3, "true once more")
	h.OnAdd(managed("q", "u2", ""), false)
	told(3, "another pod")
}
