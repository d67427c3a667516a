package app

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
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
	if got.RetryInterval != 7*time.Second || got.Round != 2*time.Second || got.MaxVictims != 3 || !got.IgnorePodOptOut || got.HoldTimeout != time.Minute {
		t.Errorf("the store has %+v", got)
	}
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
	if got := p.keptOff.take([]string{"n2"}); len(got) != 0 {
		t.Errorf("%d pods of a node without a hold", len(got))
	}
	if got := p.keptOff.take([]string{"n1"}); len(got) != mostKeptOff {
		t.Errorf("%d pods are invited, want %d", len(got), mostKeptOff)
	}
	if got := p.keptOff.take([]string{"n1"}); len(got) != 0 {
		t.Errorf("%d pods are invited twice", len(got))
	}
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

// TestTheEndDoesNotWaitForACallThatHangs: the lease is released after the drain, although
// a call hangs.
func TestTheEndDoesNotWaitForACallThatHangs(t *testing.T) {
	before := interceptor
	called, answer := make(chan struct{}, 1), make(chan struct{})
	SetInterceptor(func(s *store.Store) Interceptor { return hangs{s, called, answer} })
	t.Cleanup(func() { SetInterceptor(before) })
	h := plugintest.New(t, plugintest.Queues(takesBack), nodeOf("n1", "4"))
	t.Cleanup(func() { close(answer) })
	p := configured(t, h, plugintest.Args())
	h.Start(t)
	waitStarted(t, p)
	<-called
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		Drain(ctx)
	}()
	select {
	case <-drained:
	case <-time.After(10 * time.Second):
		t.Error("the drain goes on after its time is over")
	}
}

// TestFollowPodGroups: plugins are made in any order, and only a managed profile
// counts.
func TestFollowPodGroups(t *testing.T) {
	const before, after = "before the store is made", "after it"
	for _, test := range []struct {
		name     string
		profiles map[string][]string // by time, the profiles that start PodGroups
		followed int
	}{
		{"no profile says so", nil, 0},
		{"first", map[string][]string{before: {plugintest.Profile}}, 1},
		{"last", map[string][]string{after: {plugintest.Profile}}, 1},
		{"twice", map[string][]string{before: {plugintest.Profile, plugintest.Profile}, after: {plugintest.Profile}}, 1},
		{"not managed", map[string][]string{before: {"default-scheduler"}, after: {"other"}}, 0},
		{"one is managed", map[string][]string{before: {"default-scheduler", plugintest.Profile}}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := plugintest.New(t)
			p := For(h.Context(), h)
			var told []*store.Store
			say := func(when string) {
				for _, profile := range test.profiles[when] {
					p.FollowPodGroups(profile, func(s *store.Store) { told = append(told, s) })
				}
			}
			say(before)
			if len(told) > 0 {
				t.Error("there is no store yet")
			}
			configured(t, h, plugintest.Args())
			say(after)
			if len(told) != test.followed || slices.ContainsFunc(told, func(s *store.Store) bool { return s != p.Store() }) {
				t.Errorf("followed %d times, want %d, for the store that there is", len(told), test.followed)
			}
		})
	}
}
