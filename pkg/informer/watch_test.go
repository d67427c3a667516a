package informer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"

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

func newFixture(t *testing.T, client *fake.Clientset) *fixture {
	t.Helper()
	s := &fixture{client: client, factory: informers.NewSharedInformerFactory(client, 0)}
	s.store = &recorder{Store: store.New(config.Default(), store.Options{})}
	logger, log := logged(t)
	s.log = log
	var err error
	s.watcher, err = Watch(s.store, s.factory, Options{
		ManagedProfiles: []string{profile}, Clock: clocktesting.NewFakePassiveClock(time.Now()), Logger: logger,
		Namespace: func(ns *corev1.Namespace, wrong []error) { s.wrong.Store(ns.Name, fmt.Sprint(wrong)) },
		Client:    client,
	})
	expect.OK(t, err)
	return s
}

// run runs the informers until the test ends.
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
	plugintest.Eventually(t, func() error {
		if !s.watcher.HasSynced() {
			return errors.New("not synced")
		}
		return watched(s.client, "pods", "nodes", "namespaces", "poddisruptionbudgets", "priorityclasses", "daemonsets")
	})
	s.store.Start(time.Now())
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

// watched reports whether all of the resources are being watched.
func watched(client *fake.Clientset, names ...string) error {
	for _, name := range names {
		if requests(client, "watch", name) == 0 {
			return fmt.Errorf("%s are not watched yet", name)
		}
	}
	return nil
}

// uses polls until root has the allocated and pending resources.
func (s *fixture) uses(t *testing.T, allocated, pending string) {
	t.Helper()
	plugintest.Eventually(t, func() error {
		root := s.store.Snapshot().Root()
		if got := root.Allocated.String() + " / " + root.Pending.String(); got != allocated+" / "+pending {
			return fmt.Errorf("allocated / pending: %s, want %s / %s", got, allocated, pending)
		}
		return s.store.Check()
	})
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
	if s.watcher.HasSynced() {
		t.Fatal("synced before the informers run")
	}
	s.start(t)
	s.uses(t, "pods=1 vcore=1000", "0")

	ctx, pods := t.Context(), client.CoreV1().Pods("ns")
	expect.Get(pods.Create(ctx, managed("waiting", "u3", ""), metav1.CreateOptions{}))(t)
	s.uses(t, "pods=1 vcore=1000", "pods=1 vcore=1000")

	expect.Get(pods.Update(ctx, managed("waiting", "u3", "n1"), metav1.UpdateOptions{}))(t)
	s.uses(t, "pods=2 vcore=2000", "0")

	resized := managed("waiting", "u3", "n1")
	resized.Spec.Containers[0].Resources.Requests = list("cpu=3")
	expect.Get(pods.Update(ctx, resized, metav1.UpdateOptions{}))(t)
	s.uses(t, "pods=2 vcore=4000", "0")

	done := managed("running", "u1", "n1")
	done.Status.Phase = corev1.PodSucceeded
	expect.Get(pods.UpdateStatus(ctx, done, metav1.UpdateOptions{}))(t)
	s.uses(t, "pods=1 vcore=3000", "0")

	expect.OK(t, pods.Delete(ctx, "waiting", metav1.DeleteOptions{}))
	s.uses(t, "0", "0")
}

// TestWatchSeesAReplacedPod deletes a pod and creates another one of its name while the
// watch is interrupted. The informer then reports an update from one to the other.
func TestWatchSeesAReplacedPod(t *testing.T) {
	client := fake.NewClientset(managed("p", "u1", "n1"))
	events := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 1})
	client.PrependWatchReactor("pods", clienttesting.DefaultWatchReactor(events, nil))
	s := newFixture(t, client)
	s.start(t)
	s.uses(t, "pods=1 vcore=1000", "0")

	events.Modify(managed("p", "u2", ""))
	s.uses(t, "0", "pods=1 vcore=1000")
	expect.OK(t, s.store.CompareWith([]objects.Pod{Translate(managed("p", "u2", ""), RequestOptions{})}))

	events.Delete(managed("p", "u2", ""))
	s.uses(t, "0", "0")
}

