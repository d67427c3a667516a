package store

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// placeAll tries to place every pod that has no queue: running pods first, because they
// use resources whether they fit or not, then by age.
func (s *Store) placeAll(now time.Time) {
	all := slices.SortedFunc(maps.Values(s.unplaced), func(a, b *pod) int {
		return cmp.Or(
			-cmp.Compare(min(len(a.Node), 1), min(len(b.Node), 1)),
			a.Created.Compare(b.Created),
			cmp.Compare(a.UID, b.UID),
		)
	})
	for _, p := range all {
		s.place(p, now)
	}
	if len(s.unplaced) == 0 {
		s.unplaced = map[types.UID]*pod{} // maps do not shrink, and at Start it had all pods
	}
}

// place gives an unplaced pod its application and queue, or the reason why it has none.
func (s *Store) place(p *pod, now time.Time) {
	defer s.tally(p)
	defer s.heardDemand(p)
	if p.Gated && p.Node == "" {
		p.reason = reasons.Brief(reasons.SchedulingGated) // it is placed when its gates are removed
		return
	}
	if why := unbearable(p.Pod); !why.None() && p.Node == "" {
		s.refuse(p, why)
		return
	}
	a, gang, reason := s.appFor(p)
	if a == nil {
		s.refuse(p, reason)
		return
	}
	delete(s.unplaced, p.UID)
	s.join(a, p)
	if p.Node != "" {
		s.toAllocated(p, bound, p.Node)
		s.atWork(p, now)
		return
	}
	p.reason, p.failed = reasons.Reason{}, nil
	s.toWaiting(p)
	s.arm(p, now)
	switch {
	case gang == placement.GangSoft:
		s.reports.warn(p, reasons.SoftGangIgnored, now)
	case p.Labels[PodGroupLabel] != "" && !s.together.follows:
		s.reports.warn(p, reasons.PodGroupIgnored, now)
	}
}

// unbearable returns why a pod's request cannot be charged; none if it can.
func unbearable(p *objects.Pod) reasons.Reason {
	if why := tooManyTypes(p); !why.None() {
		return why
	}
	return tooLarge(p.Request)
}

// tooLarge returns which part of a request is too large; none if all is fine.
func tooLarge(request resources.Vector) reasons.Reason {
	for name, amount := range request.All() {
		if amount >= objects.MaxRequest {
			return reasons.New(reasons.RequestTooLarge, "the pod requests %s or more of %s",
				resources.Format(name, objects.MaxRequest), name)
		}
	}
	return reasons.Reason{}
}

// appFor finds or creates the application of a pod, and its queue if that is missing. It
// also returns which gang the pod asks for.
func (s *Store) appFor(p *pod) (*app, placement.Gang, reasons.Reason) {
	id, reason := placement.Identify(placementOf(p.Pod), s.options.Placement)
	if reason.None() && p.Node == "" {
		reason = s.keepBack(p, id)
	}
	if !reason.None() && p.Node == "" {
		return nil, id.Gang, reason
	}
	a, reason := s.appOf(p, id)
	return a, id.Gang, reason
}

func (s *Store) appOf(p *pod, id placement.Identity) (*app, reasons.Reason) {
	running := p.Node != ""
	name := appName{namespace: p.Namespace, id: id.Application}
	if id.Shared {
		name.queue = id.Queue // the pod's own queue counts, not that of another pod
	}
	if a := s.joinable(name, running); a != nil {
		return a, reasons.Reason{}
	}
	ns := s.namespaces[p.Namespace]
	result, reason := placement.Place(s.spec.Rules, placement.Request{
		Identity:  id,
		Namespace: placement.Namespace{Name: p.Namespace, Annotations: ns.annotations},
		Running:   running,
	}, tree{s.draft})
	if !reason.None() {
		return nil, reason
	}
	leaf, err := s.draft.AddDynamic(result.Path)
	if err != nil {
		return nil, reasons.New(reasons.PlacementRuleFailed, "rule %s: %v", result.Rule, err)
	}
	if ns.quota != nil {
		s.draft.SetNamespaceQuota(leaf, p.Namespace, ns.quota)
		s.reconsider[leaf] = struct{}{}
	}
	s.indexPath(leaf)
	if a := s.rejoin(leaf, name); a != nil {
		return a, reasons.Reason{}
	}
	return s.newApp(name, leaf, id.User.Name, id.User.Groups, p.Created), reasons.Reason{}
}

// tree adapts the draft to package placement.
type tree struct{ *queues.Draft }

// Queue returns what placement needs to know about a queue.
func (t tree) Queue(path string) (placement.QueueInfo, bool) {
	q, ok := t.Find(path)
	if !ok {
		return placement.QueueInfo{}, false
	}
	return placement.QueueInfo{Leaf: q.Leaf, Managed: q.Managed, Draining: q.State == queues.Draining}, true
}

// MaySubmit tells whether the user may submit to an existing queue.
func (t tree) MaySubmit(path, user string, groups []string) bool {
	q, ok := t.Find(path)
	return ok && queues.MaySubmit(t.Draft, q.ID, user, groups)
}
