package informer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Store receives the events of a Watcher; a [store.Store] implements it.
type Store interface {
	Upsert(pod objects.Pod, now time.Time)
	Delete(pod types.UID, now time.Time)
	DeleteLastSeenPending(pod types.UID, now time.Time)
	UpsertNode(name string, allocatable resources.Vector, now time.Time)
	SetNodeSchedulable(name string, ok bool, now time.Time)
	NodeChanged(name string, now time.Time)
	DeleteNode(name string, now time.Time)
	UpsertNamespace(name string, annotations map[string]string, now time.Time) []error
	DeleteNamespace(name string, now time.Time)
	SetPriorityClass(name string, optOut bool, now time.Time)
	UpsertBudget(b objects.Budget, now time.Time)
	DeleteBudget(namespace, name string, now time.Time)
}

// Options define which pods are ours and how they are translated.
type Options struct {
	// ManagedProfiles are the values of spec.schedulerName of pods that belong to queues.
	ManagedProfiles []string
	// Peer reports whether a profile of this process, given its name, preempts for
	// DaemonSet pods. It is called for profiles that are not managed. Nil means none.
	Peer     func(profile string) bool
	Requests RequestOptions
	Clock    clock.PassiveClock
	Logger   klog.Logger
	// Namespace receives the invalid annotations of every namespace; none if all are
	// valid or the namespace is gone. It may receive the same again.
	Namespace func(ns *corev1.Namespace, wrong []error)
	// Client reads PriorityClasses and DaemonSets.
	Client kubernetes.Interface
	// ClaimedOwners trusts the owner reference of DaemonSet pods without a look-up.
	ClaimedOwners bool

	daemons *daemonSets // nil with ClaimedOwners
}

// Managed reports whether the pod belongs to a queue.
func (o *Options) Managed(pod *corev1.Pod) bool {
	return slices.Contains(o.ManagedProfiles, pod.Spec.SchedulerName)
}

// peer reports whether the pod is foreign and of a profile that preempts for DaemonSet
// pods.
func (o *Options) peer(pod *corev1.Pod) bool {
	return o.Peer != nil && !o.Managed(pod) && o.Peer(pod.Spec.SchedulerName)
}

// Watcher feeds a store from the informers of a factory, and from informers of its own.
type Watcher struct {
	store      Store
	options    Options
	pods       corelisters.PodLister
	nodes      corelisters.NodeLister
	registered []cache.ResourceEventHandlerRegistration
	classes    *optional
}

// Watch registers the handlers that feed the store with pods, nodes, namespaces,
// PodDisruptionBudgets, PriorityClasses and DaemonSets. It starts nothing: the caller
// starts the factory, and Run the informers of PriorityClasses and DaemonSets.
func Watch(s Store, factory informers.SharedInformerFactory, o Options) (*Watcher, error) {
	w := &Watcher{store: s, options: o, pods: factory.Core().V1().Pods().Lister(), nodes: factory.Core().V1().Nodes().Lister()}
	for _, r := range []struct {
		what     string
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{"namespaces", factory.Core().V1().Namespaces().Informer(), Handler(w.namespace, w.namespaceGone)},
		{"nodes", factory.Core().V1().Nodes().Informer(), Handler(w.node, w.nodeGone)},
		{"pods", factory.Core().V1().Pods().Informer(), w.podHandler()},
		{"pod disruption budgets", factory.Policy().V1().PodDisruptionBudgets().Informer(), Handler(w.budget, w.budgetGone)},
	} {
		registration, err := r.informer.AddEventHandler(r.handler)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", r.what, err)
		}
		w.registered = append(w.registered, registration)
	}
	var err error
	if !o.ClaimedOwners {
		if w.options.daemons, err = watchDaemonSets(o.Client, w, o.Logger); err != nil {
			return nil, err
		}
	}
	w.classes, err = watchPriorityClasses(o.Client, Handler(w.priorityClass, w.priorityClassGone), o.Logger)
	return w, err
}

