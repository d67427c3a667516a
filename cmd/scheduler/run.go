package main

import (
	"context"
	"time"

	"k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"

	paddock "github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/leader"
	"github.com/paddock-scheduler/paddock/pkg/plugins/conditions"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/plugins/profiles"
)

// run makes the scheduler and runs it until the process is told to end. It
// returns an error if the scheduler could not be made or ended by itself.
func run(opts *options.Options) error {
	ctx := drained(server.SetupSignalContext())

	// The plugins are made in Setup and ask the gate from then on; it stays
	// closed until the lease is held.
	gate := leader.NewGate()
	paddock.SetLeader(gate)

	done, err := useBuiltin(opts)
	if err != nil {
		return err
	}
	cc, sched, err := app.Setup(ctx, opts, plugins()...)
	done()
	if err != nil {
		return err
	}
	if err := profiles.Check(&cc.ComponentConfig, profiles.Effective(sched.Profiles)); err != nil {
		return err
	}
	followLease(cc.LeaderElection, gate)
	offerPreviews(ctx, &cc.ComponentConfig, sched)
	correctConditions(ctx, cc.Client, sched)

	utilfeature.DefaultMutableFeatureGate.AddMetrics()
	opts.ComponentGlobalsRegistry.AddMetrics()
	return app.Run(ctx, cc, sched)
}

// drainTime bounds what is done between the signal and the end.
const drainTime = 5 * time.Second

// drained returns a context that ends after the other one, once the taints of held nodes
// are taken back. The lease is released after that.
func drained(told context.Context) context.Context {
	ctx, cancel := context.WithCancel(context.WithoutCancel(told))
	context.AfterFunc(told, func() {
		defer cancel()
		limited, done := context.WithTimeout(context.Background(), drainTime)
		defer done()
		paddock.Drain(limited)
	})
	return ctx
}

// offerPreviews has REST make previews of pods, with filters of their own. A
// scheduler without them is as good a scheduler, so it starts in any case.
func offerPreviews(ctx context.Context, cfg *schedconfig.KubeSchedulerConfiguration, sched *scheduler.Scheduler) {
	previewer, shared, err := preemption.NewPreviewer(ctx, cfg, sched.Profiles, frameworkplugins.NewInTreeRegistry(), sched.Cache)
	if err != nil {
		klog.FromContext(ctx).Info("No preview of pods: kubectl paddock preview will fail; scheduling is not affected", "reason", err.Error())
		return
	}
	shared.OfferPreviews(previewer)
}

// correctConditions makes autoscalers add no node for a pod that a quota keeps from running.
func correctConditions(ctx context.Context, client kubernetes.Interface, sched *scheduler.Scheduler) {
	for _, profile := range sched.Profiles {
		if s := paddock.For(ctx, profile).Store(); s != nil { // all profiles have the same
			sched.FailureHandler = conditions.Correct(sched.FailureHandler, client, s.BeyondQuota)
			return
		}
	}
}

// followLease keeps the gate in step with the lease. Without leader election,
// election is nil and the gate is open for good.
func followLease(election *leaderelection.LeaderElectionConfig, gate *leader.Gate) {
	if election == nil {
		gate.Open()
		return
	}
	election.Lock = leader.Watch(election.Lock, gate, election.RenewDeadline)
}
