package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/evict"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

func preemptionArgs() *config.QueuePreemptionArgs {
	return &config.QueuePreemptionArgs{
		RetryInterval: &metav1.Duration{Duration: 7 * time.Second}, Round: &metav1.Duration{Duration: 2 * time.Second},
		MaxVictimsPerRound: 3, PodOptOut: config.PodOptOutIgnore,
	}
}

func TestArgumentsOfPreemptionAreThoseOfAllProfiles(t *testing.T) {
	h := plugintest.New(t)
	p := For(h.Context(), h)
	expect.OK(t, p.ConfigurePreemption(preemptionArgs()))
	expect.Holds(t, p.ConfigurePreemption(preemptionArgs()))
	other := preemptionArgs()
	other.MaxVictimsPerRound = 4
	expect.Fails(t, p.ConfigurePreemption(other), "QueuePreemption differ between profiles")
	holds := &config.NodeReservationArgs{
		ReservationTimeout: &metav1.Duration{Duration: time.Minute}, PreemptionStartDelay: metav1.Duration{Duration: 3 * time.Second},
		VictimSelection:        []config.VictimSelection{config.VictimSelectionMultiple, config.VictimSelectionSingle},
		SingleDeviationPercent: ptr.To[int32](17), MaxVictims: ptr.To[int32](9), ClassOrder: config.ClassOrderYuniKorn, PreemptForeign: true, DaemonSetNamespaces: []string{"kube-system"},
	}
	expect.OK(t, p.ConfigureReservation(holds))
	expect.Fails(t, p.ConfigureReservation(&config.NodeReservationArgs{}), "NodeReservation differ between profiles")
	// Plugins are made in any order: what was set before the store exists counts.
	expect.OK(t, p.Configure(h.Context(), h, plugintest.Args()))
	got := p.Store().Preemption()
	expect.That(t, got.RetryInterval == 7*time.Second && got.Round == 2*time.Second && got.HoldTimeout == time.Minute &&
		got.MaxVictims == 3 && got.IgnorePodOptOut, "the store has %+v", got)
	want := daemonset.Params{
		StartDelay: 3 * time.Second, Selection: []daemonset.Selection{daemonset.Multiple, daemonset.Single},
		SingleDeviationPercent: ptr.To[int32](17), MaxVictims: ptr.To[int32](9), ClassOrder: daemonset.YuniKorn, PreemptForeign: true, Namespaces: []string{"kube-system"},
	}
	expect.Same(t, "decisions for DaemonSet pods are made with other settings", want, got.NodeBoundParams)
}

func TestRejectedPodsAreBoundedAndRequeuedOnce(t *testing.T) {
	var p Process
	for i := range mostKeptOff + 10 {
		pod := plugintest.Pod(fmt.Sprintf("p-%d", i), 1)
		p.KeptOff("n1", pod)
		p.KeptOff("n1", pod)
	}
	expect.Same(t, "pods of a node without a hold", 0, len(p.keptOff.take([]string{"n2"})))
	expect.Same(t, "pods that are invited", mostKeptOff, len(p.keptOff.take([]string{"n1"})))
	expect.Same(t, "pods that are invited twice", 0, len(p.keptOff.take([]string{"n1"})))
}

// hangs is a store that does not answer the executor.
type hangs struct {
	*store.Store
	called chan<- struct{}
	answer <-chan struct{}
}

func (h hangs) TakeWork() []output.Work {
	h.called <- struct{}{}
	<-h.answer
	return nil
}

// TestTheEndDoesNotWaitForACallThatHangs: the lease is released after the drain, although a call hangs.
func TestTheEndDoesNotWaitForACallThatHangs(t *testing.T) {
	before := interceptor
	called, answer := make(chan struct{}, 1), make(chan struct{})
	SetInterceptor(func(s *store.Store) Interceptor { return hangs{s, called, answer} })
	t.Cleanup(func() { SetInterceptor(before) })
	h := plugintest.New(t, plugintest.Queues(takesBack), nodeOf("n1", "4"))
	t.Cleanup(func() { close(answer) })
	p := configured(t, h, plugintest.Args())
	start(t, h, p)
	<-called
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	var drained atomic.Bool
	go func() {
		Drain(ctx)
		drained.Store(true)
	}()
	plugintest.Until(t, "the drain ends with its time", drained.Load)
}

// TestFollowPodGroups: plugins are made in any order, and only a managed profile counts.
func TestFollowPodGroups(t *testing.T) {
	const managed = plugintest.Profile
	for _, test := range []struct {
		name          string
		before, after []string // the profiles that start PodGroups, before the store is made and after it
		followed      int
	}{
		{"no profile says so", nil, nil, 0},
		{"first", []string{managed}, nil, 1},
		{"last", nil, []string{managed}, 1},
		{"twice", []string{managed, managed}, []string{managed}, 1},
		{"not managed", []string{"default-scheduler"}, []string{"other"}, 0},
		{"one is managed", []string{"default-scheduler", managed}, nil, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := plugintest.New(t)
			p := For(h.Context(), h)
			var told []*store.Store
			say := func(profiles []string) {
				for _, profile := range profiles {
					p.FollowPodGroups(profile, func(s *store.Store) { told = append(told, s) })
				}
			}
			say(test.before)
			expect.Same(t, "told before there is a store", 0, len(told))
			configured(t, h, plugintest.Args())
			say(test.after)
			want := slices.Repeat([]*store.Store{p.Store()}, test.followed)
			expect.That(t, slices.Equal(told, want), "followed for %v, want for %v", told, want)
		})
	}
}

