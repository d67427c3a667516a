package main

import (
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/paddock-scheduler/paddock/pkg/plugins/podgroups"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
)

// plugins returns the plugins that a configuration may enable besides upstream's.
// Coscheduling starts the pods of a PodGroup together. Without the definition of
// PodGroups it cannot be made, so only with-podgroups.yaml enables it.
func plugins() []app.Option {
	return []app.Option{
		app.WithPlugin(queuesort.Name, queuesort.New),
		app.WithPlugin(preemption.Name, preemption.New),
		app.WithPlugin(reservation.Name, reservation.New),
		app.WithPlugin(podgroups.Name, podgroups.New),
	}
}
