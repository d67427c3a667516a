package informer

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// optional is an informer of objects that the role of the scheduler may not permit to
// read: upstream's role for schedulers includes neither PriorityClasses nor DaemonSets. A
// scheduler starts only after every informer of its factory has synced, so optional is
// outside of the factory. Nothing waits for it once the API server has refused.
type optional struct {
	informer   cache.SharedIndexInformer
	registered cache.ResourceEventHandlerRegistration
	refused    atomic.Bool // the API server refuses, or did at first
	logger     klog.Logger
	without    string // logged when it refuses: what does not work, and what to do
}

// watchOptional registers the handler. The caller starts the informer.
func watchOptional(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler, logger klog.Logger, without string) (*optional, error) {
	o := &optional{informer: informer, logger: logger, without: without}
	var err error
	if err = o.informer.SetWatchErrorHandlerWithContext(o.failed); err != nil {
		return nil, err
	}
	o.registered, err = o.informer.AddEventHandler(handler)
	return o, err
}

// ready reports whether there is nothing to wait for: the objects that existed have
// reached the handler, or the API server refused. In that case the informer keeps trying.
func (o *optional) ready() bool { return o.refused.Load() || o.registered.HasSynced() }

// failed handles an error of the informer, which retries with growing intervals. It logs
// a missing role once.
func (o *optional) failed(ctx context.Context, r *cache.Reflector, err error) {
	if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
		return
	}
	if !o.refused.Swap(true) {
		o.logger.Error(err, o.without)
	}
}

// withoutPriorityClasses is logged if PriorityClasses cannot be read.
const withoutPriorityClasses = "PriorityClasses cannot be read, so their annotation " + AllowPreemption + " does not protect pods from " +
	"preemption; only the one on pods does. Let the scheduler's service account list and watch priorityclasses of " +
	"API group scheduling.k8s.io, as manifests/rbac/second-scheduler.yaml does; a restart is not needed then"

func watchPriorityClasses(client kubernetes.Interface, handler cache.ResourceEventHandler, logger klog.Logger) (*optional, error) {
	o, err := watchOptional(schedulinginformers.NewPriorityClassInformer(client, 0, cache.Indexers{}), handler, logger, withoutPriorityClasses)
	if err != nil {
		return nil, fmt.Errorf("watch priority classes: %w", err)
	}
	return o, nil
}

func (w *Watcher) priorityClass(_, class *schedulingv1.PriorityClass) {
	optOut := optOutOf(class.Annotations[AllowPreemption]) == objects.OptOutYes
	w.store.SetPriorityClass(class.Name, optOut, w.options.Clock.Now())
}

func (w *Watcher) priorityClassGone(class *schedulingv1.PriorityClass) {
	w.store.SetPriorityClass(class.Name, false, w.options.Clock.Now())
}

// PriorityClass returns the class of a name or, without a name, the default class; nil
// for none. It returns false if the classes cannot be read.
func (w *Watcher) PriorityClass(name string) (class *schedulingv1.PriorityClass, readable bool) {
	if !w.classes.registered.HasSynced() {
		return nil, false
	}
	if name != "" {
		found, _, _ := w.classes.informer.GetStore().GetByKey(name)
		class, _ = found.(*schedulingv1.PriorityClass)
		return class, true
	}
	for _, listed := range w.classes.informer.GetStore().List() {
		c, ok := listed.(*schedulingv1.PriorityClass)
		// As in admission: of several defaults, the one with the smallest value counts.
		if ok && c.GlobalDefault && (class == nil || c.Value < class.Value) {
			class = c
		}
	}
	return class, true
}
