package simulation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Room that was made by deleting pods: how it is kept from the neighbour, and what
// follows when it is lost.

// kept is a hold for which pods have been deleted.
type kept struct {
	hold    reservations.Hold
	version int64 // since when
}

// nodePatch is the fields of patches of nodes.
type nodePatch struct {
	Metadata struct {
		UID             types.UID
		ResourceVersion string
	}
	Spec struct{ Taints *[]corev1.Taint }
}

// Patch changes the taints of a node.
func (c *nodeClient) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, _ metav1.PatchOptions, subresources ...string) (patched *corev1.Node, err error) {
	var p nodePatch
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, err
	}
	if pt != types.MergePatchType || len(subresources) > 0 || p.Spec.Taints == nil {
		return nil, fmt.Errorf("this API server does not know the patch %s of type %s of nodes", data, pt)
	}
	c.in.mayWrite(true, "taint node", name)
	err = change(ctx, c.reader, "patch", name, func(n *corev1.Node) error {
		if p.Metadata.UID != n.UID || p.Metadata.ResourceVersion != n.ResourceVersion {
			return apierrors.NewConflict(c.kind.resource, name, errors.New("it was changed"))
		}
		patched = n.DeepCopy()
		patched.Spec.Taints = *p.Spec.Taints
		if c.in.sim.taintWrongly(n, patched) {
			return nil
		}
		c.in.sim.logf("%s taints node %s: %v", c.in.name, name, patched.Spec.Taints)
		c.in.api.put(c.kind, patched)
		return nil
	})
	return patched, err
}

func keepsOff(t corev1.Taint) bool { return t.Key == reservations.HeldTaint }

// judgeTaint finds a pod that is about to be deleted for a hold although the node has no
// taint; otherwise it notes the hold. The callers hold the lock of the API server and of
// the interceptor.
func (w *interceptor) judgeTaint(victim *corev1.Pod) {
	asker, due := w.due[victim.UID]
	h, held := w.Holds().Of(asker)
	if !due || !held || victim.DeletionTimestamp != nil || !slices.Contains(h.Chosen, victim.UID) {
		return // the call has come late
	}
	s := w.in.sim
	n := s.api.node(h.Node)
	if n == nil || !n.CreationTimestamp.Time.Before(h.Since) {
		return
	}
	if s.settings.taints && !slices.ContainsFunc(n.Spec.Taints, keepsOff) {
		s.fault("%s deletes %s for %s, and node %s has no taint that keeps others off", w.in.name, victim.Name, h.Name, h.Node)
	}
	if before, known := s.kept[asker]; !known || !before.hold.Since.Equal(h.Since) {
		s.kept[asker] = kept{hold: h, version: s.api.rv}
	}
}

// judgeNeighbour finds a pod that the neighbour places on a node although pods had been
// deleted for a hold of the node by the version in the neighbour's cache: that version
// has the taint. The caller holds the lock of the API server.
func (s *simulation) judgeNeighbour(pod *corev1.Pod, node string) {
	leader := s.leader()
	if !s.settings.taints || leader == nil {
		return
	}
	for _, uid := range slices.Sorted(maps.Keys(s.kept)) {
		k := s.kept[uid]
		h, held := leader.store().Holds().Of(uid)
		if !held || !h.Since.Equal(k.hold.Since) || k.hold.Node != node || k.version > s.neighbour.nodes.told {
			continue
		}
		if n := s.neighbour.nodes.objects[types.NamespacedName{Name: node}]; !n.GetCreationTimestamp().Time.Before(h.Since) {
			continue // it is another node of this name
		}
		if asker := s.api.pod(types.NamespacedName{Namespace: h.Namespace, Name: h.Name}); asker == nil || asker.Spec.NodeName != "" {
			continue // it was bound by an earlier process, which took the taint off, and the leader has not seen that
		}
		s.fault("the neighbour gives %s node %s, where pods were deleted for %s: it sees no taint", pod.Name, node, h.Name)
	}
}

// taints finds, at rest, a taint that no hold wants. The caller holds the lock.
func (s *simulation) taints(in *instance) []complaint {
	var all []complaint
	for _, n := range s.api.allNodes() {
		tainted, wanted := slices.ContainsFunc(n.Spec.Taints, keepsOff), false
		for _, h := range in.store().Holds().All() {
			wanted = wanted || h.Node == n.Name && len(h.Chosen) > 0
		}
		if tainted && !(wanted && s.settings.taints) {
			err := fmt.Errorf("%s: node %s has a taint that keeps others off, and no hold wants it", in.name, n.Name)
			all = append(all, complaint{what: "taint of " + n.Name, err: err})
		}
	}
	return all
}

// noteLoss notes that a hold for which pods were deleted has ended while its asker still
// waits. If the process was without the lease meanwhile, the time is not known.
func (w *interceptor) noteLoss(item *output.Work) {
	s := w.in.sim
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if item.Ended == reservations.Bound || item.Ended == reservations.Deleted {
		return
	}
	k, known := s.kept[item.UID]
	if known = known && k.hold.Since.Equal(item.Hold.Since); known {
		delete(s.kept, item.UID) // the node has no taint any more, even if a later process takes the hold over
	}
	if _, pending := w.pendingPod(item.UID); !pending || !known || s.elects || s.settings.groups {
		return
	}
	s.count(lost)
	s.logf("%s has lost the room of %s on %s: %s", w.in.name, item.Name, item.Hold.Node, item.Reason)
	w.lost[item.UID] = time.Now()
}

// judgeRetry finds pods that are preempted for an asker soon after it lost its room. The
// caller holds mu.
func (w *interceptor) judgeRetry(asker types.UID, h *reservations.Hold) {
	if at, once := w.lost[asker]; once && h.Since.Before(at.Add(retryInterval*time.Second-time.Microsecond)) && h.Since.After(at) {
		w.in.sim.fault("%s makes pods go for %s on %s %v after it lost its room, which is less than the retry interval",
			w.in.name, h.Name, h.Node, h.Since.Sub(at))
	}
}
