package informer

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/pkg/queues/store"
)

// Options say which pods are ours and how they are read.
type Options struct {
	// ManagedProfiles are the values of spec.schedulerName whose pods belong to queues.
	ManagedProfiles []string
	Requests        RequestOptions
	Clock           clock.PassiveClock
	Logger          klog.Logger
	// Namespace is told of every namespace which of its annotations cannot be
	// understood; none where there is nothing wrong, or the namespace is gone. It
	// may be told the same again. Nil for nobody.
	Namespace func(ns *corev1.Namespace, wrong []error)
}

// Managed tells whether the pod belongs to a queue.
func (o *Options) Managed(pod *corev1.Pod) bool {
	return slices.Contains(o.ManagedProfiles, pod.Spec.SchedulerName)
}

// Watcher feeds a store from the informers of a factory.
type Watcher struct {
	store      *store.Store
	options    Options
	pods       corelisters.PodLister
	registered []cache.ResourceEventHandlerRegistration
}

// Watch registers the handlers that feed the store with pods, nodes and
// namespaces. It does not start the factory.
func Watch(s *store.Store, factory informers.SharedInformerFactory, o Options) (*Watcher, error) {
	w := &Watcher{store: s, options: o, pods: factory.Core().V1().Pods().Lister()}
	for _, r := range []struct {
		what     string
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{"namespaces", factory.Core().V1().Namespaces().Informer(), handler(w.namespace, w.namespaceGone)},
		{"nodes", factory.Core().V1().Nodes().Informer(), handler(w.node, w.nodeGone)},
		{"pods", factory.Core().V1().Pods().Informer(), handler(w.pod, w.podGone)},
	} {
		registration, err := r.informer.AddEventHandler(r.handler)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", r.what, err)
		}
		w.registered = append(w.registered, registration)
	}
	return w, nil
}

// HasSynced tells whether everything that existed when the informers started
// has reached the store.
func (w *Watcher) HasSynced() bool {
	for _, r := range w.registered {
		if !r.HasSynced() {
			return false
		}
	}
	return true
}

// Recount compares the store with the pods as the informer has them now. While
// events are on their way the two may differ.
func (w *Watcher) Recount() error {
	pods, err := w.pods.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	var managed []store.Pod
	for _, pod := range pods {
		if w.options.Managed(pod) {
			managed = append(managed, Translate(pod, w.options.Requests))
		}
	}
	return w.store.Recount(managed)
}

func (w *Watcher) pod(old, pod *corev1.Pod) {
	if old != nil && old.UID != pod.UID {
		// The delete in between was missed.
		w.podGone(old)
	}
	if w.options.Managed(pod) {
		w.store.Upsert(Translate(pod, w.options.Requests), w.options.Clock.Now())
	}
}

func (w *Watcher) podGone(pod *corev1.Pod) {
	if w.options.Managed(pod) {
		w.store.Delete(pod.UID, w.options.Clock.Now())
	}
}

func (w *Watcher) node(_, node *corev1.Node) {
	w.store.UpsertNode(node.Name, Allocatable(node), w.options.Clock.Now())
}

func (w *Watcher) nodeGone(node *corev1.Node) {
	w.store.DeleteNode(node.Name, w.options.Clock.Now())
}

func (w *Watcher) namespace(old, ns *corev1.Namespace) {
	if old != nil && old.UID != ns.UID {
		w.tell(old, nil) // the delete in between was missed
	}
	errs := w.store.UpsertNamespace(ns.Name, ns.Annotations, w.options.Clock.Now())
	w.tell(ns, errs)
	if old != nil && maps.Equal(old.Annotations, ns.Annotations) {
		return // told already
	}
	for _, err := range errs {
		w.options.Logger.Error(err, "An annotation of a namespace cannot be understood and is ignored", "namespace", ns.Name)
	}
}

func (w *Watcher) namespaceGone(ns *corev1.Namespace) {
	w.store.DeleteNamespace(ns.Name, w.options.Clock.Now())
	w.tell(ns, nil)
}

func (w *Watcher) tell(ns *corev1.Namespace, wrong []error) {
	if w.options.Namespace != nil {
		w.options.Namespace(ns, wrong)
	}
}

// handler makes typed functions an event handler; old is nil for an object that
// was not known.
func handler[T any](set func(old, obj *T), gone func(*T)) cache.ResourceEventHandler {
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
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			if t, ok := obj.(*T); ok {
				gone(t)
			}
		},
	}
}
