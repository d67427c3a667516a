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

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// recorder is a store that records its calls, one line each: foreign pods, whether nodes
// are schedulable, PriorityClasses and budgets.
type recorder struct {
	*store.Store
	pods  sync.Map // by UID, the last version of each pod that is not deleted
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
	expect.That(t, len(r.lines) == 0, "told without need: %q", r.lines)
}

func (r *recorder) Upsert(pod objects.Pod, now time.Time) {
	if pod.Foreign {
		r.say("foreign %s on %q deleting=%v", pod.UID, pod.Node, pod.Deleting)
	}
	r.pods.Store(pod.UID, pod)
	r.Store.Upsert(pod, now)
}

func (r *recorder) Delete(uid types.UID, now time.Time) {
	if strings.HasPrefix(string(uid), "f") {
		r.say("gone %s", uid)
	}
	r.pods.Delete(uid)
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
		translated := Translate(pod, RequestOptions{})
		if translated.Foreign = want; want {
			translated.Scheduler = name
		}
		expect.Same(t, "a pod of profile "+name, translated, o.Translate(pod))
	}
}

func TestWatchTellsOfForeignPodsWithANode(t *testing.T) {
	s := started(t, plugintest.Foreign(managed("a", "f1", "n1")), plugintest.Foreign(managed("b", "f2", "")))
	s.store.heard(t, `foreign f1 on "n1" deleting=false`)

	ctx, pods := t.Context(), s.client.CoreV1().Pods("ns")
	relabelled := plugintest.Foreign(managed("b", "f2", ""))
	relabelled.Labels = map[string]string{"x": "y"}
	send(t, pods.Update, relabelled)
	send(t, pods.Update, plugintest.Foreign(managed("b", "f2", "n2")))
	s.store.heard(t, `foreign f2 on "n2" deleting=false`)

	leaving := plugintest.Foreign(managed("a", "f1", "n1"))
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	send(t, pods.Update, leaving)
	s.store.heard(t, `foreign f1 on "n1" deleting=true`)
	expect.OK(t, pods.Delete(ctx, "a", metav1.DeleteOptions{}))
	s.store.heard(t, "gone f1")

	send(t, pods.Create, plugintest.Foreign(managed("c", "f3", "")))
	expect.OK(t, pods.Delete(ctx, "c", metav1.DeleteOptions{}))        // it never had a node
	send(t, pods.Update, plugintest.Foreign(managed("b", "f4", "n2"))) // the delete in between was missed
	s.store.heard(t, "gone f2", `foreign f4 on "n2" deleting=false`)
	s.store.silent(t)
}

func TestWatchTellsWhichNodesAreSchedulable(t *testing.T) {
	cordoned := func(name string, is bool) *corev1.Node {
		n := node(name, "cpu=1")
		n.Spec.Unschedulable = is
		return n
	}
	s := started(t, cordoned("n1", false), cordoned("n2", true))
	s.store.heardOf(t, "node n1 schedulable=true", "node n2 schedulable=false")
	ctx, nodes := t.Context(), s.client.CoreV1().Nodes()
	send(t, nodes.Update, cordoned("n1", true))
	s.store.heard(t, "node n1 schedulable=false")
	heartbeat := cordoned("n1", true)
	heartbeat.Labels = map[string]string{"x": "y"}
	send(t, nodes.Update, heartbeat)
	send(t, nodes.Update, cordoned("n1", false))
	s.store.heard(t, "node n1 schedulable=true")
	expect.OK(t, nodes.Delete(ctx, "n1", metav1.DeleteOptions{}))
	send(t, nodes.Create, cordoned("n1", false))
	s.store.heard(t, "node n1 gone", "node n1 schedulable=true")
	replaced := cordoned("n1", false) // its delete was missed
	replaced.UID = "u2"
	send(t, nodes.Update, replaced)
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
	s := started(t, class("plain", ""), class("stay", "false"), class("go", "true"), class("odd", "False"), labelled)
	s.store.heardOf(t, "class plain optOut=false", "class stay optOut=true", "class go optOut=false", "class odd optOut=false", "class labelled optOut=false")
	ctx, classes := t.Context(), s.client.SchedulingV1().PriorityClasses()
	send(t, classes.Update, class("plain", "false"))
	s.store.heard(t, "class plain optOut=true")
	send(t, classes.Update, class("stay", ""))
	s.store.heard(t, "class stay optOut=false")
	expect.OK(t, classes.Delete(ctx, "plain", metav1.DeleteOptions{}))
	s.store.heard(t, "class plain optOut=false")
	s.store.silent(t)
}

// failing makes all lists of a resource fail, until repaired is true.
func failing(client *fake.Clientset, resource string, err error) (repaired *atomic.Bool) {
	repaired = &atomic.Bool{}
	client.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return !repaired.Load(), nil, err
	})
	return repaired
}

// attempts waits until PriorityClasses were asked for n times.
func attempts(t *testing.T, client *fake.Clientset, n int) {
	t.Helper()
	tried := func() bool { return requests(client, "list", "priorityclasses") >= n }
	plugintest.Until(t, "it is tried again", tried)
}

