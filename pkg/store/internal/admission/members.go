package admission

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// SetPodGroup sets how many members of a group start together; 0 if there is no such
// PodGroup.
func (x *States) SetPodGroup(name pending.PodGroupName, minMember int) {
	g := x.m.Pending.PodGroups.Get(name)
	if g.Min() != minMember {
		x.m.Pending.Demand.Changed()
	}
	x.m.Pending.PodGroups.SetMin(g, minMember)
	x.groupChanged(g)
}

// JoinGroup updates the group that a pod names.
func (x *States) JoinGroup(p *model.Pod) {
	name := x.m.GroupNameOf(p.Pod)
	if p.PodGroup != nil && p.PodGroup.Name() == name {
		return
	}
	x.LeaveGroup(p)
	if name == (pending.PodGroupName{}) {
		return
	}
	p.PodGroup = x.m.Pending.PodGroups.Get(name)
	x.m.Pending.Demand.Changed()
	x.updateMember(p)
}

// LeaveGroup takes a pod out of its group.
func (x *States) LeaveGroup(p *model.Pod) {
	g := p.PodGroup
	if g == nil {
		return
	}
	x.m.Pending.PodGroups.Leave(g, p.UID)
	p.PodGroup = nil
	x.m.Pending.Demand.Changed()
	x.groupChanged(g)
}

// SetHoldsNode sets whether a pod holds a node.
func (x *States) SetHoldsNode(p *model.Pod, holds bool) {
	p.Asker.SetHoldsNode(holds)
	x.updateMember(p)
}

// updateMember updates a pod in its group after a change of its state, or of whether it
// holds a node.
func (x *States) updateMember(p *model.Pod) {
	if g := p.PodGroup; g != nil {
		x.m.Pending.PodGroups.Set(g, p.UID, p, p.State, p.Asker.HoldsNode())
		x.groupChanged(g)
	}
}

// groupChanged does what follows from a change of a group or member.
func (x *States) groupChanged(g *model.PodGroup) {
	g.Data.Shares = nil
	x.m.Preemption.Ledger.TimesChange()
	if g.Complete() {
		x.planAnew(g)
	}
}

// planAnew allows plans for the members of a PodGroup that has started, regardless of
// earlier losses.
func (x *States) planAnew(g *model.PodGroup) {
	if g.Data.Losses.IsEmpty() {
		return
	}
	g.Data.Losses = preemption.Losses{}
	for _, m := range g.InState(state.GroupBlocked, state.Unschedulable, state.BackingOff) {
		m.Asker.RetryAt = time.Time{}
		x.Arm(m, time.Time{})
	}
}

// CheckGroup is the verdict on a pod that the scheduler tries although it was not admitted
// together with its group.
func (x *States) CheckGroup(p *model.Pod) queues.Verdict {
	if !p.GroupIncomplete() || p.State.HasSlot() || p.Asker.HoldsNode() {
		return queues.Granted
	}
	return model.Refused(p.PodGroup.Why())
}
