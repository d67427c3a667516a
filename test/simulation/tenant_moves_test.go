package simulation_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
)

// Moves of the hostile tenant: pods of other queues, finalizers, pods that are too large, and queues that
// rules make.

// In half of its histories rules make at most so many queues.
const mostQueues, mostQueuesOfNamespace = 3, 2

// moveTenant makes a move of the tenant. The caller holds the lock.
func (s *simulation) moveTenant(m move) bool {
	if !isEvil(m.kind) {
		return false
	}
	its := func(p *corev1.Pod) bool { return p.Namespace == evil }
	all := slices.DeleteFunc(s.api.allPods(), func(p *corev1.Pod) bool { return !its(p) })
	switch m.kind {
	case "evil label":
		plainly := func(p *corev1.Pod) bool {
			return its(p) && !ended(p) && p.Spec.SchedulerName == managed && len(p.Spec.SchedulingGates) == 0 &&
				slices.Contains(leaves, p.Labels[placement.KeyQueue]) && !s.requestsInvented(p)
		}
		if pod := s.some(m.a, plainly); pod != nil {
			s.moveQueue(pod, leaves[m.b%len(leaves)])
		}
	case "evil finalizer":
		if pod := s.some(m.a, its); pod != nil {
			s.turnFinalizer(pod)
		}
	case "evil fat":
		if pod := s.some(m.a, func(p *corev1.Pod) bool { return its(p) && p.Spec.NodeName != "" }); pod != nil {
			size := []string{"", tooLargeToMark, tooLargeToDelete}[m.n%3]
			s.api.editPod(pod, func(p *corev1.Pod) { p.Annotations = map[string]string{sizeKey: size} })
		}
	case "evil set":
		s.turnSet(m)
	case "evil delete":
		stay := slices.DeleteFunc(all, func(p *corev1.Pod) bool { return !lingering(p) })
		s.deleteOwn(m, len(stay) >= mostLingering)
	case "evil disguise":
		s.disguise(m)
	default:
		if len(all) < mostEvil && len(s.api.pods.objects) < mostPods {
			s.create(s.evilPod(m))
		}
	}
	return true
}

// The annotation sizeKey says which writes of a pod are too large: those that add to it,
// or its delete, too.
const sizeKey, tooLargeToMark, tooLargeToDelete = "evil.example/size", "mark", "delete"

var errTooLarge = apierrors.NewInternalError(errors.New("etcdserver: request is too large"))

// tooLarge tells whether the API server refuses a write of a pod. The writes of upstream's preemption get
// another one: upstream tries such a pod again without end, so nothing would come to rest.
func tooLarge(pod *corev1.Pod, deletes bool) bool {
	size := pod.Annotations[sizeKey]
	return size == tooLargeToDelete || size == tooLargeToMark && !deletes
}

// judgeDeletedAgain finds a pod that is deleted again before the retry interval after the refusal
// of an earlier delete is over. A plan goes on if other pods of it went already, or gave back
// the place where they waited in Permit. The caller holds the lock of the API server.
func (s *simulation) judgeDeletedAgain(in *instance, pod *corev1.Pod) {
	s.count(undeletable)
	w := in.interceptor
	defer holding(&w.mu)()
	asker := w.due[pod.UID]
	if h, holds := w.Holds().Of(asker); holds { // else it ended while the delete was on its way
		w.planBegan[asker] = slices.ContainsFunc(h.Chosen, func(uid types.UID) bool {
			_, pending := w.pendingPod(uid)
			victim := s.api.podOf(uid)
			return uid != pod.UID && (pending || victim == nil || victim.DeletionTimestamp != nil || ended(victim))
		})
	}
	if at, once := w.tooLarge[pod.UID]; once && !w.planBegan[asker] && time.Since(at) < retryInterval*time.Second {
		s.fault("%s deletes %s again %v after that was refused for good", in.name, pod.Name, time.Since(at))
	}
}

