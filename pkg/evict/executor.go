package evict

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Store is the source of the work, and receives the results; type Store of package store says
// what each method does. Commit may return victims that are not in the claim of the work: they
// were chosen again since it was taken. It is called again if the marks take more than one try.
type Store interface {
	Work() <-chan struct{}
	TakeWork() []output.Work
	Commit(asker types.UID, inPermit []types.UID, now time.Time) ([]output.Victim, reasons.Reason)
	VictimsDeleted(asker types.UID, now time.Time)
	VictimsRefused(refused []output.Undeletable, now time.Time)
	FailPlan(asker types.UID, why reasons.Reason, refused []output.Undeletable, now time.Time)
	AbortPlan(asker types.UID, why reasons.Reason, now time.Time)
	KubeletRefused(asker types.UID, reason string, now time.Time) reasons.Reason
	KeepsOff(node string) (asker types.UID, ready bool)
}

// Executor carries out the work of a store. Fill in the fields, then call Run once.
type Executor struct {
	Store  Store
	Client kubernetes.Interface
	Pods   corelisters.PodLister
	// Recorder returns the recorder of a profile.
	Recorder func(profile string) events.EventRecorder
	// Leading reports whether this process may write.
	Leading func() bool
	// Reject rejects a pod that waits in Permit, with a message. It returns false and
	// does nothing if the pod does not wait there.
	Reject func(pod types.UID, message string) bool
	// InPermit lists the pods that wait in Permit.
	InPermit func() []types.UID
	// Taints keeps other schedulers off held nodes.
	Taints *Taints
	Clock  clock.WithTicker
	Logger klog.Logger

	askers workqueue.TypedRateLimitingInterface[types.UID]
	nodes  workqueue.TypedRateLimitingInterface[string]
	mu     locks.Mutex
	open   map[types.UID]*asker // askers with work that is not done; mu guards it
}

const (
	// parallel is how many askers, and how many nodes, are reconciled at the same time. A
	// reconcile makes one call at a time.
	parallel = 16
	// pollInterval is how often the executor checks for work without a signal. A signal
	// that came while this process did not lead is not repeated.
	pollInterval = time.Second
	// backoffMin and backoffMax limit the time between two tries of a key.
	backoffMin = 100 * time.Millisecond
	backoffMax = 5 * time.Second
)

// Run carries out work until the context ends. When it returns, no reconcile runs.
func (e *Executor) Run(ctx context.Context) {
	e.prepare()
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() { work(ctx, e.askers, e.reconcile) })
		workers.Go(func() { work(ctx, e.nodes, e.reconcileNode) })
	}
	defer workers.Wait()
	defer e.askers.ShutDown()
	defer e.nodes.ShutDown()
	ticker := e.Clock.NewTicker(pollInterval)
	defer ticker.Stop()
	checked := e.Clock.Now() // when taints were last checked
	for ctx.Err() == nil {
		if e.Leading() {
			for _, w := range e.Store.TakeWork() {
				e.add(&w)
			}
			if now := e.Clock.Now(); now.Sub(checked) >= taintInterval {
				checked = now
				e.untaintUnheld()
			}
		}
		select {
		case <-ctx.Done():
		case <-e.Store.Work():
		case <-ticker.C():
		}
	}
}

func (e *Executor) prepare() {
	e.askers, e.nodes = newQueue[types.UID](e.Clock), newQueue[string](e.Clock)
	e.open = map[types.UID]*asker{}
}

func newQueue[K comparable](c clock.WithTicker) workqueue.TypedRateLimitingInterface[K] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[K](backoffMin, backoffMax),
		workqueue.TypedRateLimitingQueueConfig[K]{Clock: c})
}

// work reconciles the keys of a queue until it is shut down.
func work[K comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[K], reconcile func(context.Context, K) error) {
	for {
		key, down := queue.Get()
		if down {
			return
		}
		if ctx.Err() == nil {
			if err := reconcile(ctx, key); err != nil {
				queue.AddRateLimited(key)
			} else {
				queue.Forget(key)
			}
		}
		queue.Done(key)
	}
}

// stopped reports whether this process must stop. err is the last error it got, or nil.
func (e *Executor) stopped(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, errNotLeading) || !e.Leading()
}
