package admission

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"k8s.io/apimachinery/pkg/types"
)

func (x *Slots) FillInOrder(now time.Time) {
	for x.Pending.HasSlot() {
		ask, ok := x.Pending.Order.Next()
		if !ok {
			return
		}
		p := x.Pods[types.UID(ask.UID())]
		if p.EquivalenceClass != nil && x.Pending.Classes.Limit.Full() {
			return
		}
		if v := x.Cache.Books.CheckQuota(&p.App.CacheApp, p.Request, queues.OnCommitted); !v.OK() {
			x.Pending.Order.Block(ask.Group(), v)
			continue
		}
		if p.Mates != nil && p.Mates.LacksMembers() {
			x.groups.startTogether(p, now)
			continue
		}
		x.states.toAdmitted(p, now)
		x.Out.Activate = append(x.Out.Activate, p.Ref())
	}
}

// Unblock checks blocked groups again where the blocking queue has got more room.
func (x *Slots) Unblock() {
	for _, g := range x.Pending.TakeBlocked(x.Cache.Tree()) {
		a := x.Pods[types.UID(g.First().UID())].App
		if v := x.Cache.Books.CheckQuota(&a.CacheApp, g.Request(), queues.OnCommitted); v.OK() {
			x.Pending.Order.Unblock(g)
		} else {
			x.Pending.Order.Block(g, v)
		}
	}
}

// SettleLost brings back all pods that wait for room on a node. It visits all pods, so it
// runs at most once a second, for all lost pods of that second.
func (x *Slots) SettleLost(now time.Time) {
	if !x.Pending.Lost.Tick(now) {
		return
	}
	for _, p := range model.SortedByUID(x.Pods) {
		x.bringBack(p, now)
	}
}

// bringBack does for an unschedulable pod what the scheduler's queue does after an event that may
// help it. A pod that waits for the only node it can run on is skipped: changes of that
// node bring it back.
func (x *Slots) bringBack(p *model.Pod, now time.Time) {
	switch {
	case p.State != state.Unschedulable || x.Preemption.NodeWaits.Of(p.UID) != "":
	case p.Foreign || p.Asks.Holds():
		x.states.Cool(p, model.Latest(p.NotUntil, now))
	default:
		x.states.Requeue(p, now)
	}
}

// Recall brings back a pod that tried to preempt too early. A pod of a queue that is
// still in its cycle is brought back when that cycle has failed.
func (x *Slots) Recall(p *model.Pod, now time.Time) {
	asks := p.Foreign && model.MayAskForeign(p.Pod) || p.App != nil && p.RequiredNode != "" && p.State == state.Unschedulable
	if x.Started && !x.Standby && asks && x.Pending.TooEarly.Take(p.UID) {
		x.states.Rest(p, now)
	}
}

// RecallAll calls recall for all pods when the store starts or begins to lead.
func (x *Slots) RecallAll(now time.Time) {
	for _, p := range model.SortedByUID(x.Pods) {
		x.Recall(p, now)
	}
}
