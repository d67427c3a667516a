package cache

import (
	"fmt"
	"iter"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// ResourceTypes are the resource types that count: those that a node offers, that a
// queue, a limit or a namespace names, and the usual ones. Pods can name any type, so all
// other types are not charged and not in plans; [objects.Pod.Uncounted] has a pod's request of
// them.
//
//	a pod names a type ─► not counted ──────────────────────► counted
//	                         a node comes that offers it, or      (as long as the
//	                         a quota that names it                 process runs)
//
// A type that counts does so as long as the process runs. So a node that goes and comes
// back changes nothing, and the number of types is bounded by what nodes and
// administrators named.
//
// Make one with NewResourceTypes.
type ResourceTypes map[string]bool

// MostTypes is how many types a pod may request, in addition to pods.
const MostTypes = 64

// NewResourceTypes returns the usual types.
func NewResourceTypes() ResourceTypes {
	return ResourceTypes{resources.CPU: true, resources.Memory: true, resources.Pods: true, "ephemeral-storage": true}
}

// Split moves the types that do not count from Request to Uncounted, and back those that
// do.
func (t ResourceTypes) Split(p *objects.Pod) {
	p.Request, p.Uncounted = p.Request.Add(p.Uncounted).Split(func(name string) bool { return t[name] })
}

// Add makes types count. It tells whether any of them did not before.
func (t ResourceTypes) Add(names []string) (grown bool) {
	for _, name := range names {
		grown = grown || !t[name]
		t[name] = true
	}
	return grown
}

// IsSplit tells whether no type that counts is in the Uncounted of a pod.
func (t ResourceTypes) IsSplit(p *objects.Pod) bool {
	for name := range p.Uncounted.All() {
		if t[name] {
			return false
		}
	}
	return true
}

// Check verifies that a pod is charged exactly for the types that count.
func (t ResourceTypes) Check(p *objects.Pod) error {
	for name := range p.Request.All() {
		if !t[name] {
			return fmt.Errorf("is charged %s, which does not count", name)
		}
	}
	if !t.IsSplit(p) {
		return fmt.Errorf("is not charged for all of %v, and a type of these counts", p.Uncounted)
	}
	return nil
}

// TypesOf lists the types that a configuration names.
func TypesOf(spec *config.Spec) (out []string) {
	for q := range spec.Root.All() {
		out = appendTypes(out, q.Guaranteed.All(), q.Max.All())
		if q.Template != nil {
			out = appendTypes(out, q.Template.Guaranteed.All(), q.Template.Max.All())
		}
		for i := range q.Limits {
			out = appendTypes(out, q.Limits[i].MaxResources.All())
		}
	}
	return out
}

// appendTypes appends the names of amounts to a list.
func appendTypes(out []string, from ...iter.Seq2[string, resources.Amount]) []string {
	for _, all := range from {
		for name := range all {
			out = append(out, name)
		}
	}
	return out
}

// TypesOfQuota lists the types that the quota of a namespace names; none for nil.
func TypesOfQuota(q *config.Quota) []string {
	if q == nil {
		return nil
	}
	return appendTypes(nil, q.Guaranteed.All(), q.Max.All())
}

// TypesIn lists the types of a vector.
func TypesIn(v resources.Vector) []string { return appendTypes(nil, v.All()) }

// Chargeable returns why the request of a pod cannot be charged; none if it can: it has too
// many types, or too much of one.
func Chargeable(p *objects.Pod) reasons.Reason {
	if n := p.Request.Len() + p.Uncounted.Len() - 1; n > MostTypes {
		return reasons.New(reasons.TooManyResourceTypes, "the pod requests %d types of resources, and at most %d are allowed", n, MostTypes)
	}
	for name, amount := range p.Request.All() {
		if amount >= objects.MaxRequest {
			return reasons.New(reasons.RequestTooLarge, "the pod requests %s or more of %s",
				resources.Format(name, objects.MaxRequest), name)
		}
	}
	return reasons.Reason{}
}

// NotOffered returns a reason if a pod requests a type that no node offers; none
// otherwise. Such a pod gets no plan, because it cannot run on any node.
func NotOffered(p *objects.Pod) reasons.Reason {
	for name := range p.Uncounted.All() {
		return reasons.New(reasons.PreemptionRefused, "no node offers %s, so no pod that goes makes room for this one", name)
	}
	return reasons.Reason{}
}

// Fits tells whether there is room for what a pod requests.
func Fits(p *objects.Pod, room resources.Vector) bool {
	return p.Uncounted.IsZero() && room.Covers(p.Request)
}