// moveQueue makes a pod name another queue and an application of its own. A pod with a node
// stays in the queue that it has.
func (s *simulation) moveQueue(pod *corev1.Pod, queue string) {
	s.logf("the tenant moves %s from %s to %s", pod.Name, pod.Labels[placement.KeyQueue], queue)
	s.astray[pod.UID] = true
	s.api.editPod(pod, func(p *corev1.Pod) {
		p.Labels = maps.Clone(p.Labels)
		p.Labels[placement.KeyQueue], p.Labels[placement.KeyApplicationID] = queue, "own-"+string(p.UID)
	})
	if pod.Spec.NodeName != "" {
		s.count(moved)
	}
}

// turnFinalizer adds a finalizer to a pod, or removes it. A deleted pod is then gone, if it has stopped.
func (s *simulation) turnFinalizer(pod *corev1.Pod) {
	if len(pod.Finalizers) == 0 {
		s.api.editPod(pod, func(p *corev1.Pod) { p.Finalizers = []string{"evil.example/stay"} })
		return
	}
	s.api.editPod(pod, func(p *corev1.Pod) { p.Finalizers = nil })
	if pod.DeletionTimestamp != nil && (ended(pod) || pod.Spec.NodeName == "") {
		s.end1(s.api.pod(nameOf(pod)))
	}
}

// inForce returns a pod with the queue and the application that it counts for: once it has
// a node, other labels change nothing. The caller holds mu.
func (w *interceptor) inForce(p objects.Pod) objects.Pod {
	old, known := w.pods[p.UID]
	_, placed := w.placed[p.UID]
	delete(w.late, p.UID)
	if known && w.Ready() && (old.Node != "" || p.Node != "" || placed) && !p.Foreign {
		if placed && p.Node == "" {
			w.late[p.UID] = p
		}
		p = named(p, &old)
	}
	w.counts.Store(p.UID, claimantOf(&p))
	return p
}

// named returns a pod with the queue and the application of another one.
func named(p objects.Pod, as *objects.Pod) objects.Pod {
	for _, key := range []string{placement.KeyQueue, placement.KeyApplicationID} {
		if p.Labels[key] != as.Labels[key] {
			p.Labels = maps.Clone(p.Labels)
			p.Labels[key] = as.Labels[key]
		}
	}
	return p
}

// claimant is a pod as a process counts it. A pod with a node is in the recovery queue if
// its own queue was beyond the bounds when the process learned of the pod.
func (in *instance) claimant(pod *corev1.Pod) claimant {
	c := claimantPod(pod)
	if told, known := in.interceptor.counts.Load(pod.UID); known {
		c.queue, c.app = told.(claimant).queue, told.(claimant).app
	}
	if in.sim.settings.dynamic && pod.Namespace == evil && pod.Spec.NodeName != "" && queueOf(in.sim.lastValid.spec, c.queue) == nil {
		if x, known := in.store().Explanation(pod.UID, time.Now()); known && x.App != nil && x.App.Queue == queues.RecoveryPath {
			c.queue = x.App.Queue
		}
	}
	return c
}

// checkQueues finds queues beyond the number that rules may make.
func (in *instance) checkQueues() error {
	if !in.sim.settings.dynamic {
		return nil
	}
	made, by := 0, map[string]int{}
	for q := range in.store().Snapshot().All() {
		if q.Managed || q.IsRoot() || q.Path == queues.RecoveryPath {
			continue
		}
		made++
		by[q.MadeFor]++
	}
	if most := slices.Max(append(slices.Collect(maps.Values(by)), 0)); made > mostQueues || most > mostQueuesOfNamespace {
		return fmt.Errorf("%s: rules have made %d queues, %d for one namespace", in.name, made, most)
	}
	if by[evil] == mostQueuesOfNamespace {
		in.sim.count(fullOfQueues)
	}
	return nil
}

// moveWrongly charges a pod with a node to the queue that it names now.
func (w *interceptor) moveWrongly(told *objects.Pod) {
	old, known := w.pods[told.UID]
	if w.in.sim.bug == bugMoves && known && told.Node != "" && old.Labels[placement.KeyQueue] != told.Labels[placement.KeyQueue] {
		w.Store.Delete(told.UID, time.Now())
	}
}
