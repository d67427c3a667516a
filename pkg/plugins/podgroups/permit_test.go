package podgroups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	fwk "k8s.io/kube-scheduler/framework"
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

const theirTimeout = 7 * time.Second

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
	const all = 3
	runs := func(i int) *corev1.Pod {
		return plugintest.On(member(fmt.Sprint("runs-", i), "g"), "node")
	}
	for i := range all {
		h.Create(t, runs(i))
	}
	h.Create(t, pod)
	s := app.For(h.Context(), h).Store()
	plugintest.Eventually(t, func() error {
		if _, known := s.Explanation(pod.UID, time.Now()); !known || !s.Gathered(runs(0).UID) {
			return fmt.Errorf("pod %s is known: %v; the others run: %v", pod.Name, known, s.Gathered(runs(0).UID))
		}
		return nil
	})
	for i := running; i < all; i++ {
		h.Delete(t, runs(i))
	}
	plugintest.Eventually(t, func() error {
		if s.Gathered(runs(0).UID) != (running == all) {
			return errors.New("a pod is not seen to be gone")
		}
		return nil
	})
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
			status, wait := pl.Permit(t.Context(), nil, pod, "node")
			if status.Code() != test.want || status.IsWait() && wait != map[bool]time.Duration{true: theirTimeout, false: defaultWait}[test.says.IsWait()] {
				t.Errorf("%v, waits %v; want %v", status, wait, test.want)
			}
			if len(sibling.let) != test.let || len(stranger.let) != 0 || slices.ContainsFunc(sibling.let, func(by string) bool { return by != Name }) {
				t.Errorf("let go: sibling by %v, stranger by %v", sibling.let, stranger.let)
			}
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
		if len(waiting.let) != want || len(alone.let) != 1 {
			t.Errorf("%d run: let go by %v, and one without a PodGroup by %v", running, waiting.let, alone.let)
		}
	}
}

// TestPostFilter: a pod that finds no node affects no other once enough have a place.
func TestPostFilter(t *testing.T) {
	for running, message := range map[int]string{3: "", 2: "the PodGroup gets rejected"} {
		pod := member("asks", "g")
		pl, _ := fixture(t, nil, running, pod)
		_, status := pl.PostFilter(t.Context(), nil, pod, nil)
		if status.Code() != fwk.Unschedulable || status.Message() != message {
			t.Errorf("%d run: %v", running, status)
		}
	}
}

// TestWithoutAStoreUpstreamDecides: without a store upstream's plugin decides.
func TestWithoutAStoreUpstreamDecides(t *testing.T) {
	h := plugintest.New(t)
	pl := expect.Get(wrap(h.Context(), func(fwk.Handle) (fwk.Plugin, error) { return miscounting{says: fwk.NewStatus(fwk.Wait)}, nil }, fake.NewSimpleClientset(), h))(t)
	if status, _ := pl.Permit(t.Context(), nil, member("asks", "g"), "node"); !status.IsWait() {
		t.Errorf("%v, want what upstream says", status)
	}
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
