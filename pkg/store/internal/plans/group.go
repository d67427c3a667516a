package plans

import (
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// What plans need to know about the PodGroup of an asker; see admission.PodGroups.

// groupFor returns the members that must start together with a pod and neither have nor
// hold a node; nil for none. Of too many, a new plan takes those first that have a slot,
// and the check of an earlier plan takes those that it was made for: otherwise it could
// refuse what the plan allowed, again and again.
func (x *Plans) groupFor(p *model.Pod, earlier *planner.Decision) *planner.Group {
	if !p.GroupIncomplete() {
		return nil
	}
	planned := func(m *model.Pod) bool { return m.State.HasSlot() }
	if earlier != nil && earlier.Ask.Group != nil {
		planned = func(m *model.Pod) bool { return slices.Contains(earlier.Ask.Group.Members, string(m.UID)) }
	}
	missing, _ := model.MissingMembers(p.PodGroup, p, planned)
	if len(missing) == 0 {
		return nil
	}
	g := &planner.Group{Name: p.PodGroup.Name().String()}
	for _, m := range missing {
		g.Members = append(g.Members, string(m.UID))
		i := slices.IndexFunc(g.Shares, func(share planner.Share) bool { return share.Leaf == m.App.Leaf })
		if i < 0 {
			i = len(g.Shares)
			g.Shares = append(g.Shares, planner.Share{Leaf: m.App.Leaf})
		}
		request := x.m.Preemption.Snapshot.Amounts(m.Request)
		g.Shares[i].Add(request, request)
	}
	x.setFree(g, p)
	return g
}

// setFree sets what is free for a group on all nodes that take new pods. The planning
// snapshot has that, except for the node that the asker holds.
func (x *Plans) setFree(g *planner.Group, p *model.Pod) {
	x.m.UpdateSnapshot()
	held, _ := x.m.Preemption.Ledger.Of(p.UID)
	for _, v := range x.m.Preemption.Snapshot.Nodes() {
		n := x.m.Cache.Nodes.Get(v.Name)
		if n == nil || n.Cordoned() {
			continue
		}
		free := v.Free
		if v.Name == held.Node {
			free = x.m.Preemption.Snapshot.Amounts(x.m.FreeBeside(n, p))
		}
		for t, amount := range free {
			for len(g.Free) <= t {
				g.Free = append(g.Free, 0)
			}
			g.Free[t] = planner.Plus(g.Free[t], max(amount, 0))
		}
	}
}

// nodeHasRoom tells whether a node that takes new pods has room for a pod, once leaving pods are
// gone and holders have what they wait for. If no plan for the pod found such a node, the filters
// refuse it. They may accept it once other members of the group are placed.
func (x *Plans) nodeHasRoom(p *model.Pod) bool {
	x.m.UpdateSnapshot()
	request := x.m.Preemption.Snapshot.Amounts(p.Request)
	return slices.ContainsFunc(x.m.Preemption.Snapshot.Nodes(), func(v *planner.Node) bool {
		for t, amount := range request {
			if amount > 0 && amount > v.Free.At(t) {
				return false
			}
		}
		n := x.m.Cache.Nodes.Get(v.Name)
		return n != nil && !n.Cordoned()
	})
}
