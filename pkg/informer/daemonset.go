package informer

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const daemonSet = "DaemonSet"

// ownership is what is known of a pod's owner.
type ownership uint8

const (
	notOwned ownership = iota
	// unknown: the pod names a DaemonSet, and DaemonSets cannot be read (yet).
	unknown
	owned
)

// RequiredNode is the only node on which a pod of a DaemonSet can run; empty for every
// other pod. What the pod says of its owner counts if there is such a DaemonSet, or if
// DaemonSets are not looked up.
func (o *Options) RequiredNode(pod *corev1.Pod) string {
	node, _ := o.requiredNode(pod)
	return node
}

// requiredNode is the same, and whether the pod may be one, which cannot be told yet.
func (o *Options) requiredNode(pod *corev1.Pod) (node string, maybe bool) {
	if node = onlyNode(pod); node == "" {
		return "", false
	}
	switch o.ownedByDaemonSet(pod) {
	case owned:
		return node, false
	case unknown:
		return "", true
	}
	return "", false
}

// ownedByDaemonSet tells whether a pod is a DaemonSet's. Its owner need not be its
// controller.
func (o *Options) ownedByDaemonSet(pod *corev1.Pod) ownership {
	if o.ClaimedOwners {
		if slices.ContainsFunc(pod.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == daemonSet }) {
			return owned
		}
		return notOwned
	}
	for i := range pod.OwnerReferences {
		r := &pod.OwnerReferences[i]
		if !namesDaemonSet(r) {
			continue
		}
		if found := o.daemons.lookUp(pod.Namespace, r); found != notOwned {
			return found
		}
	}
	return notOwned
}

func namesDaemonSet(r *metav1.OwnerReference) bool {
	return r.Kind == daemonSet && r.APIVersion == appsv1.SchemeGroupVersion.String()
}

// daemonSets are the DaemonSets that there are, and the pods that name one as their
// owner.
type daemonSets struct {
	*optional

	known atomic.Bool // all DaemonSets that existed have been seen
	told  atomic.Bool // and the store has been told of the pods that name one
	// mu makes one step of telling the store of a pod and remembering it. So a pod that
	// was told of before its DaemonSet was seen is told of again afterwards.
	mu sync.Mutex
	// pods were told of last, by the DaemonSet that they name.
	pods map[types.UID]map[types.UID]*corev1.Pod
}

// withoutDaemonSets is what is logged where DaemonSets cannot be read.
const withoutDaemonSets = "DaemonSets cannot be read, so no room is made for their pods; pods that name a DaemonSet as their owner are not preempted. " +
	"Let the scheduler's service account list and watch daemonsets of API group apps, as manifests/rbac/second-scheduler.yaml does; a restart " +
	"is not needed then. Or set argument daemonSetOwner: Claimed, if all who may make pods trust each other"

func watchDaemonSets(client kubernetes.Interface, w *Watcher, logger klog.Logger) (*daemonSets, error) {
	d := &daemonSets{pods: map[types.UID]map[types.UID]*corev1.Pod{}}
	informer := appsinformers.NewDaemonSetInformer(client, metav1.NamespaceAll, 0, cache.Indexers{})
	err := informer.SetTransform(bareDaemonSet)
	if err == nil {
		d.optional, err = watchOptional(informer, handler(w.daemonSet, w.daemonSetGone), logger, withoutDaemonSets)
	}
	if err != nil {
		return nil, fmt.Errorf("watch DaemonSets: %w", err)
	}
	return d, nil
}

// bareDaemonSet keeps of a DaemonSet what says which one it is.
func bareDaemonSet(obj any) (any, error) {
	set, ok := obj.(*appsv1.DaemonSet)
	if !ok {
		return obj, nil
	}
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: set.Namespace, Name: set.Name, UID: set.UID, ResourceVersion: set.ResourceVersion,
	}}, nil
}

// lookUp tells whether the DaemonSet that a pod of the namespace names is there.
func (d *daemonSets) lookUp(namespace string, r *metav1.OwnerReference) ownership {
	if d == nil || !d.known.Load() {
		return unknown
	}
	found, _, _ := d.informer.GetStore().GetByKey(namespace + "/" + r.Name)
	if set, ok := found.(*appsv1.DaemonSet); ok && set.UID == r.UID {
		return owned
	}
	return notOwned
}

// remember keeps a pod that names DaemonSets; nil pods are none. The caller holds mu.
func (d *daemonSets) remember(before, now *corev1.Pod) {
	each := func(pod *corev1.Pod, do func(types.UID)) {
		if pod == nil || onlyNode(pod) == "" {
			return
		}
		for i := range pod.OwnerReferences {
			if r := &pod.OwnerReferences[i]; namesDaemonSet(r) {
				do(r.UID)
			}
		}
	}
	each(before, func(set types.UID) {
		if delete(d.pods[set], before.UID); len(d.pods[set]) == 0 {
			delete(d.pods, set)
		}
	})
	each(now, func(set types.UID) {
		if d.pods[set] == nil {
			d.pods[set] = map[types.UID]*corev1.Pod{}
		}
		d.pods[set][now.UID] = now
	})
}

// namesAnyDaemonSet tells whether what the store is told of the pod depends on DaemonSets.
func (w *Watcher) namesAnyDaemonSet(pod *corev1.Pod) bool {
	return w.options.daemons != nil && pod != nil && slices.ContainsFunc(pod.OwnerReferences, func(r metav1.OwnerReference) bool { return namesDaemonSet(&r) })
}

func (w *Watcher) daemonSet(old, set *appsv1.DaemonSet) {
	if old != nil && old.UID == set.UID {
		return
	}
	if old != nil {
		w.daemonSetGone(old)
	}
	w.readAgain(set.UID)
}

func (w *Watcher) daemonSetGone(set *appsv1.DaemonSet) { w.readAgain(set.UID) }

// readAgain tells of the pods that name a DaemonSet once more: it came or went.
func (w *Watcher) readAgain(set types.UID) {
	d := w.options.daemons
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known.Load() {
		w.tellAgain(d.pods[set])
	}
}

// daemonSetsKnown tells of all pods that name DaemonSets once more: these have been seen.
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
