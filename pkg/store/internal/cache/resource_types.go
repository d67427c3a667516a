package cache

import (
	"fmt"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
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
type ResourceTypes struct {
	counted map[string]struct{}
	// partly has the pods that request types that do not count.
	partly map[types.UID]*objects.Pod
}

// MostTypes is how many types a pod may request, in addition to pods.
const MostTypes = 64

// NewResourceTypes returns the usual types.
func NewResourceTypes() ResourceTypes {
	t := ResourceTypes{counted: map[string]struct{}{}, partly: map[types.UID]*objects.Pod{}}
	for _, name := range []string{resources.CPU, resources.Memory, resources.Pods, "ephemeral-storage"} {
		t.counted[name] = struct{}{}
	}
	return t
}

func (t *ResourceTypes) counts(name string) bool {
	_, counted := t.counted[name]
	return counted
}

// Split moves the types that do not count from Request to Uncounted, and back those that
// do.
func (t *ResourceTypes) Split(p *objects.Pod) {
	full := p.Request.Add(p.Uncounted)
	p.Request, p.Uncounted = full, resources.Vector{}
	for name := range full.All() {
		if !t.counts(name) {
			p.Request, p.Uncounted = full.Split(t.counts)
			return
		}
	}
}

// Add makes types count. It returns the pods that request any of the new types, sorted.
func (t *ResourceTypes) Add(names iter.Seq[string]) []types.UID {
	grown := false
	for name := range names {
		if !t.counts(name) {
			t.counted[name], grown = struct{}{}, true
		}
	}
	if !grown {
		return nil
	}
	var out []types.UID
	for uid, p := range t.partly {
		for name := range p.Uncounted.All() {
			if t.counts(name) {
				out = append(out, uid)
				break
			}
		}
	}
	slices.Sort(out)
	return out
}

// Note takes over an event of a pod. Its request was split.
func (t *ResourceTypes) Note(p *objects.Pod) {
	if p.Uncounted.IsZero() {
		delete(t.partly, p.UID)
	} else {
		t.partly[p.UID] = p
	}
}

// Forget removes a pod that is gone.
func (t *ResourceTypes) Forget(uid types.UID) { delete(t.partly, uid) }

// Check verifies that the requests of all pods have types that count and no others.
func (t *ResourceTypes) Check(pods iter.Seq[*objects.Pod]) error {
	partly := 0
	for p := range pods {
		if err := t.checkRequest(p); err != nil {
			return err
		}
		if p.Uncounted.IsZero() {
			continue
		}
		if partly++; t.partly[p.UID] != p {
			return fmt.Errorf("pod %s/%s requests types that do not count, and is not listed", p.Namespace, p.Name)
		}
	}
	if partly != len(t.partly) {
		return fmt.Errorf("%d pods request types that do not count, %d are listed", partly, len(t.partly))
	}
	return nil
}

// checkRequest verifies that a pod is charged exactly for the types that count.
func (t *ResourceTypes) checkRequest(p *objects.Pod) error {
	for name := range p.Request.All() {
		if !t.counts(name) {
			return fmt.Errorf("pod %s/%s is charged %s, which does not count", p.Namespace, p.Name, name)
		}
	}
	for name := range p.Uncounted.All() {
		if t.counts(name) {
			return fmt.Errorf("pod %s/%s requests %s, which counts, and is not charged for it", p.Namespace, p.Name, name)
		}
	}
	return nil
}

// TypesOf yields the types that a configuration names.
func TypesOf(spec *config.Spec) iter.Seq[string] {
	return func(yield func(string) bool) { typesOfQueue(spec.Root, yield) }
}

func typesOfQueue(q *config.Queue, yield func(string) bool) bool {
	ok := yieldNames(q.Guaranteed, q.Max, yield)
	if q.Template != nil {
		ok = ok && yieldNames(q.Template.Guaranteed, q.Template.Max, yield)
	}
	for i := range q.Limits {
		ok = ok && yieldNames(resources.Guarantee{}, q.Limits[i].MaxResources, yield)
	}
	for _, child := range q.Children {
		ok = ok && typesOfQueue(child, yield)
	}
	return ok
}

// yieldNames yields the types named by a guarantee or a max.
func yieldNames(g resources.Guarantee, m resources.Limit, yield func(string) bool) bool {
	for name := range g.All() {
		if !yield(name) {
			return false
		}
	}
	for name := range m.All() {
		if !yield(name) {
			return false
		}
	}
	return true
}

// TypesOfQuota yields the types that the quota of a namespace names; none for nil.
func TypesOfQuota(q *queues.NamespaceQuota) iter.Seq[string] {
	return func(yield func(string) bool) {
		if q != nil {
			yieldNames(q.Guaranteed, q.Max, yield)
		}
	}
}

// TypesIn yields the types of a vector.
func TypesIn(v resources.Vector) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range v.All() {
			if !yield(name) {
				return
			}
		}
	}
}

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
