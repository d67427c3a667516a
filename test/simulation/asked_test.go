package simulation_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// unasked finds a waiting pod of a queue for which the laws allow a preemption: at rest
// the asker has been tried as often as needed, and no such plan exists any more. The
// snapshot is that of judge, made of the calls to the store. The plan need not be the best
// one. With PodGroups nothing is judged, because there are always some pods at Permit.
// The caller holds the lock.
func (s *simulation) unasked(in *instance, pod *corev1.Pod) error {
	never := pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever
	if s.settings.groups || s.requestsInvented(pod) || s.pauses(in, pod) || pod.Spec.SchedulerName != managed || !pending(pod) || len(pod.Spec.SchedulingGates) > 0 || never {
		return nil
	}
	w := in.interceptor
	w.mu.Lock()
	defer w.mu.Unlock()
	ask, known := w.pods[pod.UID]
	spec := w.Spec()
	if !known {
		return nil
	}
	for _, queue := range ancestors(pod.Labels[placement.KeyQueue]) {
		if s.removed[queue] {
			return nil
		}
	}
	if ask.RequiredNode != "" {
		return s.unaskedThere(in, pod, &ask)
	}
	used := in.running(spec)
	if s.addRan(used); !spec.PreemptionEnabled || used.refuses(claimantOf(&ask), exceptMax) != "" {
		return nil // it makes room below max only
	}
	snapshot, d, err := w.snapshot(&ask, &reservations.Hold{}, nil, nil, spec)
	if errors.Is(err, errSkipped) {
		return nil
	}
	if err != nil {
		return err
	}
	s.count(asked)
	for i, n := range snapshot.Nodes {
		for _, p := range n.Pods {
			p.Protection = w.protects(p)
		}
		snapshot.Nodes[i] = planner.NewNode(n.Name, n.Allocatable, n.Free, n.Pods)
	}
	holds, only := w.Holds(), onlyNode(pod)
	d = search.Plan(snapshot, d.Ask, planner.Params{StrictGuarantee: w.Preemption().StrictGuarantee, Barred: func(name string) bool {
		n := s.api.node(name)
		return n == nil || only != "" && only != name || n.Spec.Unschedulable || refuses(n, pod) || !holds.MayJoin(name, pod.UID).OK || !holds.MayUse(name, reservations.Pod{UID: pod.UID, Namespace: pod.Namespace}).OK || !s.nominatedBefore(pod, name).IsZero() || s.hauntedByUpstream(in, name)
	}})
	if d.Outcome != planner.Preempt {
		return nil // a pod that may not preempt holds no node on which pods terminate
	}
	return fmt.Errorf("others could be preempted for it: %s; nominated there: %v", d, in.namesNominated(d.Node))
}

// protects is the protection of a pod that may have been refused to be deleted: for how
// long it is then no victim is not judged.
func (w *interceptor) protects(p *planner.Pod) planner.Protection {
	if w.tooLarge[types.UID(p.UID)].IsZero() {
		return p.Protection
	}
	return planner.Refused
}

// nominatedBefore is the room on a node that filters keep for pods that upstream's
// preemption has nominated there and that have precedence over this pod. The caller holds
// the lock.
func (s *simulation) nominatedBefore(pod *corev1.Pod, node string) resources.Vector {
	return s.api.used(func(p *corev1.Pod) bool {
		return p.UID != pod.UID && p.Spec.SchedulerName == plain && pending(p) && p.Status.NominatedNodeName == node && *p.Spec.Priority >= *pod.Spec.Priority
	})
}

// unaskedThere does the same for a pod of a DaemonSet. Its node may be held for it as
// long as no pod there can be preempted. The callers hold both locks.
func (s *simulation) unaskedThere(in *instance, pod *corev1.Pod, ask *objects.Pod) error {
	w, n := in.interceptor, s.api.node(ask.RequiredNode)
	if n == nil || n.Spec.Unschedulable || refuses(n, pod) || s.settings.leave && ask.Namespace == evil {
		return nil
	}
	for _, h := range w.Holds().All() {
		if h.Node == n.Name && h.NodeBound && h.Asker != ask.UID {
			return nil // the pods of one node may take turns
		}
	}
	used := in.running(s.lastValid.spec)
	if s.addRan(used); !s.mayRun(claimantOf(ask), used) {
		return nil
	}
	s.count(asked)
	p := portrait{interceptor: w}
	there := &daemonset.Node{Name: n.Name, Types: kinds, Allocatable: amounts(w.nodes[n.Name])}
	for _, m := range w.mirror() {
		if m.Node == n.Name {
			there.Pods = append(there.Pods, daemonset.Pod{Pod: &planner.Pod{
				UID: string(m.UID), Namespace: m.Namespace, Name: m.Name, Request: amounts(m.Request), Priority: m.Priority, Created: m.Created, Protection: p.protection(&m),
			}, Peer: m.Peer})
		}
	}
	tooSlow := strings.Contains(w.Explain(ask.UID).Text, string(planner.RuleTooSlow)) // judgeOwnTimes judges the other direction
	for _, p := range there.Pods {
		p.Protection = w.protects(p.Pod)
		if tooSlow && p.Namespace == ask.Namespace {
			p.Protection = planner.TooSlow
		}
	}
	d := daemonset.Plan(there, &daemonset.Ask{
		Ask:  &planner.Ask{UID: string(ask.UID), Namespace: ask.Namespace, Name: ask.Name, Request: amounts(ask.Request), Priority: ask.Priority},
		Held: time.Hour,
	}, w.Preemption().NodeBoundParams)
	if d.Outcome != planner.Preempt {
		return nil
	}
	return fmt.Errorf("others could be preempted for it: %s", d)
}
