package main

import (
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"sigs.k8s.io/scheduler-plugins/pkg/coscheduling"

	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
)

// plugins returns the plugins that a configuration may enable besides upstream's.
// Coscheduling gives PodGroups; it needs their CRD, so no shipped profile enables
// it.
func plugins() []app.Option {
	return []app.Option{
		app.WithPlugin(queuesort.Name, queuesort.New),
		app.WithPlugin(preemption.Name, preemption.New),
		app.WithPlugin(reservation.Name, reservation.New),
		app.WithPlugin(coscheduling.Name, coscheduling.New),
	}
}
