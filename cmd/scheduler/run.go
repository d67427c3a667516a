package main

import (
	"k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/paddock-scheduler/paddock/pkg/leader"
	"github.com/paddock-scheduler/paddock/pkg/plugins/process"
)

// run makes the scheduler and runs it until the process is told to end. It
// returns an error if the scheduler could not be made or ended by itself.
func run(opts *options.Options) error {
	ctx := server.SetupSignalContext()

	// The plugins are made in Setup and ask the gate from then on; it stays
	// closed until the lease is held.
	gate := leader.NewGate()
	process.SetLeader(gate)

	done, err := useBuiltin(opts)
	if err != nil {
		return err
	}
	cc, sched, err := app.Setup(ctx, opts, plugins()...)
	done()
	if err != nil {
		return err
	}
	if err := checkConfiguration(&cc.ComponentConfig, effectivePlugins(sched)); err != nil {
		return err
	}
	followLease(cc.LeaderElection, gate)

	utilfeature.DefaultMutableFeatureGate.AddMetrics()
	opts.ComponentGlobalsRegistry.AddMetrics()
	return app.Run(ctx, cc, sched)
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
