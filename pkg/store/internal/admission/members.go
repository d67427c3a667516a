package admission

import (
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
)

func (x *States) setPodGroup(name pending.GroupName, minMember int) {
	g := x.Pending.Groups.Get(name)
	if g.Min() != minMember {
		x.planAnew(g)
	}
	g.Data.Shares = nil
	x.Preemption.Holds.TimesChange()
	x.Pending.Groups.SetMin(g, minMember)
}

// JoinMates updates the group that a pod names.
func (x *States) JoinMates(p *model.Pod) {
	name := pending.GroupName{Namespace: p.Namespace, Name: p.Labels[objects.PodGroupLabel]}
	if p.Mates != nil && p.Mates.Name() == name {
		return
	}
	x.LeaveMates(p)
	if !x.Pending.Groups.Followed || p.Foreign || name.Name == "" {
		return
	}
	p.Mates = x.Pending.Groups.Get(name)
	complete := p.Mates.Complete()
	x.Pending.Groups.Join(p.Mates, p.UID, p, p.State, p.Asks.Holds())
	x.groupChanged(p.Mates, complete, p.Asks.Holds())
}

// LeaveMates takes a pod out of its group.
func (x *States) LeaveMates(p *model.Pod) {
	g := p.Mates
	if g == nil {
		return
	}
	complete := g.Complete()
	x.Pending.Groups.Leave(g, p.UID)
	p.Mates = nil
	x.groupChanged(g, complete, p.Asks.Holds())
}

// SetHolds sets whether a pod holds a node.
func (x *States) SetHolds(p *model.Pod, holds bool) {
	p.Asks.SetHolds(holds)
	x.updateMate(p, true)
}

// updateMate updates a pod in its group after a change of its state, or of whether it
// holds a node.
func (x *States) updateMate(p *model.Pod, holds bool) {
	if g := p.Mates; g != nil {
		complete := g.Complete()
		x.Pending.Groups.Update(g, p.UID, p.State, p.Asks.Holds())
		x.groupChanged(g, complete, holds)
	}
}

// groupChanged does what follows from a change of a member. holds is set if that member
// holds a node, or held one: the time-outs of holds then change.
func (x *States) groupChanged(g *model.PodGroup, wasComplete, holds bool) {
	g.Data.Shares = nil
	if g.Complete() {
		x.planAnew(g)
	}
	if holds || wasComplete != g.Complete() {
		x.Preemption.Holds.TimesChange()
	}
}
