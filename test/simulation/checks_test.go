package simulation_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// check runs, after every step, the invariants that hold at all times.
func (s *simulation) check() error {
	errs := []error{s.wrong()}
	for _, in := range s.instances {
		if err := in.store().Check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", in.name, err))
		}
		errs = append(errs, in.checkTypes(), in.checkQueues())
	}
	return errors.Join(errs...)
}

// judgeBind finds a bind that overcommits the node, or takes a queue over its max. Facts that the
// process could not know when the cycle of the pod began do not count. It tells whether the process may
// take the pod for a smaller one until it sees the bind, because upstream's cache ignores changes of a
// pod that is about to be bound. The caller holds the lock of the API server.
func (s *simulation) judgeBind(in *instance, pod *corev1.Pod, node string) (smaller bool) {
	began, ask := in.tried[pod.UID].knew, request(pod)
	n := s.api.node(node)
	knew := min(began[s.api.pods], began[s.api.nodes])
	s.judgeMinMember(in, pod, began)
	judged := bound
	defer func() { s.count(judged) }()
	switch {
	case s.api.surprised(in, pod.Name, knew):
		judged = unbound
		return true
	case s.api.surprised(in, node, knew):
		judged = unbound
	case n == nil:
		s.fault("%s binds %s to node %s, which is not there", in.name, pod.Name, node)
	default:
		if free := informer.Allocatable(n).Sub(s.api.usedOn(node)); !free.Covers(ask) {
			s.fault("%s binds %s to node %s, which has no room: %v of %v are free", in.name, pod.Name, node, free, informer.Allocatable(n))
		}
	}
	if pod.Spec.SchedulerName != managed {
		return false
	}
	if in.missed || s.api.surprised(in, touchedConfig, began[s.api.configs]) {
		judged = unbound
		return false
	}
	used := in.running(s.lastValid.spec).used // an invalid configuration changes nothing
	for _, q := range in.claimant(pod).quotas(s.lastValid.spec) {
		switch {
		case s.removed[q.queue] || s.api.surprised(in, q.queue, knew):
			judged = unbound
		case !q.max.Allows(used[q.of], ask):
			s.fault("%s binds %s, which requests %v: %s uses %v of %v", in.name, pod.Name, ask, q.of, used[q.of], q.max)
		}
	}
	return false
}

// judgeClaim finds a pod that is about to hold a node without victims although it can run elsewhere.
func (s *simulation) judgeClaim(in *instance, pod *corev1.Pod, c *corev1.PodCondition) {
	if c.Type != reservations.HeldCondition || c.Status != corev1.ConditionTrue || s.onceRequired(pod.UID) != "" {
		return
	}
	if claim, err := reservations.ParseClaim(c.Message); err != nil || len(claim.Victims) == 0 {
		s.fault("%s holds node %s for %s, and no pod was chosen to go for it (%v)", in.name, claim.Node, pod.Name, err)
	}
}

// judgeDelete finds the deletion of a pod without a decision.
func (s *simulation) judgeDelete(in *instance, pod *corev1.Pod) {
	w := in.interceptor
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, decided := w.due[pod.UID]; !decided && pod.DeletionTimestamp == nil {
		s.fault("%s deletes %s, about which there is no decision", in.name, pod.Name)
	}
	w.judgeTaint(pod)
}

func (in *instance) store() *store.Store { return in.interceptor.Store }

// recount compares the usage of a process with the pods that exist.
func (in *instance) recount() error {
	var listed []objects.Pod
	for _, pod := range in.api.allPods() {
		if pod.Spec.SchedulerName == managed {
			listed = append(listed, informer.Translate(pod, requests))
		}
	}
	errs := []error{in.store().CompareWith(listed)}
	for queue := range in.store().Snapshot().All() {
		if in.sim.removed[queue.Path] {
			continue // pods that name it may be in another queue by now
		}
		if used := in.usedBelow(queue.Path).Add(in.givenBelow(queue.Path)); !queue.IsRoot() && !used.Equal(queue.Allocated) {
			errs = append(errs, fmt.Errorf("queue %s: the books say %v, its pods use %v", queue.Path, queue.Allocated, used))
		}
	}
	return errors.Join(errs...)
}

// givenBelow is the requests of a queue's pods that the process has given a node and that are not bound
// yet. With PodGroups there are always some at Permit. The caller holds the lock.
func (in *instance) givenBelow(queue string) resources.Vector {
	in.interceptor.mu.Lock()
	defer in.interceptor.mu.Unlock()
	var given resources.Vector
	for _, pod := range in.api.allPods() {
		p, placed := in.interceptor.placed[pod.UID]
		if placed && pending(pod) && slices.Contains(ancestors(p.Labels[placement.KeyQueue]), queue) {
			given = given.Add(p.Request)
		}
	}
	return given
}

// claims compares the holders of a node with the conditions on pods.
func (s *simulation) claims(in *instance) []complaint {
	var all []complaint
	holds := in.store().Holds()
	for _, h := range holds.All() {
		if s.settings.groups && time.Since(h.Since) < 2*reservationTimeout*time.Second {
			continue // a plan of a PodGroup that is about to be aborted
		}
		if !h.NodeBound || !h.Patient {
			err := fmt.Errorf("%s: %s holds node %s still, since %v", in.name, h.Name, h.Node, h.Since)
			all = append(all, complaint{what: "hold of " + h.Name, err: err})
		}
	}
	for _, pod := range s.api.allPods() {
		_, held := holds.Of(pod.UID)
		written := isTrue(pod, reservations.HeldCondition)
		_, large := pod.Annotations[sizeKey] // the condition could not be written, which is final
		if written != held && !ended(pod) && pod.DeletionTimestamp == nil && !large {
			err := fmt.Errorf("pod %s: it says that it holds a node: %v; it does: %v", pod.Name, written, held)
			all = append(all, complaint{what: "claim of " + pod.Name, err: err})
		}
	}
	return all
}