func TestTaintPolicy(t *testing.T) {
	for _, c := range []struct {
		holds    config.HoldTaint
		profiles []string // in addition to yunikorn
		want     evict.TaintPolicy
	}{
		{config.HoldTaintAuto, nil, evict.TaintIfAllowed},
		{config.HoldTaintAuto, []string{"gold"}, evict.TaintIfAllowed},
		{config.HoldTaintAuto, []string{corev1.DefaultSchedulerName}, evict.TaintNever},
		{config.HoldTaintAlways, []string{corev1.DefaultSchedulerName}, evict.TaintAlways},
		{config.HoldTaintNever, nil, evict.TaintNever},
	} {
		h := plugintest.New(t)
		p := configured(t, h, plugintest.Args())
		expect.Same(t, "the policy without NodeReservation", evict.TaintNever, p.taintPolicy())
		args := &config.NodeReservationArgs{HoldTaint: c.holds, ReservationTimeout: &metav1.Duration{}}
		expect.OK(t, p.ConfigureReservation(args))
		for _, profile := range c.profiles {
			For(h.Context(), h.Other(t, profile))
		}
		expect.Same(t, fmt.Sprint("the policy of ", c.holds, c.profiles), c.want, p.taintPolicy())
	}
}

// TestHeldNodesAreTaintedForOthersOnly: the node is tainted before victims are deleted, and nothing in
// this process sees the taint. It is removed with the hold, or at the end of the process.
func TestHeldNodesAreTaintedForOthersOnly(t *testing.T) {
	for name, end := range map[string]func(*plugintest.Handle, *corev1.Pod){
		"the asker is gone": func(h *plugintest.Handle, asker *corev1.Pod) { h.Delete(t, asker) },
		"the process ends":  func(*plugintest.Handle, *corev1.Pod) { Drain(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			node := nodeOf("n1", "4")
			gpu := corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}
			node.Spec.Taints = []corev1.Taint{gpu}
			h := plugintest.New(t, plugintest.Queues(takesBack), node)
			p := configured(t, h, plugintest.Args())
			expect.OK(t, p.ConfigureReservation(&config.NodeReservationArgs{
				ReservationTimeout: &metav1.Duration{Duration: time.Minute}, HoldTaint: config.HoldTaintAuto,
			}))
			asker := podOf("asker", "root.a")
			h.Create(t, plugintest.On(podOf("v1", "root.b"), "n1"), plugintest.On(podOf("v2", "root.b"), "n1"), asker)
			start(t, h, p)
			takeBack(t, p, asker)
			taints := func() []corev1.Taint {
				return expect.Get(h.Client.CoreV1().Nodes().Get(h.Context(), "n1", metav1.GetOptions{}))(t).Spec.Taints
			}
			value := "yunikorn." + string(asker.UID)
			held := corev1.Taint{Key: reservations.HeldTaint, Value: value, Effect: corev1.TaintEffectNoSchedule}
			expect.Same(t, "the taints of the node", []corev1.Taint{gpu, held}, taints())
			seen := expect.Get(h.SharedInformerFactory().Core().V1().Nodes().Lister().Get("n1"))(t)
			expect.Same(t, "the taints that the filters see", []corev1.Taint{gpu}, seen.Spec.Taints)
			end(h, asker)
			plugintest.Becomes(t, "the taints after the hold", []corev1.Taint{gpu}, taints)
		})
	}
}

// takeBack makes the pod preempt another one, and waits until that is gone.
func takeBack(t *testing.T, p *Process, asker *corev1.Pod) {
	t.Helper()
	s := p.Store()
	plugintest.Eventually(t, func() error {
		input, why := s.BeginPlan(asker.UID, "", nil, p.Clock.Now())
		if input == nil {
			return fmt.Errorf("no input: %v", why)
		}
		d := search.Plan(input.Snapshot, input.Ask, planner.Params{})
		if why := s.AcceptPlan(asker.UID, &d, p.Clock.Now()); !why.None() {
			return fmt.Errorf("no claim: %v", why)
		}
		return nil
	})
	plugintest.Eventually(t, func() error {
		hold, ok := s.Holds().Of(asker.UID)
		if !ok || !hold.OnlyThisNode() || !hold.Clear() {
			return fmt.Errorf("the hold is %v, %+v", ok, hold)
		}
		return nil
	})
}

// nominating is a scheduler that has nominated pods to every node.
type nominating struct {
	*plugintest.Handle
	pods []fwk.PodInfo
}

func (n nominating) NominatedPodsForNode(string) []fwk.PodInfo { return n.pods }

// TestNominationThatCannotBeRemoved: the log says so once the second attempt fails, and
// then once a minute.
func TestNominationThatCannotBeRemoved(t *testing.T) {
	pod := plugintest.Pod("p", 1)
	pod.Status.NominatedNodeName = "n1"
	h := plugintest.New(t, plugintest.Queues(plugintest.Document("{vcore: 1}")), pod, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	h.Client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no role")
	})
	p := started(t, h)
	info := expect.Get(framework.NewPodInfo(pod))(t)
	core := h.SharedInformerFactory().Core().V1()
	n := &nominations{
		process: p, handle: nominating{h, []fwk.PodInfo{info}}, client: h.Client, store: p.Store(),
		pods: core.Pods().Lister(), nodes: core.Nodes().Lister(), logger: logger(h),
	}
	for check, want := range []int{0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2} {
		n.look(h.Context())
		told := strings.Count(h.Log(), `A nomination cannot be taken back`)
		expect.That(t, told == want, "%d log lines after check %d, want %d:\n%s", told, check+1, want, h.Log())
	}
	expect.Says(t, h.Log(), "patch pods/status", "no role", `pod="ns/p"`)
}
