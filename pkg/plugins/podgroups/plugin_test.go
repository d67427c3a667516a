package podgroups

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	"sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned/fake"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
)

// miscounting is upstream's plugin, which does not count pods that other processes bound.
type miscounting struct {
	upstream
	says *fwk.Status
}

const theirTimeout, ourTimeout = 7 * time.Second, time.Minute

func (m miscounting) Permit(context.Context, fwk.CycleState, *corev1.Pod, string) (*fwk.Status, time.Duration) {
	return m.says, theirTimeout
}

func (m miscounting) PostFilter(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	return nil, fwk.NewStatus(fwk.Unschedulable, "the PodGroup gets rejected")
}

// atPermit is a handle with pods that wait.
type atPermit struct {
	*plugintest.Handle
	pods   []*atWait
	theirs fwk.Handle // what upstream's plugin has in its place
}

func (h *atPermit) IterateOverWaitingPods(do func(fwk.WaitingPod)) {
	for _, p := range h.pods {
		do(p)
	}
}

// atWait is a pod that waits.
type atWait struct {
	fwk.WaitingPod
	pod *corev1.Pod
	let []string // by which plugins it was let go
	// why are the reasons for which its place was taken back.
	why []string
}

func (w *atWait) GetPod() *corev1.Pod  { return w.pod }
func (w *atWait) Reject(_, why string) { w.why = append(w.why, why) }
func (w *atWait) Allow(plugin string)  { w.let = append(w.let, plugin) }

func member(name, group string) *corev1.Pod {
	pod := plugintest.Pod(name, 100)
	if group != "" {
		pod.Labels[objects.PodGroupLabel] = group
	}
	return pod
}

// fixture is a plugin beside a store that knows PodGroup g, which starts with 3 pods, how
// many of them run, and another pod.
func fixture(t *testing.T, says *fwk.Status, running int, pod *corev1.Pod) (*Plugin, *atPermit) {
	t.Helper()
	featurestesting.SetFeatureDuringTest(t, features.WatchListClient, false) // the fake does not end a list that is watched
	h := &atPermit{Handle: plugintest.New(t, plugintest.Queues(plugintest.Document("{vcore: 10}")))}
	expect.Get(queuesort.New(h.Context(), plugintest.Args(), h.Handle))(t)
	pl := expect.Get(wrap(h.Context(), func(theirs fwk.Handle) (fwk.Plugin, error) {
		h.theirs = theirs
		return miscounting{says: says}, nil
	}, fake.NewSimpleClientset(podGroup("g", 3)), h))(t)
	h.Start(t)
	pods := []*corev1.Pod{pod}
	for i := range 3 {
		pods = append(pods, plugintest.On(member(fmt.Sprint("runs-", i), "g"), "node"))
	}
	h.Create(t, pods...)
	s := app.For(h.Context(), h).Store()
	for _, p := range pods {
		plugintest.Until(t, "the store knows pod "+p.Name, func() bool {
			_, known := s.Explanation(p.UID, time.Now())
			return known
		})
	}
	plugintest.Until(t, "it knows the PodGroup", func() bool { return s.Gathered(pods[1].UID) })
	for _, p := range pods[1+running:] {
		h.Delete(t, p)
	}
	plugintest.Until(t, "it knows which run", func() bool { return s.Gathered(pods[1].UID) == (running == 3) })
	return pl, h
}

// TestPermit: a pod that upstream would let wait although enough have a place goes on,
// and those that wait already go with it.
func TestPermit(t *testing.T) {
	for _, test := range []struct {
		name    string
		running int
		says    *fwk.Status
		group   string
		want    fwk.Code
		let     int
	}{
		{"enough run", 3, fwk.NewStatus(fwk.Wait), "g", fwk.Success, 1},
		{"one is missing", 2, fwk.NewStatus(fwk.Wait), "g", fwk.Wait, 0},
		{"upstream lets it go, with one missing", 2, nil, "g", fwk.Wait, 0},
		{"upstream lets it go, and enough run", 3, nil, "g", fwk.Success, 0},
		{"upstream refuses it", 3, fwk.NewStatus(fwk.Unschedulable), "g", fwk.Unschedulable, 0},
		{"another PodGroup", 3, fwk.NewStatus(fwk.Wait), "other", fwk.Wait, 0},
		{"no PodGroup", 3, nil, "", fwk.Success, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := member("asks", test.group)
			pl, h := fixture(t, test.says, test.running, pod)
			sibling, stranger := &atWait{pod: member("sibling", "g")}, &atWait{pod: member("stranger", "other")}
			h.pods = []*atWait{sibling, stranger}
			pl.wait = ourTimeout
			status, wait := pl.Permit(t.Context(), nil, pod, "node")
			timeout := map[bool]time.Duration{true: theirTimeout, false: ourTimeout}[test.says.IsWait()]
			expect.That(t, status.Code() == test.want && (!status.IsWait() || wait == timeout),
				"%v, waits %v; want %v", status, wait, test.want)
			expect.That(t, slices.Equal(sibling.let, slices.Repeat([]string{Name}, test.let)) && len(stranger.let) == 0,
				"let go: sibling by %v, stranger by %v", sibling.let, stranger.let)
		})
	}
}

