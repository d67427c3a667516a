package queuesort_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

func newPlugin(t *testing.T, h *plugintest.Handle) *queuesort.Plugin {
	t.Helper()
	return expect.Get(queuesort.New(h.Context(), plugintest.Args(), h))(t).(*queuesort.Plugin)
}

// started is a plugin with a store that has admitted the pods.
func started(t *testing.T, pods ...*corev1.Pod) (*queuesort.Plugin, *store.Store) {
	t.Helper()
	h := plugintest.New(t, plugintest.Queues(plugintest.Document("{vcore: 100}")))
	plugin := newPlugin(t, h)
	h.Start(t)
	h.Create(t, pods...)
	s := app.For(h.Context(), h).Store()
	for _, p := range pods {
		plugintest.Until(t, p.Name+" is admitted", func() bool {
			_, admitted := s.Key(p.UID)
			return admitted
		})
	}
	return plugin, s
}

func TestNewRefuses(t *testing.T) {
	bad := plugintest.Args()
	bad.ManagedProfiles, *bad.Window, *bad.RESTAddress = nil, 0, "x"
	plugintest.WantRefused(t, queuesort.Name, queuesort.New, bad, "managedProfiles", "window", "restAddress")
}

func TestPreEnqueue(t *testing.T) {
	h := plugintest.New(t, plugintest.Queues(plugintest.Document("{vcore: 1}")))
	plugin := newPlugin(t, h)
	// gate waits until a pod is held back for the reason, or let through if there is none.
	gate := func(pod *corev1.Pod, reason string) {
		t.Helper()
		code := fwk.Success
		if reason != "" {
			code = fwk.UnschedulableAndUnresolvable
		}
		plugintest.Eventually(t, func() error {
			s := plugin.PreEnqueue(t.Context(), pod)
			if s.Code() != code || !strings.HasPrefix(s.Message(), reason) {
				return errors.New(s.Code().String() + " " + s.Message())
			}
			return nil
		})
	}
	ofNoQueue := func() {
		t.Helper()
		s := plugin.PreEnqueue(t.Context(), plugintest.Foreign(plugintest.Pod("foreign", 1)))
		expect.That(t, s == nil, "a pod of no queue: %v", s)
	}
	first, second, big := plugintest.Pod("first", 600), plugintest.Pod("second", 600), plugintest.Pod("big", 2000)
	ofNoQueue()
	gate(first, "Starting")
	h.Start(t)
	h.Create(t, first)
	gate(first, "")
	gate(first, "") // again, for instance after its back-off
	gate(second, "Starting")
	h.Create(t, second)
	gate(second, "OverMax")
	h.Create(t, big)
	gate(big, "OverMax")
	h.Delete(t, first)
	gate(second, "")
	gate(big, "OverMax")
	ofNoQueue()
}

func prioritized(pod *corev1.Pod, priority int32) *corev1.Pod {
	pod.Spec.Priority = &priority
	return pod
}

func queued(pod *corev1.Pod, at time.Time) *framework.QueuedPodInfo {
	return &framework.QueuedPodInfo{PodInfo: &framework.PodInfo{Pod: pod}, Timestamp: at}
}

// less is the signature of Less, so that a law can be held against a broken one.
type less func(a, b fwk.QueuedPodInfo) bool

// keyed is how many pods of queues have a key from their admission.
const keyed = 12

// crowd is a plugin with admitted pods of several priorities and times, some of
// them equal, and a generator of pods with and without a key.
func crowd(t *testing.T) (less, *rapid.Generator[*framework.QueuedPodInfo]) {
	t.Helper()
	var pods []*corev1.Pod
	for i := range keyed {
		pods = append(pods, prioritized(plugintest.Pod(fmt.Sprint("keyed-", i), 1), int32(i%3)))
	}
	plugin, s := started(t, pods...)
	times := []time.Time{time.Unix(0, 1), time.Unix(1, 0), time.Unix(2, 0), time.Now(), time.Now().Add(time.Hour)}
	for _, p := range pods {
		k, _ := s.Key(p.UID)
		times = append(times, time.Unix(0, k.Time)) // ties with pods of no queue
	}
	return plugin.Less, rapid.Custom(func(t *rapid.T) *framework.QueuedPodInfo {
		at := rapid.SampledFrom(times).Draw(t, "queued")
		if i := rapid.IntRange(0, 2*keyed).Draw(t, "keyed"); i < keyed {
			return queued(pods[i], at)
		}
		p := plugintest.Foreign(plugintest.Pod("other", 1))
		p.UID = types.UID(fmt.Sprint("other-", rapid.IntRange(0, 20).Draw(t, "uid")))
		if rapid.Bool().Draw(t, "managed") { // not admitted yet, or unknown
			p.Spec.SchedulerName = plugintest.Profile
		}
		if rapid.Bool().Draw(t, "prioritised") {
			p.Spec.Priority = ptr.To(rapid.OneOf(rapid.Int32Range(0, 2), rapid.SampledFrom([]int32{-1 << 31, 1<<31 - 1, 2_000_001_000})).Draw(t, "priority"))
		}
		return queued(p, at)
	})
}

