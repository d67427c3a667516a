package podgroups

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeutil "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"
	"sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	"sigs.k8s.io/scheduler-plugins/pkg/coscheduling"
	"sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned"
	informers "sigs.k8s.io/scheduler-plugins/pkg/generated/informers/externalversions/scheduling/v1alpha1"

	"github.com/paddock-scheduler/paddock/pkg/plugins/process"
	"github.com/paddock-scheduler/paddock/pkg/queues/store"
)

// Name is the name of the plugin in a scheduler configuration.
const Name = coscheduling.Name

// New makes upstream's plugin and, in a managed profile, has the store follow
// PodGroups. It fails where their definition is not installed.
func New(ctx context.Context, obj runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
	plugin, err := coscheduling.New(ctx, obj, h)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	client, err := versioned.NewForConfig(h.KubeConfig())
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	p := process.For(ctx, h)
	p.FollowPodGroups(h.ProfileName(), func(s *store.Store) {
		go run(ctx, client, s, p.Clock)
	})
	return plugin, nil
}

// run tells the store of PodGroups until the context ends.
func run(ctx context.Context, client versioned.Interface, s Store, c clock.PassiveClock) {
	informer := informers.NewPodGroupInformer(client, metav1.NamespaceAll, 0, cache.Indexers{})
	if _, err := informer.AddEventHandler(handler(s, c)); err != nil {
		runtimeutil.HandleErrorWithContext(ctx, err, "PodGroups cannot be followed")
		return
	}
	informer.RunWithContext(ctx)
}

// Store is what is told of PodGroups: a [store.Store].
type Store interface {
	UpsertPodGroup(namespace, name string, minMember int, now time.Time)
	DeletePodGroup(namespace, name string, now time.Time)
}

// handler tells a store of PodGroups.
func handler(s Store, c clock.PassiveClock) cache.ResourceEventHandler {
	set := func(obj any) {
		if g, ok := obj.(*v1alpha1.PodGroup); ok {
			s.UpsertPodGroup(g.Namespace, g.Name, int(g.Spec.MinMember), c.Now())
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, obj any) { set(obj) },
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			if g, ok := obj.(*v1alpha1.PodGroup); ok {
				s.DeletePodGroup(g.Namespace, g.Name, c.Now())
			}
		},
	}
}
