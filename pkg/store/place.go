package store

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
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
	defer s.history.tally(p)
	defer s.heardDemand(p)
	if p.Gated && p.Node == "" {
		p.reason = reasons.Brief(reasons.SchedulingGated) // it is placed when its gates are removed
		return
	}
	if why := cache.Chargeable(p.Pod); !why.None() && p.Node == "" {
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
		s.toAllocated(p, state.Bound, p.Node)
		s.atWork(p, now)
		return
	}
	p.reason, p.failed = reasons.Reason{}, nil
	s.toWaiting(p)
	s.arm(p, now)
	switch {
	case gang == placement.GangSoft:
		s.history.warn(p, reasons.SoftGangIgnored, now)
	case p.Labels[PodGroupLabel] != "" && !s.pending.Groups.Followed:
		s.history.warn(p, reasons.PodGroupIgnored, now)
	}
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
	name := cache.AppName{Namespace: p.Namespace, ID: id.Application}
	if id.Shared {
		name.Queue = id.Queue // the pod's own queue counts, not that of another pod
	}
	if a := s.apps.Joinable(s.cache.Tree(), name, running); a != nil {
		return a, reasons.Reason{}
	}
	quota := s.cache.Namespaces[p.Namespace].Quota
	result, reason := placement.Place(s.cache.Spec.Rules, placement.Request{
		Identity:  id,
		Namespace: s.cache.Namespaces.Of(p.Namespace),
		Running:   running,
	}, tree{s.cache.Tree()})
	if !reason.None() {
		return nil, reason
	}
	if reason := s.options.DynamicQueues.Admit(s.cache.Tree(), result.Path, p.Namespace); !running && !reason.None() {
		return nil, reason
	}
	leaf, err := s.cache.Tree().AddDynamic(result.Path, p.Namespace)
	if err != nil {
		return nil, reasons.New(reasons.PlacementRuleFailed, "rule %s: %v", result.Rule, err)
	}
	if quota != nil {
		s.cache.Tree().SetNamespaceQuota(leaf, p.Namespace, quota)
		s.pending.MoreRoom(leaf)
	}
	s.indexPath(leaf)
	if a := s.apps.Rejoin(leaf, name); a != nil {
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

// countTypes makes types count from now on, for all pods.
func (s *Store) countTypes(names iter.Seq[string], now time.Time) {
	for _, uid := range s.cache.Types.Add(names) {
		s.splitAgain(s.pods[uid], now)
	}
}

// splitAgain charges a pod for types that have begun to count, as if an event had added
// them to its request.
func (s *Store) splitAgain(p *pod, now time.Time) {
	if late := p.late; late != nil {
		event := *late
		s.cache.Types.Split(&event)
		p.late = &event
	}
	event := *p.Pod
	s.cache.Types.Split(&event)
	if p.Foreign || !p.state.HasNode() {
		s.upsert(&event, now)
		return
	}
	said := event
	event.Node, event.Deleting = p.Node, p.Deleting
	s.resize(p, &event, now)
	p.Pod = &said // without the assumed node, which no event has
}
