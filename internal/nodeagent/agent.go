package nodeagent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// workers is the number of concurrent API calls for pods, and again for nodes.
const workers = 16

// Agent simulates the nodes. Make one with New, run it once with Run.
type Agent struct {
	client         kubernetes.Interface
	kubeletVersion string
	ledger         *ledger
	ready          atomic.Bool
	// addresses counts the addresses of pods.
	addresses atomic.Uint32

	podInformer, nodeInformer cache.SharedIndexInformer
	pods                      corelisters.PodLister
	nodes                     corelisters.NodeLister
	podQueue, nodeQueue       workqueue.TypedRateLimitingInterface[string]
}

// New returns an agent that has not started yet. The client should have no client-side rate
// limit (QPS -1): the number of workers bounds the load. The version is that of the nodes.
func New(client kubernetes.Interface, kubeletVersion string) *Agent {
	a := &Agent{client: client, kubeletVersion: kubeletVersion, ledger: newLedger()}
	a.addresses.Store(rand.Uint32())
	a.podQueue = newQueue()
	a.nodeQueue = newQueue()
	a.podInformer = coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
		func(l *metav1.ListOptions) { l.FieldSelector = "spec.nodeName!=" })
	a.nodeInformer = coreinformers.NewFilteredNodeInformer(client, 0, cache.Indexers{},
		func(l *metav1.ListOptions) { l.LabelSelector = LabelNode + "=" + LabelNodeValue })
	a.pods = corelisters.NewPodLister(a.podInformer.GetIndexer())
	a.nodes = corelisters.NewNodeLister(a.nodeInformer.GetIndexer())
	return a
}

func newQueue() workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond, 5*time.Second))
}

// Run simulates the nodes until the context ends; then it returns nil. It returns an error when the watches
// cannot be set up.
func (a *Agent) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer a.podQueue.ShutDown()
	defer a.nodeQueue.ShutDown()

	nodesSynced, podsSynced, err := a.watch()
	if err != nil {
		return err
	}
	group.Go(func() { a.nodeInformer.RunWithContext(ctx) })
	group.Go(func() { a.podInformer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), nodesSynced, podsSynced) {
		return nil
	}
	klog.FromContext(ctx).Info("simulated nodes in sync", "nodes", len(a.nodeInformer.GetStore().ListKeys()), "pods", len(a.podInformer.GetStore().ListKeys()))
	for range workers {
		group.Go(func() { work(ctx, a.podQueue, a.reconcilePod) })
		group.Go(func() { work(ctx, a.nodeQueue, a.reconcileNode) })
	}
	a.ready.Store(true)
	<-ctx.Done()
	return nil
}

// watch registers the handlers and returns functions that tell whether they have seen the
// initial lists.
func (a *Agent) watch() (nodesSynced, podsSynced cache.InformerSynced, err error) {
	nodes, err := a.nodeInformer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    a.nodeSeen,
		UpdateFunc: func(_, o any) { a.nodeSeen(o) },
		DeleteFunc: a.nodeGone,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("node agent: watch nodes: %w", err)
	}
	pods, err := a.podInformer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    a.podSeen,
		UpdateFunc: a.podChanged,
		DeleteFunc: a.podGone,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("node agent: watch pods: %w", err)
	}
	return nodes.HasSynced, pods.HasSynced, nil
}

// work processes keys of a queue until it is shut down. A failed key is repeated after a
// growing delay.
func work(ctx context.Context, q workqueue.TypedRateLimitingInterface[string], do func(context.Context, string) error) {
	for {
		key, quit := q.Get()
		if quit {
			return
		}
		err := do(ctx, key)
		switch {
		case err == nil:
			q.Forget(key)
		case ctx.Err() == nil:
			klog.FromContext(ctx).V(1).Info("will be repeated", "object", key, "err", err)
			q.AddRateLimited(key)
		}
		q.Done(key)
	}
}

// deleted unwraps the object of a delete event, which may be a tombstone.
func deleted[T any](o any) (T, bool) {
	if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = t.Obj
	}
	x, ok := o.(T)
	if !ok {
		utilruntime.HandleError(fmt.Errorf("node agent: unexpected object %T in a delete event", o))
	}
	return x, ok
}

func podKey(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }
