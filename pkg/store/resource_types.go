package store

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// resourceTypes are the resource types that count: those that a node offers, that a
// queue, a limit or a namespace names, and the usual ones. Pods can name any type, so all
// other types are not charged and not in plans; [Pod.Uncounted] has a pod's request of
// them.
//
//	a pod names a type ─► not counted ──────────────────────► counted
//	                         a node comes that offers it, or      (as long as the
//	                         a quota that names it                 process runs)
//
// A type that counts does so as long as the process runs. So a node that goes and comes
// back changes nothing, and the number of types is bounded by what nodes and
// administrators named.
type resourceTypes struct {
	counted map[string]struct{}
	// partly has the pods that request types that do not count.
	partly map[types.UID]*pod
}

// mostTypes is how many types a pod may request, in addition to pods.
const mostTypes = 64

func newResourceTypes() resourceTypes {
	t := resourceTypes{counted: map[string]struct{}{}, partly: map[types.UID]*pod{}}
	for _, name := range []string{resources.CPU, resources.Memory, resources.Pods, "ephemeral-storage"} {
		t.counted[name] = struct{}{}
	}
	return t
}

func (t *resourceTypes) counts(name string) bool {
	_, counted := t.counted[name]
	return counted
}

// split moves the types that do not count from Request to Uncounted.
func (t *resourceTypes) split(p *objects.Pod) {
	full := p.Request.Add(p.Uncounted)
	p.Request, p.Uncounted = full, resources.Vector{}
	for name := range full.All() {
		if !t.counts(name) {
			p.Request, p.Uncounted = full.Split(t.counts)
			return
		}
	}
}

// add makes types count. It returns the pods that request any of the new types, by UID.
func (t *resourceTypes) add(names func(yield func(string) bool)) []*pod {
	grown := false
	for name := range names {
		if !t.counts(name) {
			t.counted[name], grown = struct{}{}, true
		}
	}
	if !grown {
		return nil
	}
	var out []*pod
	for _, p := range t.partly {
		for name := range p.Uncounted.All() {
			if t.counts(name) {
				out = append(out, p)
				break
			}
		}
	}
	slices.SortFunc(out, func(a, b *pod) int { return cmp.Compare(a.UID, b.UID) })
	return out
}

// note updates partly after an event.
func (t *resourceTypes) note(p *pod) {
	if p.Uncounted.IsZero() {
		delete(t.partly, p.UID)
	} else {
		t.partly[p.UID] = p
	}
}

// forget removes a pod that is gone.
func (t *resourceTypes) forget(p *pod) { delete(t.partly, p.UID) }

// check verifies that requests have types that count and no others.
func (t *resourceTypes) check(pods map[types.UID]*pod) error {
	partly := 0
	for _, p := range pods {
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
func (t *resourceTypes) checkRequest(p *pod) error {
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

// typesOf yields the types named by a configuration.
func typesOf(spec *config.Spec) func(yield func(string) bool) {
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

// typesOfQuota yields the types named by the annotations of a namespace.
func typesOfQuota(q *queues.NamespaceQuota) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if q != nil {
			yieldNames(q.Guaranteed, q.Max, yield)
		}
	}
}

// typesIn yields the types of a vector.
func typesIn(v resources.Vector) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name := range v.All() {
			if !yield(name) {
				return
			}
		}
	}
}

// countTypes makes types count from now on, for all pods.
func (s *Store) countTypes(names func(yield func(string) bool), now time.Time) {
	for _, p := range s.resourceTypes.add(names) {
		s.splitAgain(p, now)
	}
}

// splitAgain charges a pod for types that have begun to count, as if an event had added
// them to its request.
func (s *Store) splitAgain(p *pod, now time.Time) {
	if late := p.late; late != nil {
		event := *late
		s.resourceTypes.split(&event)
		p.late = &event
	}
	event := *p.Pod
	s.resourceTypes.split(&event)
	if p.Foreign || !p.state.allocated() {
		s.upsert(&event, now)
		return
	}
	said := event
	event.Node, event.Deleting = p.Node, p.Deleting
	s.resize(p, &event, now)
	p.Pod = &said // without the assumed node, which no event has
}

// tooManyTypes returns an error reason if a pod requests too many types; none otherwise.
func tooManyTypes(p *objects.Pod) reasons.Reason {
	if n := p.Request.Len() + p.Uncounted.Len() - 1; n > mostTypes {
		return reasons.New(reasons.TooManyResourceTypes, "the pod requests %d types of resources, and at most %d are allowed", n, mostTypes)
	}
	return reasons.Reason{}
}

// notOffered returns a reason if a pod requests a type that no node offers; none
// otherwise. Such a pod gets no plan, because it cannot run on any node.
func notOffered(p *objects.Pod) reasons.Reason {
	for name := range p.Uncounted.All() {
		return reasons.New(reasons.PreemptionRefused, "no node offers %s, so no pod that goes makes room for this one", name)
	}
	return reasons.Reason{}
}

// fits tells whether there is room for what a pod requests.
func fits(p *objects.Pod, room resources.Vector) bool {
	return p.Uncounted.IsZero() && room.Covers(p.Request)
}
