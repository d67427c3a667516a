package model

import (
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
)

// Identify returns the identity of a pod, or why it has none.
func (x *Model) Identify(p *objects.Pod) (placement.Identity, reasons.Reason) {
	return placement.Identify(placement.Pod{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID),
		Labels: p.Labels, Annotations: p.Annotations,
	}, x.Options.GenerateUniqueAppID)
}

// Rules returns where the placement rules put a pod of an identity.
func (x *Model) Rules(p *Pod, id placement.Identity) (placement.Result, reasons.Reason) {
	return placement.Place(x.Cache.Spec.Rules, placement.Request{
		Identity: id, Namespace: x.Cache.Namespaces.Of(p.Namespace), Running: p.Node != "",
	}, x.Cache.Tree())
}

// AppName is the name of the application of a pod. The pods of a namespace without an ID of
// their own share one for each queue that they name.
func AppName(p *Pod, id placement.Identity) cache.AppName {
	name := cache.AppName{Namespace: p.Namespace, ID: id.Application}
	if id.Shared {
		name.Queue = id.Queue
	}
	return name
}
