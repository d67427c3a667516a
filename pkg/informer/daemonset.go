package informer

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
)

const daemonSet = "DaemonSet"

// maxOwners is how many owners of a pod are read. Its author can write any number.
const maxOwners = 16

// RequiredNode returns the only node on which a pod of a DaemonSet can run; empty for
// every other pod. The owner in the pod counts if that DaemonSet exists, or if DaemonSets
// are not looked up. maybe is true if it is not known yet whether the pod belongs to one,
// because DaemonSets cannot be read, or not yet.
func (o *Options) RequiredNode(pod *corev1.Pod) (node string, maybe bool) {
	if node = onlyNode(pod); node == "" {
		return "", false
	}
	owned, known := o.ownedByDaemonSet(pod)
	if !owned {
		return "", !known
	}
	return node, false
}

// ownedByDaemonSet reports whether a pod belongs to a DaemonSet, and whether that is known. A
// DaemonSet that is looked up must be the pod's controller: it then deletes pods beyond one for
// each node.
func (o *Options) ownedByDaemonSet(pod *corev1.Pod) (owned, known bool) {
	if o.ClaimedOwners {
		return slices.ContainsFunc(ownersRead(pod), func(r metav1.OwnerReference) bool { return r.Kind == daemonSet }), true
	}
	if r := controllingSet(pod); r != nil {
		return o.daemons.lookUp(pod.Namespace, r)
	}
	return false, true
}

// ownersRead returns the owners of the pod that are read.
func ownersRead(pod *corev1.Pod) []metav1.OwnerReference {
	return pod.OwnerReferences[:min(len(pod.OwnerReferences), maxOwners)]
}

// controllingSet returns the DaemonSet that the pod names as its controller; nil for none.
func controllingSet(pod *corev1.Pod) *metav1.OwnerReference {
	r := metav1.GetControllerOfNoCopy(pod)
	if r == nil || r.Kind != daemonSet || r.APIVersion != appsv1.SchemeGroupVersion.String() {
		return nil
	}
	return r
}

// daemonSets are the existing DaemonSets, and the pods that name one as their controller.
type daemonSets struct {
	*optional

	known atomic.Bool // all DaemonSets that existed have been seen
	told  atomic.Bool // and the store has the pods that name one
	// mu makes passing a pod to the store and remembering it one step. So a pod that was passed before
	// its DaemonSet was seen is passed again afterwards. It is taken before the lock of the store.
	mu locks.Mutex
	// pods are the last versions passed to the store, by the DaemonSet that they name.
	pods map[types.UID]map[types.UID]*corev1.Pod
}

// withoutDaemonSets is logged if DaemonSets cannot be read.
const withoutDaemonSets = "DaemonSets cannot be read, so no room is made for their pods; pods that name a DaemonSet as their controller are not preempted. " +
	"Let the scheduler's service account list and watch daemonsets of API group apps, as manifests/rbac/second-scheduler.yaml does; a restart " +
	"is not needed then. Or set argument daemonSetOwner: Claimed, if all who may make pods trust each other"

func watchDaemonSets(client kubernetes.Interface, w *Watcher, logger klog.Logger) (*daemonSets, error) {
	d := &daemonSets{pods: map[types.UID]map[types.UID]*corev1.Pod{}}
	informer := appsinformers.NewDaemonSetInformer(client, metav1.NamespaceAll, 0, cache.Indexers{})
	err := informer.SetTransform(bareDaemonSet)
	if err == nil {
		d.optional, err = watchOptional(informer, Handler(w.daemonSet, w.daemonSetGone), logger, withoutDaemonSets)
	}
	if err != nil {
		return nil, fmt.Errorf("watch DaemonSets: %w", err)
	}
	return d, nil
}

// bareDaemonSet keeps only what identifies a DaemonSet, and whether it is being deleted.
func bareDaemonSet(obj any) (any, error) {
	set, ok := obj.(*appsv1.DaemonSet)
	if !ok {
		return obj, nil
	}
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: set.Namespace, Name: set.Name, UID: set.UID, ResourceVersion: set.ResourceVersion,
		DeletionTimestamp: set.DeletionTimestamp,
	}}, nil
}

// lookUp reports whether the DaemonSet that a pod of the namespace names exists. One that
// is being deleted does not: a finalizer can keep it, and its controller leaves its pods
// alone then.
func (d *daemonSets) lookUp(namespace string, r *metav1.OwnerReference) (exists, known bool) {
	if d == nil || !d.known.Load() {
		return false, false
	}
	found, _, _ := d.informer.GetStore().GetByKey(namespace + "/" + r.Name)
	set, ok := found.(*appsv1.DaemonSet)
	return ok && set.UID == r.UID && set.DeletionTimestamp == nil, true
}

// remember stores a pod that names a DaemonSet; nil stands for no pod. The caller holds
// mu.
func (d *daemonSets) remember(before, now *corev1.Pod) {
	if set := namedSet(before); set != "" {
		if delete(d.pods[set], before.UID); len(d.pods[set]) == 0 {
			delete(d.pods, set)
		}
	}
	if set := namedSet(now); set != "" {
		if d.pods[set] == nil {
			d.pods[set] = map[types.UID]*corev1.Pod{}
		}
		d.pods[set][now.UID] = now
	}
}

// namedSet returns the UID of the DaemonSet on which the translation of the pod depends;
// empty for none.
func namedSet(pod *corev1.Pod) types.UID {
	if pod == nil || onlyNode(pod) == "" {
		return ""
	}
	if r := controllingSet(pod); r != nil {
		return r.UID
	}
	return ""
}

// dependsOnSet reports whether the translation of the pod depends on a DaemonSet.
func (w *Watcher) dependsOnSet(pod *corev1.Pod) bool {
	return w.options.daemons != nil && namedSet(pod) != ""
}

func (w *Watcher) daemonSet(old, set *appsv1.DaemonSet) {
	if old != nil && old.UID == set.UID && (old.DeletionTimestamp == nil) == (set.DeletionTimestamp == nil) {
		return
	}
	if old != nil && old.UID != set.UID {
		w.daemonSetGone(old)
	}
	w.readAgain(set.UID)
}

func (w *Watcher) daemonSetGone(set *appsv1.DaemonSet) { w.readAgain(set.UID) }

// readAgain passes the pods that name a DaemonSet to the store again, because it was
// created or deleted, or is being deleted.
func (w *Watcher) readAgain(set types.UID) {
	d := w.options.daemons
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known.Load() {
		w.tellAgain(d.pods[set])
	}
}

// daemonSetsKnown passes all pods that name DaemonSets to the store again, because the
// DaemonSets have been seen.
func (w *Watcher) daemonSetsKnown() {
	d := w.options.daemons
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known.Store(true)
	for _, set := range sortedKeys(d.pods) {
		w.tellAgain(d.pods[set])
	}
	d.told.Store(true)
}

func (w *Watcher) tellAgain(pods map[types.UID]*corev1.Pod) {
	for _, uid := range sortedKeys(pods) {
		w.tellPod(nil, pods[uid])
	}
}

func sortedKeys[V any](m map[types.UID]V) []types.UID { return slices.Sorted(maps.Keys(m)) }