// daemonSetsInterval is how often Run checks whether all DaemonSets have been seen.
const daemonSetsInterval = 10 * time.Millisecond

// Run follows the PriorityClasses and the DaemonSets until the context ends.
func (w *Watcher) Run(ctx context.Context) {
	var running wait.Group
	defer running.Wait()
	running.StartWithContext(ctx, w.classes.informer.RunWithContext)
	d := w.options.daemons
	if d == nil {
		return
	}
	running.StartWithContext(ctx, d.informer.RunWithContext)
	synced := func(context.Context) (bool, error) { return d.registered.HasSynced(), nil }
	if wait.PollUntilContextCancel(ctx, daemonSetsInterval, true, synced) == nil {
		w.daemonSetsKnown()
	}
}

// HasSynced reports whether everything that existed when the informers started has
// reached the store. PriorityClasses and DaemonSets count only if the scheduler may read
// them.
func (w *Watcher) HasSynced() bool {
	if !w.classes.ready() {
		return false
	}
	if d := w.options.daemons; d != nil && !d.told.Load() && !d.refused.Load() {
		return false
	}
	for _, r := range w.registered {
		if !r.HasSynced() {
			return false
		}
	}
	return true
}

// Pods returns all pods in the informer. They must not be modified.
func (w *Watcher) Pods() []*corev1.Pod {
	pods, _ := w.pods.List(labels.Everything()) // a lister of an informer never fails
	return pods
}

// Nodes returns all nodes in the informer. They must not be modified.
func (w *Watcher) Nodes() []*corev1.Node {
	nodes, _ := w.nodes.List(labels.Everything()) // a lister of an informer never fails
	return nodes
}

// Read returns a pod as the store gets it; false for a pod that the store does not get.
func (w *Watcher) Read(pod *corev1.Pod) (objects.Pod, bool) {
	if !w.matters(pod) {
		return objects.Pod{}, false
	}
	return w.options.Translate(pod), true
}

func (w *Watcher) pod(old, pod *corev1.Pod) {
	if old != nil && old.UID != pod.UID {
		w.podLost(old) // the delete in between was missed
		old = nil
	}
	if w.dependsOnSet(pod) || w.dependsOnSet(old) {
		d := w.options.daemons
		d.mu.Lock()
		defer d.mu.Unlock()
		d.remember(old, pod)
	}
	w.tellPod(old, pod)
}

// tellPod passes a pod to the store. Its owner may have changed whether the store needs
// it.
func (w *Watcher) tellPod(old, pod *corev1.Pod) {
	if !w.matters(pod) {
		return
	}
	p := w.options.Translate(pod)
	if p.Claim == nil {
		w.checkClaim(old, pod)
	}
	if p.Foreign && p.Node != "" && old != nil && old.Spec.NodeName == "" && old.Status.NominatedNodeName != p.Node {
		p.LeftNomination = old.Status.NominatedNodeName
	}
	w.store.Upsert(p, w.options.Clock.Now())
}

func (w *Watcher) podGone(pod *corev1.Pod) {
	w.forget(pod)
	if w.matters(pod) {
		w.store.Delete(pod.UID, w.options.Clock.Now())
	}
}

// podLost passes on a pod that ended while the watch was interrupted, as it was last seen. If it had
// no node then, it is not known whether the scheduler had chosen one.
func (w *Watcher) podLost(pod *corev1.Pod) {
	if pod.Spec.NodeName != "" {
		w.podGone(pod)
		return
	}
	w.forget(pod)
	w.store.DeleteLastSeenPending(pod.UID, w.options.Clock.Now())
}

// podHandler is the handler of pods.
func (w *Watcher) podHandler() cache.ResourceEventHandler {
	return handler(w.pod, w.podGone, w.podLost)
}

