package informer

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

const profile = "yunikorn"

// logged returns a logger and what it wrote.
func logged(t *testing.T) (klog.Logger, func() string) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	buffer := logger.GetSink().(ktesting.Underlier).GetBuffer()
	return logger, buffer.String
}

// fixture is a started store, fed by informers on a fake API server.
type fixture struct {
	client  *fake.Clientset
	store   *recorder
	watcher *Watcher
	factory informers.SharedInformerFactory
	log     func() string
	wrong   sync.Map // name of a namespace -> what is wrong with it, as text
}

func newFixture(t *testing.T, client *fake.Clientset, change ...func(*Options)) *fixture {
	t.Helper()
	s := &fixture{client: client, factory: informers.NewSharedInformerFactory(client, 0)}
	s.store = &recorder{Store: store.New(config.Default(), store.Options{})}
	logger, log := logged(t)
	s.log = log
	o := Options{
		ManagedProfiles: []string{profile}, Clock: clocktesting.NewFakePassiveClock(time.Now()), Logger: logger,
		Namespace: func(ns *corev1.Namespace, wrong []error) { s.wrong.Store(ns.Name, fmt.Sprint(wrong)) },
		Client:    client,
	}
	for _, c := range change {
		c(&o)
	}
	s.watcher = expect.Get(Watch(s.store, s.factory, o))(t)
	return s
}

// started is a fixture with informers that receive changes of the objects.
func started(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	s := newFixture(t, fake.NewClientset(objects...))
	s.start(t)
	return s
}

// unwatched is a fixture with informers that do not run, and its handler of pods.
func unwatched(t *testing.T) (*fixture, cache.ResourceEventHandler) {
	t.Helper()
	s := newFixture(t, fake.NewClientset())
	s.store.Start(time.Now())
	return s, s.watcher.podHandler()
}

// run runs the informers until the test ends, and does not wait for them.
func (s *fixture) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.watcher.Run(ctx) }()
	t.Cleanup(func() { cancel(); s.factory.Shutdown(); <-done })
	s.factory.Start(ctx.Done())
}

// start runs the informers and waits until they receive changes.
func (s *fixture) start(t *testing.T) {
	t.Helper()
	s.run(t)
	s.synced(t)
	plugintest.Watched(t, s.client, "pods", "nodes", "namespaces", "poddisruptionbudgets")
	plugintest.Watched(t, s.client, "priorityclasses", "daemonsets")
	s.store.Start(time.Now())
}

// synced waits until all that existed has reached the store.
func (s *fixture) synced(t *testing.T) {
	t.Helper()
	plugintest.Until(t, "synced", s.watcher.HasSynced)
}

// requests returns the number of requests of a kind for a resource.
func requests(client *fake.Clientset, verb, resource string) (n int) {
	for _, a := range client.Actions() {
		if a.Matches(verb, resource) {
			n++
		}
	}
	return n
}

// uses polls until root has the allocated and pending resources.
func (s *fixture) uses(t *testing.T, allocated, pending string) {
	t.Helper()
	plugintest.Becomes(t, "allocated and pending", [2]string{allocated, pending}, func() [2]string {
		root := s.store.Snapshot().Root()
		return [2]string{root.Allocated.String(), root.Pending.String()}
	})
	expect.OK(t, s.store.Check())
}

// send sends an object to the API server, by the Create or Update of a client.
func send[T, O any](t *testing.T, by func(context.Context, T, O) (T, error), object T) {
	t.Helper()
	var options O
	expect.Get(by(t.Context(), object, options))(t)
}

func managed(name string, uid types.UID, node string) *corev1.Pod {
	pod := podOf("cpu=1")
	pod.Namespace, pod.Name, pod.UID = "ns", name, uid
	pod.Spec.SchedulerName, pod.Spec.NodeName = profile, node
	return pod
}

func node(name, allocatable string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: list(allocatable)}}
}

