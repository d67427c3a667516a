package nodeagent

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/utils/clock"
)

// leases renews the leases of all nodes, each as a kubelet does.
type leases struct {
	client   kubernetes.Interface
	duration time.Duration
	wanted   func(node string) bool
	running  sync.WaitGroup

	mu      sync.Mutex // guards the rest
	renewed map[string]renewal
}

// renewal is a lease that is being renewed for a node.
type renewal struct {
	owner types.UID
	stop  context.CancelFunc
}

// ensure starts renewing the lease of a node, until drop or the end of the context. It does
// nothing for a lease that is being renewed, and for a node that is gone meanwhile.
func (l *leases) ensure(ctx context.Context, node *corev1.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, renewed := l.renewed[node.Name]
	if renewed && before.owner == node.UID || !l.wanted(node.Name) {
		return
	}
	if renewed {
		before.stop()
	}
	ctx, stop := context.WithCancel(ctx)
	l.renewed[node.Name] = renewal{node.UID, stop}
	owned := func(lease *coordinationv1.Lease) error {
		lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
		return nil
	}
	interval := l.duration / 4
	renewer := lease.NewController(clock.RealClock{}, l.client, node.Name, int32(max(1, l.duration/time.Second)), nil,
		interval, node.Name, corev1.NamespaceNodeLease, owned)
	l.running.Go(func() {
		select {
		case <-ctx.Done():
		case <-time.After(rand.N(interval)): // nodes that appear together do not renew their leases together
			renewer.Run(ctx)
		}
	})
}

// drop stops renewing.
func (l *leases) drop(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, renewed := l.renewed[node]; renewed {
		r.stop()
		delete(l.renewed, node)
	}
}
