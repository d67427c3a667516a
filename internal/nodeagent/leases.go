package nodeagent

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// leaseKeeper renews the leases of all nodes: one write per node and quarter of the lease
// duration, without reading, because it remembers its last write.
type leaseKeeper struct {
	client   coordinationclient.LeaseInterface
	duration time.Duration
	wanted   func(node string) bool
	counters *counters
	queue    workqueue.TypedDelayingInterface[string]

	mu   sync.Mutex
	kept map[string]*keptLease
}

// keptLease is a node with a lease that is being renewed; lease is nil until it was
// written or read once.
type keptLease struct {
	owner   types.UID
	lease   *coordinationv1.Lease
	renewed bool
}

func newLeaseKeeper(client kubernetes.Interface, duration time.Duration, wanted func(string) bool, c *counters) *leaseKeeper {
	return &leaseKeeper{
		client: client.CoordinationV1().Leases(corev1.NamespaceNodeLease), duration: duration, wanted: wanted, counters: c,
		queue: workqueue.NewTypedDelayingQueue[string](), kept: map[string]*keptLease{},
	}
}

// ensure starts renewing the lease of a node, at once. It does nothing for a lease that
// is being renewed.
func (k *leaseKeeper) ensure(node string, uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if have := k.kept[node]; have != nil && have.owner == uid {
		return
	}
	k.kept[node] = &keptLease{owner: uid}
	k.queue.Add(node)
}

// drop stops renewing.
func (k *leaseKeeper) drop(node string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.kept, node)
}

// due returns the node's lease if it needs renewal, and stops renewing it otherwise. The
// check under the lock makes sure that a node that has just recovered is either seen here
// or added again by ensure.
func (k *leaseKeeper) due(node string) *keptLease {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.wanted(node) {
		delete(k.kept, node)
	}
	return k.kept[node]
}

// run renews the due leases until the queue is shut down.
func (k *leaseKeeper) run(ctx context.Context) {
	for {
		node, quit := k.queue.Get()
		if quit {
			return
		}
		k.turn(ctx, node)
		k.queue.Done(node)
	}
}

// turn renews one lease and schedules the next renewal.
func (k *leaseKeeper) turn(ctx context.Context, node string) {
	kept := k.due(node)
	if kept == nil {
		return
	}
	interval := k.duration / 4
	if err := k.renew(ctx, node, kept); err != nil {
		if ctx.Err() == nil {
			k.counters.count(&k.counters.errors)
			klog.FromContext(ctx).V(1).Info("lease not renewed", "node", node, "err", err)
		}
		k.queue.AddAfter(node, min(interval, time.Second))
		return
	}
	if !kept.renewed {
		// Spread the renewals of nodes that appeared together.
		kept.renewed = true
		interval = interval/2 + time.Duration(float64(interval/2)*spread(node))
	}
	k.queue.AddAfter(node, interval)
}

// spread maps a name to a number from 0 to 1, always the same.
func spread(name string) float64 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return float64(h.Sum32()) / (1 << 32)
}

// renew writes the lease. Only one worker at a time handles a node, so kept needs no lock.
func (k *leaseKeeper) renew(ctx context.Context, node string, kept *keptLease) error {
	now := metav1.NowMicro()
	if kept.lease == nil {
		created, err := k.client.Create(ctx, k.fresh(node, kept.owner, now), metav1.CreateOptions{})
		if err == nil {
			kept.lease = created
			return nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create lease %s: %w", node, err)
		}
		if kept.lease, err = k.client.Get(ctx, node, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("read lease %s: %w", node, err)
		}
	}
	next := k.fresh(node, kept.owner, now)
	next.ResourceVersion = kept.lease.ResourceVersion
	updated, err := k.client.Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		kept.lease = nil
		return fmt.Errorf("update lease %s: %w", node, err)
	}
	kept.lease = updated
	return nil
}

func (k *leaseKeeper) fresh(node string, owner types.UID, now metav1.MicroTime) *coordinationv1.Lease {
	seconds := int32(max(1, k.duration/time.Second))
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: node, Namespace: corev1.NamespaceNodeLease, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: node, UID: owner},
		}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
}