func TestWatchFollowsPods(t *testing.T) {
	client := fake.NewClientset(managed("running", "u1", "n1"), plugintest.Foreign(managed("other", "u2", "n1")))
	s := newFixture(t, client)
	expect.That(t, !s.watcher.HasSynced(), "synced before the informers run")
	s.start(t)
	s.uses(t, "pods=1 vcore=1000", "0")

	ctx, pods := t.Context(), client.CoreV1().Pods("ns")
	send(t, pods.Create, managed("waiting", "u3", ""))
	s.uses(t, "pods=1 vcore=1000", "pods=1 vcore=1000")

	send(t, pods.Update, managed("waiting", "u3", "n1"))
	s.uses(t, "pods=2 vcore=2000", "0")

	resized := managed("waiting", "u3", "n1")
	resized.Spec.Containers[0].Resources.Requests = list("cpu=3")
	send(t, pods.Update, resized)
	s.uses(t, "pods=2 vcore=4000", "0")

	done := managed("running", "u1", "n1")
	done.Status.Phase = corev1.PodSucceeded
	send(t, pods.UpdateStatus, done)
	s.uses(t, "pods=1 vcore=3000", "0")

	expect.OK(t, pods.Delete(ctx, "waiting", metav1.DeleteOptions{}))
	s.uses(t, "0", "0")
}

func TestHandlerTakesWhatInformersDeliver(t *testing.T) {
	s, h := unwatched(t)

	h.OnAdd(managed("p", "u1", "n1"), true)
	s.uses(t, "pods=1 vcore=1000", "0")
	h.OnAdd(managed("p", "u1", "n1"), false) // a repeated event
	s.uses(t, "pods=1 vcore=1000", "0")
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/p", Obj: managed("p", "u1", "n1")})
	s.uses(t, "0", "0")
	h.OnDelete(managed("p", "u1", "n1"))
	s.uses(t, "0", "0")

	for _, odd := range []any{nil, "text", node("n", ""), cache.DeletedFinalStateUnknown{Key: "ns/p"}} {
		h.OnAdd(odd, false)
		h.OnUpdate(odd, odd)
		h.OnDelete(odd)
	}
	s.uses(t, "0", "0")

	// Without an old object, the new one still counts.
	h.OnUpdate(nil, managed("q", "u3", "n1"))
	s.uses(t, "pods=1 vcore=1000", "0")
}

// freed lists the pods that gave room back without an event: "uid@node nominated".
func (s *fixture) freed() (out []string) {
	for _, p := range s.store.FreedPods(time.Now()) {
		out = append(out, fmt.Sprintf("%s@%s %t", p.UID, p.Node, p.Nominated))
	}
	return out
}

// TestLostPod: a pod that ended unseen, or was replaced unseen by another of its name, and was last
// seen without a node, may have had one. A pod is not lost if it was reported with a node, or if the
// watch reported its end.
func TestLostPod(t *testing.T) {
	s, h := unwatched(t)
	for _, uid := range []types.UID{"u1", "u2", "u3", "u4"} {
		h.OnAdd(managed(string(uid), uid, ""), false)
		s.store.Assume(uid, "n1", store.NoSnapshot, time.Now())
	}
	s.uses(t, "pods=4 vcore=4000", "0")
	unknown := func(p *corev1.Pod) any { return cache.DeletedFinalStateUnknown{Key: "ns/" + p.Name, Obj: p} }
	h.OnDelete(managed("u1", "u1", ""))
	h.OnDelete(unknown(managed("u2", "u2", "n1")))
	h.OnDelete(unknown(managed("u3", "u3", "")))
	h.OnDelete(unknown(plugintest.Foreign(managed("f1", "f1", ""))))
	h.OnUpdate(managed("u4", "u4", ""), managed("u4", "u5", ""))
	s.uses(t, "0", "pods=1 vcore=1000")
	expect.Same(t, "lost", []string{"u3@n1 false", "f1@ false", "u4@n1 false"}, s.freed())
}

// TestLeftNomination: a pod of another scheduler that was nominated to one node and is bound
// to another one frees room on the first.
func TestLeftNomination(t *testing.T) {
	s, h := unwatched(t)
	bind := func(uid types.UID, nominated, node string) {
		before := plugintest.Foreign(managed(string(uid), uid, ""))
		before.Status.NominatedNodeName = nominated
		after := before.DeepCopy()
		after.Spec.NodeName = node
		h.OnAdd(before, false)
		h.OnUpdate(before, after)
		h.OnUpdate(after, after)
	}
	bind("elsewhere", "n1", "n2")
	bind("there", "n1", "n1")
	bind("plain", "", "n1")
	before := plugintest.Foreign(managed("replaced", "before", ""))
	before.Status.NominatedNodeName = "n1"
	h.OnUpdate(before, plugintest.Foreign(managed("replaced", "after", "n2")))
	expect.Same(t, "left their nomination", []string{"elsewhere@n1 true", "before@ false"}, s.freed())
}

func TestWatchFollowsNodes(t *testing.T) {
	s := started(t, node("n1", "cpu=4 pods=10"))
	capacity := func(want string) {
		t.Helper()
		offered := func() string { return s.store.Snapshot().Capacity().String() }
		plugintest.Becomes(t, "capacity", want, offered)
	}
	capacity("pods=10 vcore=4000")
	ctx, nodes := t.Context(), s.client.CoreV1().Nodes()
	send(t, nodes.Create, node("n2", "cpu=1 pods=10"))
	capacity("pods=20 vcore=5000")
	send(t, nodes.UpdateStatus, node("n2", "cpu=2 pods=10"))
	capacity("pods=20 vcore=6000")
	expect.OK(t, nodes.Delete(ctx, "n1", metav1.DeleteOptions{}))
	capacity("pods=10 vcore=2000")
}

func TestWatchFollowsNamespaces(t *testing.T) {
	namespace := func(quota string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Annotations: map[string]string{
			"yunikorn.apache.org/namespace.quota": quota}}}
	}
	s := started(t, namespace(`{"cpu":"2"}`), managed("p", "u1", "n1"))
	limit := func(want resources.Limit) {
		t.Helper()
		plugintest.Until(t, fmt.Sprint("the queue has max ", want), func() bool {
			q, ok := s.store.Snapshot().Find("root.ns")
			return ok && q.Max.Equal(want)
		})
	}
	limit(resources.LimitFrom(map[string]resources.Amount{"vcore": 2000}))
	wrong := func(want string) {
		t.Helper()
		plugintest.Until(t, "wrong with the namespace is "+want, func() bool {
			got, _ := s.wrong.Load("ns")
			return strings.Contains(fmt.Sprint(got), want)
		})
	}
	wrong("[]")

	ctx, namespaces := t.Context(), s.client.CoreV1().Namespaces()
	send(t, namespaces.Update, namespace("much"))
	limit(resources.Limit{})
	wrong("namespace.quota is ignored: value \"much\"")
	relabelled := namespace("much")
	relabelled.Labels = map[string]string{"team": "a"}
	send(t, namespaces.Update, relabelled)
	send(t, namespaces.Update, namespace(`{"cpu":"3"}`))
	limit(resources.LimitFrom(map[string]resources.Amount{"vcore": 3000}))
	n := strings.Count(s.log(), "namespace.quota is ignored")
	expect.That(t, n == 1, "the unreadable annotation was told of %d times, want once:\n%s", n, s.log())

	wrong("[]")

	s.wrong.Delete("ns")
	expect.OK(t, namespaces.Delete(ctx, "ns", metav1.DeleteOptions{}))
	wrong("[]") // says that the namespace is gone
	send(t, namespaces.Create, namespace(`{"cpu":"5"}`))
	limit(resources.LimitFrom(map[string]resources.Amount{"vcore": 5000}))
}
