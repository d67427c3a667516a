package app

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/pkg/evict"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

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
		t.Run(fmt.Sprint(c.holds, c.profiles), func(t *testing.T) {
			h := plugintest.New(t)
			p := configured(t, h, plugintest.Args())
			expect.Same(t, "the policy without NodeReservation", evict.TaintNever, p.taintPolicy())
			expect.OK(t, p.ConfigureReservation(&config.NodeReservationArgs{HoldTaint: c.holds, ReservationTimeout: &metav1.Duration{}}))
			for _, profile := range c.profiles {
				For(h.Context(), h.Other(t, profile))
			}
			expect.Same(t, "the policy", c.want, p.taintPolicy())
		})
	}
}

// TestHeldNodesAreTaintedForOthersOnly: the node is tainted before victims are deleted,
// and nothing in this process sees the taint. It is removed with the hold, or at the end
// of the process.
func TestHeldNodesAreTaintedForOthersOnly(t *testing.T) {
	for name, end := range map[string]func(*plugintest.Handle, *corev1.Pod){
		"the asker is gone": func(h *plugintest.Handle, asker *corev1.Pod) { h.Delete(t, asker) },
		"the process ends":  func(*plugintest.Handle, *corev1.Pod) { Drain(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) { testTaint(t, end) })
	}
}

func testTaint(t *testing.T, end func(*plugintest.Handle, *corev1.Pod)) {
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
	h.Start(t)
	waitStarted(t, p)
	takeBack(t, p, asker)
	taints := func() []corev1.Taint {
		now := expect.Get(h.Client.CoreV1().Nodes().Get(h.Context(), "n1", metav1.GetOptions{}))(t)
		return now.Spec.Taints
	}
	if got := taints(); len(got) != 2 || got[0] != gpu || got[1].Key != reservations.HeldTaint ||
		got[1].Value != "yunikorn."+string(asker.UID) || got[1].Effect != corev1.TaintEffectNoSchedule {
		t.Errorf("the node has taints %v", got)
	}
	seen := expect.Get(h.SharedInformerFactory().Core().V1().Nodes().Lister().Get("n1"))(t)
	if len(seen.Spec.Taints) != 1 || seen.Spec.Taints[0] != gpu {
		t.Errorf("the filters see taints %v", seen.Spec.Taints)
	}
	end(h, asker)
	plugintest.Eventually(t, func() error {
		if len(taints()) != 1 {
			return errors.New("the hold is over and the taint is still there")
		}
		return nil
	})
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