// forget stops passing the pod to the store again when its DaemonSet is created or
// deleted.
func (w *Watcher) forget(pod *corev1.Pod) {
	if !w.dependsOnSet(pod) {
		return
	}
	d := w.options.daemons
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remember(pod, nil)
}

// RequiredNode returns the only node on which a pod of a DaemonSet can run; empty for
// every other pod.
func (w *Watcher) RequiredNode(pod *corev1.Pod) string {
	node, _ := w.options.RequiredNode(pod)
	return node
}

// matters reports whether the store needs the pod: it belongs to a queue, uses a node, or
// can run on one node only, so that it may preempt there while a DaemonSet owns it.
func (w *Watcher) matters(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" || w.options.Managed(pod) || w.options.peer(pod) && onlyNode(pod) != ""
}

// checkClaim logs that the pod's condition about the node it holds cannot be parsed, once
// per text.
func (w *Watcher) checkClaim(old, pod *corev1.Pod) {
	held := heldCondition(pod)
	if held == nil {
		return
	}
	if old != nil {
		if before := heldCondition(old); before != nil && before.Message == held.Message {
			return // logged already
		}
	}
	if _, err := reservations.ParseClaim(held.Message); err != nil {
		w.options.Logger.Error(err, "Which node the pod holds cannot be read; it holds none, and may ask for room again. "+
			"Nothing but the scheduler should write this condition", "pod", klog.KObj(pod), "condition", reservations.HeldCondition)
	}
}

func (w *Watcher) node(old, node *corev1.Node) {
	if old != nil && old.UID != node.UID {
		w.nodeGone(old) // the delete in between was missed
		old = nil
	}
	w.store.UpsertNode(node.Name, Allocatable(node), w.options.Clock.Now())
	if old == nil || old.Spec.Unschedulable != node.Spec.Unschedulable {
		w.store.SetNodeSchedulable(node.Name, !node.Spec.Unschedulable, w.options.Clock.Now())
	}
	if old != nil && (!equality.Semantic.DeepEqual(old.Spec.Taints, node.Spec.Taints) || !maps.Equal(old.Labels, node.Labels)) {
		w.store.NodeChanged(node.Name, w.options.Clock.Now())
	}
}

func (w *Watcher) nodeGone(node *corev1.Node) {
	w.store.DeleteNode(node.Name, w.options.Clock.Now())
}

func (w *Watcher) namespace(old, ns *corev1.Namespace) {
	if old != nil && old.UID != ns.UID {
		w.options.Namespace(old, nil) // the delete in between was missed
	}
	errs := w.store.UpsertNamespace(ns.Name, ns.Annotations, w.options.Clock.Now())
	w.options.Namespace(ns, errs)
	if old != nil && maps.Equal(old.Annotations, ns.Annotations) {
		return // passed on already
	}
	for _, err := range errs {
		w.options.Logger.Error(err, "An annotation of a namespace cannot be understood and is ignored", "namespace", ns.Name)
	}
}

func (w *Watcher) namespaceGone(ns *corev1.Namespace) {
	w.store.DeleteNamespace(ns.Name, w.options.Clock.Now())
	w.options.Namespace(ns, nil)
}

// Handler converts typed functions to an event handler; old is nil for an object that was
// not known.
func Handler[T any](set func(old, obj *T), gone func(*T)) cache.ResourceEventHandlerFuncs {
	return handler(set, gone, gone)
}

// handler is Handler with another function for an object that went while the watch was
// interrupted, as it was last seen.
func handler[T any](set func(old, obj *T), gone, lost func(*T)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if t, ok := obj.(*T); ok {
				set(nil, t)
			}
		},
		UpdateFunc: func(old, obj any) {
			o, _ := old.(*T)
			if t, ok := obj.(*T); ok {
				set(o, t)
			}
		},
		DeleteFunc: func(obj any) {
			end := gone
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj, end = unknown.Obj, lost
			}
			if t, ok := obj.(*T); ok {
				end(t)
			}
		},
	}
}