// TestAllowNeedsTheStoresVerdict: upstream lets those go that wait when it thinks that enough have a
// place; they do if the store thinks so, too, or are of no PodGroup.
func TestAllowNeedsTheStoresVerdict(t *testing.T) {
	for running, want := range map[int]int{2: 0, 3: 1} {
		pod := member("asks", "g")
		_, h := fixture(t, nil, running, pod)
		waiting, alone := &atWait{pod: pod}, &atWait{pod: member("alone", "")}
		h.pods = []*atWait{waiting, alone}
		h.theirs.IterateOverWaitingPods(func(w fwk.WaitingPod) { w.Allow(Name) })
		expect.That(t, len(waiting.let) == want && len(alone.let) == 1,
			"%d run: let go by %v, and one without a PodGroup by %v", running, waiting.let, alone.let)
	}
}

// TestPostFilter: a pod that finds no node affects no other once enough have a place.
func TestPostFilter(t *testing.T) {
	for running, message := range map[int]string{3: "", 2: "the PodGroup gets rejected"} {
		pod := member("asks", "g")
		pl, _ := fixture(t, nil, running, pod)
		_, status := pl.PostFilter(t.Context(), nil, pod, nil)
		expect.That(t, status.Code() == fwk.Unschedulable && status.Message() == message,
			"%d run: %v", running, status)
	}
}

// TestWithoutAStoreUpstreamDecides: without a store upstream's plugin decides.
func TestWithoutAStoreUpstreamDecides(t *testing.T) {
	h := plugintest.New(t)
	pl := expect.Get(wrap(h.Context(), func(fwk.Handle) (fwk.Plugin, error) { return miscounting{says: fwk.NewStatus(fwk.Wait)}, nil }, fake.NewSimpleClientset(), h))(t)
	status, _ := pl.Permit(t.Context(), nil, member("asks", "g"), "node")
	expect.That(t, status.IsWait(), "%v, want what upstream says", status)
}

// TestReasonsOfUpstreamsRejections: the reasons of upstream's plugin, as people read them.
func TestReasonsOfUpstreamsRejections(t *testing.T) {
	pod := member("p", "g")
	_, h := fixture(t, nil, 2, pod)
	w := &atWait{pod: pod}
	h.pods = []*atWait{w}
	for _, why := range []string{"optimistic rejection in PostFilter", "rejection in Unreserve"} {
		h.theirs.IterateOverWaitingPods(func(p fwk.WaitingPod) { p.Reject(Name, why) })
	}
	want := []string{
		"PodGroup ns/g: the pod gave back its place, because another pod of it found no node",
		"PodGroup ns/g: the pod gave back its place, because another pod of it lost its place",
	}
	expect.Same(t, "told", want, w.why)
}

// listener writes down what a store is told.
type listener struct {
	mu   sync.Mutex
	told []string
}

func (l *listener) SetPodGroup(namespace, name string, minMember int, _ time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, fmt.Sprintf("%s/%s %d", namespace, name, minMember))
}

// awaitTold waits until the last thing it was told is this.
func (l *listener) awaitTold(t *testing.T, want string) {
	t.Helper()
	plugintest.Until(t, want, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		n := len(l.told)
		return n > 0 && l.told[n-1] == want
	})
}

func podGroup(name string, minMember int32) *v1alpha1.PodGroup {
	return &v1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: v1alpha1.PodGroupSpec{MinMember: minMember}}
}

// TestPodGroupsAreFollowed: PodGroups that exist, that come, change and go.
func TestPodGroupsAreFollowed(t *testing.T) {
	// The fake does not end a list that is watched.
	featurestesting.SetFeatureDuringTest(t, features.WatchListClient, false)
	ctx, stop := context.WithCancel(t.Context())
	client := fake.NewSimpleClientset(podGroup("there", 3)) // its successor lacks the schema of PodGroups
	l := &listener{}
	var running sync.WaitGroup
	running.Go(func() { run(ctx, client, l, clocktesting.NewFakePassiveClock(time.Unix(0, 0))) })
	defer running.Wait()
	defer stop()
	l.awaitTold(t, "ns/there 3")
	groups := client.SchedulingV1alpha1().PodGroups("ns")
	expect.Get(groups.Create(ctx, podGroup("new", 2), metav1.CreateOptions{}))(t)
	l.awaitTold(t, "ns/new 2")
	expect.Get(groups.Update(ctx, podGroup("new", 5), metav1.UpdateOptions{}))(t)
	l.awaitTold(t, "ns/new 5")
	expect.OK(t, groups.Delete(ctx, "there", metav1.DeleteOptions{}))
	l.awaitTold(t, "ns/there 0")
}

// TestDeleteThatWasMissed: the informer has the last state only.
func TestDeleteThatWasMissed(t *testing.T) {
	l := &listener{}
	h := handler(l, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/lost", Obj: podGroup("lost", 3)})
	h.OnDelete("no PodGroup")
	h.OnAdd("no PodGroup", false)
	expect.Same(t, "told", []string{"ns/lost 0"}, l.told)
}
