package admission

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// BringBackLost brings back all pods that wait for room on a node. It visits all pods, so it
// runs at most once a second, for all lost pods of that second.
func (x *States) BringBackLost(now time.Time) {
	if !x.Pending.Lost.Tick(now) {
		return
	}
	for _, p := range sortedByUID(x.Pods) {
		x.bringBack(p, now)
	}
}

// bringBack does for an unschedulable pod what the scheduler's queue does after an event
// that may help it. A pod that waits for the only node it can run on is skipped: changes of that
// node bring it back.
func (x *States) bringBack(p *model.Pod, now time.Time) {
	switch {
	case p.State != state.Unschedulable || x.Preemption.NodeBound.Awaits(p.UID):
	case p.Foreign || p.Asks.Holds():
		x.BackOff(p, model.Latest(p.NotUntil, now))
	default:
		x.Requeue(p, now)
	}
}

// Recall brings back a pod that tried to preempt too early. A pod of a queue that is
// still in its cycle is brought back when that cycle has failed.
func (x *States) Recall(p *model.Pod, now time.Time) {
	asks := p.Foreign && model.MayAskForeign(p.Pod) || p.App != nil && p.RequiredNode != "" && p.State == state.Unschedulable
	if x.Started && !x.Standby && asks && x.Pending.TooEarly.Take(p.UID) {
		x.ReturnBy(p, now)
	}
}

// RecallAll calls Recall for all pods when the store starts or begins to lead.
func (x *States) RecallAll(now time.Time) {
	for _, p := range sortedByUID(x.Pods) {
		x.Recall(p, now)
	}
}

// sortedByUID returns the pods in an order that does not depend on the map.
func sortedByUID(pods map[types.UID]*model.Pod) []*model.Pod {
	return slices.SortedFunc(maps.Values(pods), func(a, b *model.Pod) int { return cmp.Compare(a.UID, b.UID) })
}
