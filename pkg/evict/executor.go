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

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Store is the source of the work, and receives the results.
type Store interface {
	// Work is signalled when there may be work to take.
	Work() <-chan struct{}
	// TakeWork returns the pending writes, each once, in order.
	TakeWork() []output.Work
	// Commit returns the victims still to be deleted for the asker. If they were chosen
	// again since its work was taken, they may not be in its claim yet. If the plan is not
	// lawful any more, Commit returns the reason and ends the hold, or only the plan of a
	// node-bound asker. InPermit are the pods that wait for a Permit plugin. Commit is
	// called again if the marks of the victims take more than one try.
	Commit(asker types.UID, inPermit []types.UID, now time.Time) ([]output.Victim, reasons.Reason)
	// VictimsDeleted reports that all victims are deleted or terminating.
	VictimsDeleted(asker types.UID, now time.Time)
	// VictimsRefused reports each time that the API server refuses for good to delete
	// victims, whether the plan goes on or not.
	VictimsRefused(refused []output.Undeletable, now time.Time)
	// FailPlan reports that not all victims can be deleted, and those that the API server
	// refused to mark or to delete for good.
	FailPlan(asker types.UID, why reasons.Reason, refused []output.Undeletable, now time.Time)
	// AbortPlan reports the same for a node-bound asker if no victim was deleted, because
	// one of them is being bound right now. Its node stays held.
	AbortPlan(asker types.UID, why reasons.Reason, now time.Time)
	// KubeletRefused reports the reason why the kubelet had no capacity for an asker that
	// is gone; empty if it ended in another way. It returns the text for people.
	KubeletRefused(asker types.UID, reason string, now time.Time) reasons.Reason
	// KeepsOff returns the asker for which other schedulers must be kept off a node,
	// because victims are chosen for it; empty for none. It returns false while, as far
	// as the store knows, this process does not lead.
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
	// Note makes a text fit for an event. Advice renders a reason with what to do about
	// it.
	Note   func(text string) string
	Advice func(why reasons.Reason) string
	// Taints keeps other schedulers off held nodes.
	Taints *Taints
	Clock  clock.WithTicker
	Logger klog.Logger

	askers workqueue.TypedRateLimitingInterface[types.UID]
	nodes  workqueue.TypedRateLimitingInterface[string]
	mu     sync.Mutex
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