// lawOfOrder: a strict total order of pods. Two infos with one UID are one pod,
// which has one place in the queue.
func lawOfOrder(l less) func([]*framework.QueuedPodInfo) error {
	return func(three []*framework.QueuedPodInfo) error {
		a, b, c := three[0], three[1], three[2]
		ab, ba, bc, ac := l(a, b), l(b, a), l(b, c), l(a, c)
		switch {
		case l(a, a):
			return errors.New("a pod is before itself")
		case ab && ba:
			return errors.New("two pods are each before the other")
		case !ab && !ba && a.Pod.UID != b.Pod.UID:
			return errors.New("two pods have the same place")
		case ab && bc && !ac:
			return errors.New("a is before b and b before c, and a is not before c")
		case !ab && !bc && ac:
			return errors.New("a is not before b and b not before c, and a is before c")
		}
		return nil
	}
}

func TestLessIsAStrictTotalOrder(t *testing.T) {
	l, infos := crowd(t)
	priority := func(q fwk.QueuedPodInfo) int32 { return ptr.Deref(q.GetPodInfo().GetPod().Spec.Priority, 0) }
	notStrict := func(a, b fwk.QueuedPodInfo) bool { return !l(b, a) }
	twoClocks := func(a, b fwk.QueuedPodInfo) bool { // own order among some, upstream's with the others
		if a.GetPodInfo().GetPod().Spec.SchedulerName == b.GetPodInfo().GetPod().Spec.SchedulerName {
			return l(a, b)
		}
		return cmp.Or(cmp.Compare(priority(a), priority(b)), a.GetTimestamp().Compare(b.GetTimestamp())) < 0
	}
	leavesTies := (&upstream.PrioritySort{}).Less
	expect.Law(t, rapid.SliceOfN(infos, 3, 3), lawOfOrder(l),
		lawOfOrder(leavesTies), lawOfOrder(notStrict), lawOfOrder(twoClocks))
}

// strangers are pods of no queue: pairs at different times.
var strangers = rapid.Custom(func(t *rapid.T) [2]*framework.QueuedPodInfo {
	var pair [2]*framework.QueuedPodInfo
	for i := range pair {
		p := plugintest.Foreign(plugintest.Pod(fmt.Sprint(i), 1))
		p.UID = types.UID(fmt.Sprint(rapid.IntRange(0, 99).Draw(t, "uid"), "-", i))
		if rapid.Bool().Draw(t, "prioritised") {
			p.Spec.Priority = ptr.To(rapid.OneOf(rapid.Int32Range(-2, 2), rapid.Int32()).Draw(t, "priority"))
		}
		pair[i] = queued(p, time.Unix(1_700_000_000, rapid.Int64Range(0, 3).Draw(t, "time")))
	}
	return pair
})

// lawOfStrangers: where upstream has an opinion, it is ours.
func lawOfStrangers(l less) func([2]*framework.QueuedPodInfo) error {
	theirs := (&upstream.PrioritySort{}).Less
	return func(pair [2]*framework.QueuedPodInfo) error {
		for _, p := range [][2]*framework.QueuedPodInfo{pair, {pair[1], pair[0]}} {
			if theirs(p[0], p[1]) && (!l(p[0], p[1]) || l(p[1], p[0])) {
				return fmt.Errorf("upstream puts %v first", p[0].Pod.UID)
			}
		}
		return nil
	}
}

func TestPodsOfNoQueueAreOrderedAsUpstreamDoes(t *testing.T) {
	l := newPlugin(t, plugintest.New(t)).Less
	reversed := func(a, b fwk.QueuedPodInfo) bool { return l(b, a) }
	expect.Law(t, strangers, lawOfStrangers(l), lawOfStrangers(reversed))
}

// TestKeyedPodsKeepTheOrderOfTheirAdmission shows that what happens to a pod
// after it was let through does not move it.
func TestKeyedPodsKeepTheOrderOfTheirAdmission(t *testing.T) {
	low, high := prioritized(plugintest.Pod("low", 1), 1), prioritized(plugintest.Pod("high", 1), 2)
	plugin, _ := started(t, low, high)
	early, late := time.Unix(1, 0), time.Now().Add(time.Hour)
	expect.That(t, plugin.Less(queued(high, late), queued(low, early)) &&
		!plugin.Less(queued(low, early), queued(high, late)),
		"the higher priority is not first, whenever it was queued")
	stranger := prioritized(plugintest.Foreign(plugintest.Pod("stranger", 1)), 2)
	expect.That(t, plugin.Less(queued(stranger, early), queued(high, early)),
		"of equal rank, the pod that waits longer than the other's admission is not first")
	expect.That(t, plugin.Less(queued(high, early), queued(stranger, late)),
		"of equal rank, the pod that came after the other's admission is first")
}
