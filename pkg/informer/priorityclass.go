package informer

import (
	"context"
	"fmt"
	"sync/atomic"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/paddock-scheduler/paddock/pkg/queues/store"
)

// priorityClasses follows the PriorityClasses. Upstream's role for schedulers
// does not let them be read, and a scheduler does not start before every
// informer of its factory has synced; so this one stands alone, and nobody waits
// for it once the API server has refused.
type priorityClasses struct {
	informer   cache.SharedIndexInformer
	registered cache.ResourceEventHandlerRegistration
	refused    atomic.Bool // the API server does not let us, or did not at first
	logger     klog.Logger
}

func watchPriorityClasses(client kubernetes.Interface, handler cache.ResourceEventHandler, logger klog.Logger) (*priorityClasses, error) {
	c := &priorityClasses{informer: schedulinginformers.NewPriorityClassInformer(client, 0, cache.Indexers{}), logger: logger}
	var err error
	if err = c.informer.SetWatchErrorHandlerWithContext(c.failed); err != nil {
		return nil, fmt.Errorf("watch priority classes: %w", err)
	}
	if c.registered, err = c.informer.AddEventHandler(handler); err != nil {
		return nil, fmt.Errorf("watch priority classes: %w", err)
	}
	return c, nil
}

// settled tells whether there is nothing to wait for: those that existed have
// reached the store, or none will for now. The informer goes on trying.
func (c *priorityClasses) settled() bool { return c.refused.Load() || c.registered.HasSynced() }

// failed takes an error of the informer, which tries again later, less and less
// often. That a role is missing is told once.
func (c *priorityClasses) failed(ctx context.Context, r *cache.Reflector, err error) {
	if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
		return
	}
	if c.refused.Swap(true) {
		return
	}
	c.logger.Error(err, "PriorityClasses cannot be read, so their annotation "+AllowPreemption+" does not protect pods from "+
		"preemption; only the one on pods does. Let the scheduler's service account list and watch priorityclasses of "+
		"API group scheduling.k8s.io, as manifests/rbac/second-scheduler.yaml does; a restart is not needed then")
}

func (w *Watcher) priorityClass(_, class *schedulingv1.PriorityClass) {
	optOut := optOutOf(class.Annotations[AllowPreemption]) == store.OptOutYes
	w.store.UpsertPriorityClass(class.Name, optOut, w.options.Clock.Now())
}

func (w *Watcher) priorityClassGone(class *schedulingv1.PriorityClass) {
	w.store.DeletePriorityClass(class.Name, w.options.Clock.Now())
}

// PriorityClass returns the class of a name or, without a name, the one that is
// the default; nil for none. It is false where the classes cannot be read.
func (w *Watcher) PriorityClass(name string) (class *schedulingv1.PriorityClass, readable bool) {
	if w.classes == nil || !w.classes.registered.HasSynced() {
		return nil, false
	}
	if name != "" {
		found, _, _ := w.classes.informer.GetStore().GetByKey(name)
		class, _ = found.(*schedulingv1.PriorityClass)
		return class, true
	}
	for _, listed := range w.classes.informer.GetStore().List() {
		c, ok := listed.(*schedulingv1.PriorityClass)
		// As admission has it: of several defaults the one with the smallest value.
		if ok && c.GlobalDefault && (class == nil || c.Value < class.Value) {
			class = c
		}
	}
	return class, true
}
