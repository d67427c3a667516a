package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
)

// Upsert handles an event of a managed pod, or of a foreign pod that has a node or is node-bound.
// It may be called late, again with the same content, and without an earlier call for the pod.
func (s *Store) Upsert(event objects.Pod, now time.Time) {
	s.change(now, func() { s.life.Upsert(event, now) })
}

// Delete handles the deletion of a pod. It does nothing for a pod that is not known.
func (s *Store) Delete(uid types.UID, now time.Time) {
	s.change(now, func() { s.life.Delete(uid, now) })
}

// DeleteLastSeenPending handles the deletion of a pod that the informer had last seen
// without a node. It may have been bound, so pods that wait for room on a node are brought
// back. It may be of no queue.
func (s *Store) DeleteLastSeenPending(uid types.UID, now time.Time) {
	s.change(now, func() { s.life.DeleteLastSeenPending(uid, now) })
}

// UpsertNode sets the allocatable of a node, and adds a node that is not known.
func (s *Store) UpsertNode(name string, allocatable resources.Vector, now time.Time) {
	s.change(now, func() { s.life.UpsertNode(name, allocatable, now) })
}

// NodeChanged handles a change of a node that matters to the filters, such as its taints. It
// does nothing for a node that is not known.
func (s *Store) NodeChanged(name string, now time.Time) {
	s.change(now, func() { s.life.NodeChanged(name, now) })
}

// SetNodeSchedulable sets whether new pods may go to a node; it may be called before
// UpsertNode. All holds of a cordoned node end.
func (s *Store) SetNodeSchedulable(name string, schedulable bool, now time.Time) {
	s.change(now, func() { s.life.SetNodeSchedulable(name, schedulable, now) })
}

// DeleteNode handles the deletion of a node. All its holds end. It does nothing for a node
// that is not known.
func (s *Store) DeleteNode(name string, now time.Time) {
	s.change(now, func() { s.life.DeleteNode(name, now) })
}

// UpsertBudget sets a PodDisruptionBudget.
func (s *Store) UpsertBudget(b objects.Budget, now time.Time) {
	s.change(now, func() { s.model.Cache.Protection.UpsertBudget(b) })
}

// DeleteBudget handles the deletion of a PodDisruptionBudget, known or not.
func (s *Store) DeleteBudget(namespace, name string, now time.Time) {
	s.change(now, func() { s.model.Cache.Protection.DeleteBudget(namespace, name) })
}

// SetPodGroup sets how many pods of a PodGroup start together; 0 for one that is gone. Its
// waiting members then keep waiting.
func (s *Store) SetPodGroup(namespace, name string, minMember int, now time.Time) {
	s.change(now, func() { s.states.SetPodGroup(pending.PodGroupName{Namespace: namespace, Name: name}, minMember) })
}

// SetPriorityClass sets whether the pods of a PriorityClass are opted out; false for one that
// is gone.
func (s *Store) SetPriorityClass(name string, optOut bool, now time.Time) {
	s.change(now, func() { s.life.SetPriorityClass(name, optOut) })
}

// UpsertNamespace sets the annotations of a namespace. It returns an error for each
// annotation that is invalid and counts as absent.
func (s *Store) UpsertNamespace(name string, annotations map[string]string, now time.Time) (wrong []error) {
	s.change(now, func() { wrong = s.life.UpsertNamespace(name, annotations, now) })
	return wrong
}

// DeleteNamespace handles the deletion of a namespace, known or not.
func (s *Store) DeleteNamespace(name string, now time.Time) {
	s.change(now, func() { s.life.DeleteNamespace(name) })
}

// Configure replaces the queue configuration. Running pods are not touched; pods without
// a queue are placed again.
func (s *Store) Configure(spec *config.Spec, now time.Time) {
	s.change(now, func() { s.life.Configure(spec, now) })
}