// nominations finds room that the scheduler keeps on a node for a pod of a queue that
// does not hold the node. The caller holds the lock.
func (s *simulation) nominations(in *instance) []complaint {
	var all []complaint
	holds := in.store().Holds()
	for _, n := range s.api.allNodes() {
		for _, nominated := range in.nominated(n.Name) {
			pod := s.current(nominated.GetPod())
			if h, held := holds.Of(pod.UID); pod.Spec.SchedulerName == managed && (!held || h.Node != n.Name) {
				err := fmt.Errorf("%s: room is kept on node %s for %s, which does not hold it", in.name, n.Name, pod.Name)
				// The next cycle of the pod decides anew, so only a pod without a next
				// cycle keeps the nomination.
				all = append(all, complaint{what: fmt.Sprint("nomination of ", pod.Name, ", tried ", in.tried[pod.UID].began), err: err})
			}
		}
	}
	return all
}

// forgotten finds a pod that could run and does not. The caller holds the lock.
func (s *simulation) forgotten(in *instance, pod *corev1.Pod) error {
	if !pending(pod) || len(pod.Spec.SchedulingGates) > 0 || pod.Spec.SchedulerName == alien {
		return nil
	}
	if pod.Spec.SchedulerName == managed {
		if in.store().Explain(pod.UID).None() {
			return errors.New("it waits without a reason")
		}
		if name := groupOf(pod); s.apart(pod) {
			if s.tried(in, name) && s.outOfStep(name) && s.triedLately(in, name) {
				return nil
			}
			return s.couldStart(in, name)
		}
		used := in.running(s.document.spec)
		if s.addRan(used); !s.mayRun(claimantPod(pod), used) {
			return nil
		}
	}
	backsOff := pod.Spec.SchedulerName != managed || in.store().Explain(pod.UID).Code == reasons.BackingOff
	if backsOff && s.outOfStep(types.NamespacedName{}) && in.lately(pod) || s.awaitsVictim(pod) {
		return nil
	}
	required, only := s.requiredNode(pod), onlyNode(pod)
	for _, n := range s.api.allNodes() {
		asks := reservations.Pod{UID: pod.UID, Namespace: pod.Namespace, Required: required == n.Name}
		switch {
		case only != "" && n.Name != only, n.Spec.Unschedulable && only == "", refuses(n, pod):
		case !in.store().Holds().MayUse(n.Name, asks).OK:
		case !informer.Allocatable(n).Sub(s.api.usedOn(n.Name)).Sub(s.nominatedBefore(pod, n.Name)).
			Sub(keptFrom(in.store().Holds(), asks, n.Name)).Covers(request(pod)):
		case s.hauntedByUpstream(in, n.Name):
		default:
			return fmt.Errorf("node %s could take it; nominated there: %v", n.Name, in.namesNominated(n.Name))
		}
	}
	return nil
}

// keptFrom is what the holds of a node that keep only their requests keep from a pod, at most.
func keptFrom(holds *reservations.View, pod reservations.Pod, node string) (kept resources.Vector) {
	for _, h := range holds.Keeping(node, pod) {
		kept = kept.Add(h.Request)
	}
	return kept
}

// awaitsVictim tells whether upstream's preemption has made room for a pod that is not free yet. While
// it makes its calls, the scheduler's queue does not take the pod back: an event for another node at
// that time is lost, and the next one is the end of the last victim. The caller holds the lock.
func (s *simulation) awaitsVictim(pod *corev1.Pod) bool {
	return pod.Spec.SchedulerName == plain && slices.ContainsFunc(s.api.allPods(), func(p *corev1.Pod) bool {
		return p.Spec.NodeName != "" && p.Spec.NodeName == pod.Status.NominatedNodeName && p.DeletionTimestamp != nil && !ended(p)
	})
}

// current is a nominated pod as it is now: the scheduler has only the names of pods that
// are deleted. The caller holds the lock.
func (s *simulation) current(nominated *corev1.Pod) *corev1.Pod {
	return cmp.Or(s.api.podOf(nominated.UID), nominated)
}

// hauntedByUpstream tells whether the scheduler keeps room on a node for a pod of the other
// profile for a long time, as plain kube-scheduler does: the pod is deleted and has a
// finalizer, or a deleted pod there takes long to stop. The caller holds the lock.
func (s *simulation) hauntedByUpstream(in *instance, node string) bool {
	lingers := slices.ContainsFunc(s.api.allPods(), func(p *corev1.Pod) bool { return p.Spec.NodeName == node && lingering(p) })
	return slices.ContainsFunc(in.nominated(node), func(nominated fwk.PodInfo) bool {
		pod := s.current(nominated.GetPod())
		return pod.Spec.SchedulerName == plain && (pod.DeletionTimestamp != nil || lingers)
	})
}

// namesNominated returns the pods for which the scheduler keeps room on a node, each with its scheduler.
func (in *instance) namesNominated(node string) []string {
	var names []string
	for _, nominated := range in.nominated(node) {
		pod := in.sim.current(nominated.GetPod())
		names = append(names, fmt.Sprintf("%s of %s", pod.Name, pod.Spec.SchedulerName))
	}
	return names
}