// TestPriorityClassesMayBeForbidden uses upstream's role for schedulers, which does not
// include them. The scheduler starts without them, logs once what is missing, and reads
// them as soon as the role permits it.
func TestPriorityClassesMayBeForbidden(t *testing.T) {
	classes := schedulingv1.Resource("priorityclasses")
	for name, refusal := range map[string]error{
		"forbidden":  apierrors.NewForbidden(classes, "", errors.New("no role")),
		"not served": apierrors.NewNotFound(classes, ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset(class("stay", "false"), managed("p", "u1", "n1"))
			repaired := failing(client, "priorityclasses", refusal)
			s := newFixture(t, client)
			s.run(t)
			s.synced(t)
			attempts(t, client, 2)
			s.store.Start(time.Now())
			s.uses(t, "pods=1 vcore=1000", "0")
			s.store.silent(t)
			for _, want := range []string{"PriorityClasses cannot be read", "priorityclasses of API group scheduling.k8s.io", "manifests/rbac/second-scheduler.yaml"} {
				n := strings.Count(s.log(), want)
				expect.That(t, n == 1, "the log has %q %d times, want once:\n%s", want, n, s.log())
			}

			repaired.Store(true)
			s.store.heard(t, "class stay optOut=true")
		})
	}
}

// TestPriorityClassesAreWaitedFor checks that an API server that cannot answer does not count as a
// refusal. Without the annotations of the classes, protected pods would be preempted.
func TestPriorityClassesAreWaitedFor(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(class("stay", "false"))
	repaired := failing(client, "priorityclasses", errors.New("connection refused"))
	s := newFixture(t, client)
	s.run(t)
	attempts(t, client, 2)
	plugintest.Watched(t, client, "pods", "nodes", "namespaces", "poddisruptionbudgets")
	expect.That(t, !s.watcher.HasSynced(), "synced without the PriorityClasses")
	repaired.Store(true)
	s.synced(t)
	s.store.heard(t, "class stay optOut=true")
	expect.That(t, !strings.Contains(s.log(), "cannot be read"), "told of a missing role:\n%s", s.log())
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
	s := started(t, budget("b1", 1, web()))
	s.store.heard(t, "budget ns/b allows 1, covers web: true")
	ctx, budgets := t.Context(), s.client.PolicyV1().PodDisruptionBudgets("ns")
	send(t, budgets.Update, budget("b1", 0, web()))
	s.store.heard(t, "budget ns/b allows 0, covers web: true")
	send(t, budgets.Update, budget("b1", 0, nil))
	s.store.heard(t, "budget ns/b allows 0, covers web: false")
	send(t, budgets.Update, budget("b2", 2, web())) // the delete in between was missed
	s.store.heard(t, "budget ns/b gone", "budget ns/b allows 2, covers web: true")
	expect.OK(t, budgets.Delete(ctx, "b", metav1.DeleteOptions{}))
	s.store.heard(t, "budget ns/b gone")
	s.store.silent(t)
}

func TestTranslateBudget(t *testing.T) {
	expression := func(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	labels := map[string]map[string]string{
		"none": nil, "web": {"app": "web"}, "db": {"app": "db"}, "old-web": {"app": "web", "old": "yes"},
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
		for _, name := range []string{"none", "web", "db", "old-web"} {
			if b.Matches != nil && b.Matches(labels[name]) {
				covers = append(covers, name)
			}
		}
		expect.Same(t, c.name+": covers", c.covers, strings.Join(covers, " "))
		expect.Same(t, c.name+": the store can see that it covers no pod", c.covers == "", b.Matches == nil)
	}
}

// TestTranslateBudgetStatus checks what is read of the spec and the status apart from the selector.
func TestTranslateBudgetStatus(t *testing.T) {
	for _, c := range []struct {
		policy *policyv1.UnhealthyPodEvictionPolicyType
		want   bool
	}{{nil, false}, {ptr.To(policyv1.IfHealthyBudget), false}, {ptr.To(policyv1.AlwaysAllow), true}} {
		b := budget("u", 1, nil)
		b.Spec.UnhealthyPodEvictionPolicy = c.policy
		b.Status.ObservedGeneration, b.Status.CurrentHealthy, b.Status.DesiredHealthy = 6, 3, 2
		want := objects.Budget{
			Namespace: "ns", Name: "b", Generation: 7, Observed: 6,
			Allowed: 1, Healthy: 3, Desired: 2, AlwaysAllow: c.want,
		}
		expect.Same(t, "a budget", want, translateBudget(b))
		b.Status.DisruptedPods = map[string]metav1.Time{"p": metav1.Now()}
		want.DisruptedPods = map[string]bool{"p": true}
		expect.Same(t, "a budget with a disrupted pod", want, translateBudget(b))
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
		got := Translate(&corev1.Pod{Status: c.status}, RequestOptions{}).Health
		expect.That(t, got == c.want, "%+v: got %v, want %v", c.status, got, c.want)
	}
}

func TestUnreadableClaimIsToldOnce(t *testing.T) {
	s, h := unwatched(t)
	held := func(message string) *corev1.Pod {
		return holding(managed("p", "u1", ""), corev1.ConditionTrue, message)
	}
	good, takenBack := someClaim(), holding(managed("p", "u1", ""), corev1.ConditionFalse, "n3")
	h.OnAdd(held(good.Message()), true)
	before := held(good.Message())
	for _, step := range []struct {
		name string
		pod  *corev1.Pod
		told int
	}{
		{"readable", before, 0},
		{"unreadable", held("n1"), 1},
		{"the same", held("n1"), 1},
		{"unreadable in another way", held("n2"), 2},
		{"taken back", takenBack, 2},
		{"true once more", held("n3"), 3},
	} {
		h.OnUpdate(before, step.pod)
		before = step.pod
		expect.Same(t, step.name+": told", step.told, strings.Count(s.log(), "cannot be read"))
	}
	h.OnAdd(managed("q", "u2", ""), false)
	expect.Same(t, "told after another pod", 3, strings.Count(s.log(), "cannot be read"))
	expect.Same(t, "told with the name of the pod", 3, strings.Count(s.log(), `pod="ns/p"`))
}
