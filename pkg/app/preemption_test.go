package app

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
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
	if err := p.ConfigurePreemption(preemptionArgs()); err != nil {
		t.Errorf("the same ones again: %v", err)
	}
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
	if got.RetryInterval != 7*time.Second || got.Round != 2*time.Second || got.MaxVictims != 3 || !got.IgnorePodOptOut || got.HoldTimeout != time.Minute {
		t.Errorf("the store has %+v", got)
	}
	want := daemonset.Params{
		StartDelay: 3 * time.Second, Selection: []daemonset.Selection{daemonset.Multiple, daemonset.Single},
		SingleDeviationPercent: ptr.To[int32](17), MaxVictims: ptr.To[int32](9), ClassOrder: daemonset.YuniKorn, PreemptForeign: true, Namespaces: []string{"kube-system"},
	}
	expect.Same(t, "decisions for DaemonSet pods are made with other settings", want, got.Required)
}

func TestTurnedAwayPodsAreBoundedAndInvitedOnce(t *testing.T) {
	var p Process
	for i := range mostTurnedAway + 10 {
		pod := plugintest.Pod(fmt.Sprintf("p-%d", i), 1)
		p.TurnedAway("n1", pod)
		p.TurnedAway("n1", pod)
	}
	if got := p.away.take([]string{"n2"}); len(got) != 0 {
		t.Errorf("%d pods of a node that nobody held", len(got))
	}
	if got := p.away.take([]string{"n1"}); len(got) != mostTurnedAway {
		t.Errorf("%d pods are invited, want %d", len(got), mostTurnedAway)
	}
	if got := p.away.take([]string{"n1"}); len(got) != 0 {
		t.Errorf("%d pods are invited twice", len(got))
	}
}
