package plugintest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// Handle is the handle of one profile, and all that is behind it.
type Handle struct {
	fwk.Handle
	// Client is the API server.
	Client *fake.Clientset

	*shared
}

// shared is common to the profiles of one scheduler.
type shared struct {
	ctx     context.Context
	stop    context.CancelFunc
	factory informers.SharedInformerFactory
	log     ktesting.Buffer

	mu        sync.Mutex
	activated []string
	events    []string
}

// New makes the handle of profile yunikorn of a new scheduler, on an API server
// with the objects. The scheduler ends with the test, or by Stop.
func New(t testing.TB, objects ...runtime.Object) *Handle {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(2)))
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), logger))
	client := fake.NewClientset(objects...)
	h := &Handle{Client: client, shared: &shared{
		ctx: ctx, stop: stop, factory: informers.NewSharedInformerFactory(client, 0),
		log: logger.GetSink().(ktesting.Underlier).GetBuffer(),
	}}
	t.Cleanup(h.Stop)
	return h.profile(t, Profile)
}

// Other makes the handle of another profile of the same scheduler.
func (h *Handle) Other(t testing.TB, name string) *Handle {
	t.Helper()
	return (&Handle{Client: h.Client, shared: h.shared}).profile(t, name)
}

func (h *Handle) profile(t testing.TB, name string) *Handle {
	t.Helper()
	profile := &schedulerconfig.KubeSchedulerProfile{SchedulerName: name}
	h.Handle = expect.Get(frameworkruntime.NewFramework(h.ctx, nil, profile,
		frameworkruntime.WithClientSet(h.Client), frameworkruntime.WithInformerFactory(h.factory),
		frameworkruntime.WithEventRecorder(recorder{h.shared, name}), frameworkruntime.WithPodActivator(activator{h.shared}),
		frameworkruntime.WithPodNominator(noNominations{}),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithSnapshotSharedLister(cache.NewEmptySnapshot())))(t)
	return h
}

// noNominations is a nominator that has no nomination.
type noNominations struct{ fwk.PodNominator }

func (noNominations) NominatedPodsForNode(string) []fwk.PodInfo { return nil }

// Context ends with the scheduler.
func (s *shared) Context() context.Context { return s.ctx }

// Stop ends the scheduler and waits for its informers.
func (s *shared) Stop() {
	s.stop()
	s.factory.Shutdown()
}

// Start runs the informers until they have seen what exists and see changes.
func (h *Handle) Start(t testing.TB) {
	t.Helper()
	h.factory.Start(h.ctx.Done())
	h.factory.WaitForCacheSync(h.ctx.Done())
	Watched(t, h.Client, "pods", "nodes", "namespaces")
}

// Watched waits until changes of the resources are seen: a fake API server keeps none for
// late watchers.
func Watched(t testing.TB, client *fake.Clientset, resources ...string) {
	t.Helper()
	for _, resource := range resources {
		watches := func(a clienttesting.Action) bool { return a.Matches("watch", resource) }
		Until(t, resource+" are watched", func() bool { return slices.ContainsFunc(client.Actions(), watches) })
	}
}

// Create adds pods to the API server.
func (h *Handle) Create(t testing.TB, pods ...*corev1.Pod) {
	t.Helper()
	for _, p := range pods {
		expect.Get(h.Client.CoreV1().Pods(p.Namespace).Create(h.ctx, p, metav1.CreateOptions{}))(t)
	}
}

// Delete takes a pod from the API server.
func (h *Handle) Delete(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	expect.OK(t, h.Client.CoreV1().Pods(pod.Namespace).Delete(h.ctx, pod.Name, metav1.DeleteOptions{}))
}

// activator is the scheduler's queue as far as plugins call it.
type activator struct{ *shared }

// Activate notes the pods.
func (s activator) Activate(_ klog.Logger, pods map[string]*corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, p := range pods {
		s.activated = append(s.activated, fmt.Sprintf("%s %s/%s %s", key, p.Namespace, p.Name, p.UID))
	}
}

// Activated lists what was activated, each as "key namespace/name uid".
func (s *shared) Activated() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.activated)
}

// Events lists what was told, each as "profile: kind type reason action: note".
func (s *shared) Events() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// Log is what was logged so far.
func (s *shared) Log() string { return s.log.String() }

// recorder writes down the events of one profile.
type recorder struct {
	*shared
	profile string
}

// Eventf notes the event.
func (r recorder) Eventf(regarding, _ runtime.Object, kind, reason, action, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := regarding.(metav1.Object)
	about := strings.TrimPrefix(fmt.Sprintf("%T", regarding), "*v1.") + " " + m.GetNamespace() + "/" + m.GetName()
	r.events = append(r.events, fmt.Sprintf("%s: %s %s %s %s: ", r.profile, about, kind, reason, action)+fmt.Sprintf(note, args...))
}

// Until polls until what is said comes about, or fails the test.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	Becomes(t, what, true, done)
}

// Becomes polls until a value is the wanted one, or fails the test.
func Becomes[V any](t testing.TB, what string, want V, get func() V) {
	t.Helper()
	Eventually(t, func() error {
		if diff := cmp.Diff(want, get()); diff != "" {
			return fmt.Errorf("awaited: %s (-want +got)\n%s", what, diff)
		}
		return nil
	})
}

// Eventually polls until the condition gives no error, or fails the test after two minutes.
func Eventually(t testing.TB, condition func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(context.Background(), 2*time.Millisecond, 2*time.Minute, true,
		func(context.Context) (bool, error) {
			last = condition()
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("did not come about: %v", errors.Join(err, last))
	}
}