func TestHandlerTakesWhatInformersDeliver(t *testing.T) {
	s := newFixture(t, fake.NewClientset())
	s.store.Start(time.Now())
	h := s.watcher.podHandler()

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

// TestLostPod: a pod that ended unseen, or was replaced unseen by another of its name, and was last
// seen without a node, may have had one. A pod is not lost if it was reported with a node, or if the
// watch reported its end.
func TestLostPod(t *testing.T) {
	s := newFixture(t, fake.NewClientset())
	s.store.Start(time.Now())
	h := s.watcher.podHandler()
	for _, uid := range []types.UID{"u1", "u2", "u3", "u4"} {
		h.OnAdd(managed(string(uid), uid, ""), false)
		s.store.Assume(uid, "n1", store.NoSnapshot, time.Now())
	}
	s.uses(t, "pods=4 vcore=4000", "0")
	unknown := func(p *corev1.Pod) any { return cache.DeletedFinalStateUnknown{Key: "ns/" + p.Name, Obj: p} }
	foreign := managed("f1", "f1", "")
	foreign.Spec.SchedulerName = "another"
	h.OnDelete(managed("u1", "u1", ""))
	h.OnDelete(unknown(managed("u2", "u2", "n1")))
	h.OnDelete(unknown(managed("u3", "u3", "")))
	h.OnDelete(unknown(foreign))
	h.OnUpdate(managed("u4", "u4", ""), managed("u4", "u5", ""))
	s.uses(t, "0", "pods=1 vcore=1000")
	var got []string
	for _, lost := range s.store.FreedPods(time.Now()) {
		got = append(got, string(lost.UID)+"@"+lost.Node)
	}
	expect.Same(t, "lost", []string{"u3@n1", "f1@", "u4@n1"}, got)
}

// TestLeftNomination: a pod of another scheduler that was nominated to one node and is bound
// to another one frees room on the first.
func TestLeftNomination(t *testing.T) {
	s := newFixture(t, fake.NewClientset())
	s.store.Start(time.Now())
	h := s.watcher.podHandler()
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
	var got []string
	for _, freed := range s.store.FreedPods(time.Now()) {
		got = append(got, fmt.Sprintf("%s@%s %t", freed.UID, freed.Node, freed.Nominated))
	}
	expect.Same(t, "left their nomination", []string{"elsewhere@n1 true", "before@ false"}, got)
}

func TestWatchFollowsNodes(t *testing.T) {
	client := fake.NewClientset(node("n1", "cpu=4 pods=10"))
	s := newFixture(t, client)
	s.start(t)
	capacity := func(want string) {
		t.Helper()
		plugintest.Eventually(t, func() error {
			if got := s.store.Snapshot().Capacity().String(); got != want {
				return fmt.Errorf("capacity %s, want %s", got, want)
			}
			return nil
		})
	}
	capacity("pods=10 vcore=4000")
	ctx, nodes := t.Context(), client.CoreV1().Nodes()
	expect.Get(nodes.Create(ctx, node("n2", "cpu=1 pods=10"), metav1.CreateOptions{}))(t)
	capacity("pods=20 vcore=5000")
	expect.Get(nodes.UpdateStatus(ctx, node("n2", "cpu=2 pods=10"), metav1.UpdateOptions{}))(t)
	capacity("pods=20 vcore=6000")
	expect.OK(t, nodes.Delete(ctx, "n1", metav1.DeleteOptions{}))
	capacity("pods=10 vcore=2000")
}

func TestWatchFollowsNamespaces(t *testing.T) {
	namespace := func(quota string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Annotations: map[string]string{
			"yunikorn.apache.org/namespace.quota": quota}}}
	}
	client := fake.NewClientset(namespace(`{"cpu":"2"}`), managed("p", "u1", "n1"))
	s := newFixture(t, client)
	s.start(t)
	limit := func(want resources.Limit) {
		t.Helper()
		plugintest.Eventually(t, func() error {
			q, ok := s.store.Snapshot().Find("root.ns")
			if !ok || !q.Max.Equal(want) {
				return fmt.Errorf("queue exists: %v, want max %v", ok, want)
			}
			return nil
		})
	}
	limit(resources.LimitFrom(map[string]resources.Amount{"vcore": 2000}))
	wrong := func(want string) {
		t.Helper()
		plugintest.Eventually(t, func() error {
			if got, _ := s.wrong.Load("ns"); !strings.Contains(fmt.Sprint(got), want) {
				return fmt.Errorf("wrong with the namespace: %v, want %s", got, want)
			}
			return nil
		})
	}
	wrong("[]")

	ctx, namespaces := t.Context(), client.CoreV1().Namespaces()
	expect.Get(namespaces.Update(ctx, namespace("much"), metav1.UpdateOptions{}))(t)
	limit(resources.Limit{})
	wrong("namespace.quota is ignored: value \"much\"")
	relabelled := namespace("much")
	relabelled.Labels = map[string]string{"team": "a"}
	expect.Get(namespaces.Update(ctx, relabelled, metav1.UpdateOptions{}))(t)
	expect.Get(namespaces.Update(ctx, namespace(`{"cpu":"3"}`), metav1.UpdateOptions{}))(t)
	limit(resources.LimitFrom(map[string]resources.Amount{"vcore": 3000}))
	if n := strings.Count(s.log(), "namespace.quota is ignored"); n != 1 {
		t.Errorf("the unreadable annotation was told of %d times, want once:\n%s", n, s.log())
	}

	wrong("[]")

	s.wrong.Delete("ns")
	expect.OK(t, namespaces.Delete(ctx, "ns", metav1.DeleteOptions{}))
	wrong("[]") // says that the namespace is gone
	expect.Get(namespaces.Create(ctx, namespace(`{"cpu":"5"}`), metav1.CreateOptions{}))(t)
	limit(resources.LimitFrom(map[string]resources.Amount{"vcore": 5000}))
}
