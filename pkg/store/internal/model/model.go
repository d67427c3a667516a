package model

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// Model is all state of the store. It has no lock: its caller has one. Make one with New.
type Model struct {
	Options  Options
	Started  bool           // all existing objects are known
	Standby  bool           // another process leads
	NotReady reasons.Reason // why the store cannot be started yet, if something is missing

	Cache       *cache.Cache
	Pods        map[types.UID]*Pod
	NoWaitState *WaitState // of all pods that run and need none; it stays empty
	Unplaced    map[types.UID]*Pod
	Apps        cache.Apps[*App]
	Gangs       map[cache.AppName]*HardGang

	Pending         *pending.Pending[*Pod, GroupData]
	Preemption      *preemption.Preemption
	PreemptionQueue preemption.Queue
	sparse          []*order.Sparse // all orders but the main one
	History         History
	Out             Outbox
}

// New returns a model with the queues of spec, without objects.
func New(spec *config.Spec, options Options) *Model {
	options.setDefaults()
	x := &Model{
		Options:         options,
		Standby:         options.Standby,
		Pods:            map[types.UID]*Pod{},
		NoWaitState:     NewWaitState(nil, ""),
		Unplaced:        map[types.UID]*Pod{},
		Apps:            cache.NewApps[*App](),
		Gangs:           map[cache.AppName]*HardGang{},
		Pending:         pending.New[*Pod, GroupData](options.Window, options.MaxWindow, ComparePods),
		Preemption:      preemption.New(),
		PreemptionQueue: preemption.NewQueue(),
		History:         newHistory(),
		Out:             Outbox{Wake: make(chan struct{}, 1), WorkReady: make(chan struct{}, 1)},
	}
	x.Cache = cache.New(spec, options.QueueGrace, func(uid types.UID) *cache.Pod {
		if p := x.Pods[uid]; p != nil {
			return &p.CachePod
		}
		return nil
	})
	x.sparse = []*order.Sparse{&x.Pending.RetryEarly, &x.Pending.AheadOnly, &x.PreemptionQueue.Order}
	x.IndexQueues()
	x.Cache.Snapshot()
	return x
}

// NotStarted is the reason that a pod waits before Start.
func (x *Model) NotStarted() reasons.Reason {
	if !x.NotReady.None() {
		return x.NotReady
	}
	return reasons.New(reasons.Starting, "the scheduler has not seen all pods and queues yet")
}

// EndChange publishes a change and stamps it with its time.
func (x *Model) EndChange(now time.Time) {
	x.Publish()
	x.History.End(x.Cache.Tree().TreeGeneration(), x.Cache.Snapshot, now)
}

// Publish marks what was published as out of date, or publishes it.
func (x *Model) Publish() {
	x.Cache.NoteStale()
	x.Preemption.Ledger.Publish()
}
