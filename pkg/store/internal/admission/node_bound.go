package admission

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// JudgeNodeBound judges again which node-bound pods go first on their nodes, and tells the
// filters. It is called at the end of each change, after pods were admitted.
func (x *Slots) JudgeNodeBound(now time.Time) {
	for _, uid := range x.m.Preemption.NodeBound.TakeNoted() {
		p, leaf := x.m.Pods[uid], queues.NoQueue
		if p == nil {
			continue
		}
		if p.State == state.Queued {
			leaf = p.App.Leaf
		}
		x.m.Freed(x.m.Preemption.NodeBound.SetMayBeTried(uid, x.goesFirst(p), leaf, now))
	}
	x.m.Preemption.NodeBound.Publish(x.m.Cache.Nodes.Allocatable)
}

// goesFirst tells whether an untried node-bound pod keeps room on its node (D0). It does if it has
// a slot, or would have one in a window without limit. It does not while it has no queue, while a
// quota, its PodGroup or another plugin keeps it back, or after an error. An unschedulable pod
// counts as untried if its node changed since. A foreign pod keeps room until it has a node.
func (x *Slots) goesFirst(p *model.Pod) bool {
	switch {
	case p.State.HasNode():
		return false
	case p.Foreign, p.State.HasSlot():
		return true
	case p.State == state.NoQueue, p.State == state.GroupBlocked, p.GroupIncomplete():
		return false
	case p.State.WaitsForNode():
		if p.OnlyTimeHelps || p.Reason.Code == reasons.SchedulingGated {
			return false
		}
	case refusedByQuota(p):
		return false
	}
	return x.m.CheckPodQuota(p, queues.OnCommitted).OK()
}
