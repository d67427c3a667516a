package model

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// HardGang is an application in which a pending pod asks for a Hard gang.
type HardGang struct {
	Name        cache.AppName
	HardPods    map[types.UID]*Pod // pods that ask for it; never empty
	BlockedPods map[types.UID]*Pod // members that are blocked because of them
}

// PodGroup is a PodGroup, or a group that pods name and that does not exist.
type PodGroup = pending.PodGroup[*Pod, GroupData]

// GroupData is what the store keeps with a group.
type GroupData struct {
	Shares []Share           // requests of the missing members; nil if not computed
	Losses preemption.Losses // losses until it has started
}

// GroupNameOf is the group that a pod names; zero for none.
func (x *Model) GroupNameOf(p *objects.Pod) pending.PodGroupName {
	if !x.Pending.PodGroups.Followed || p.Foreign || p.Labels[objects.PodGroupLabel] == "" {
		return pending.PodGroupName{}
	}
	return pending.PodGroupName{Namespace: p.Namespace, Name: p.Labels[objects.PodGroupLabel]}
}

// GroupIncomplete tells whether a pod may start only together with its group.
func (p *Pod) GroupIncomplete() bool { return p.PodGroup != nil && !p.PodGroup.Complete() }

// GroupInHolds is the name of the pod's PodGroup in holds; empty for none.
func (p *Pod) GroupInHolds() string {
	if p.PodGroup == nil {
		return ""
	}
	return p.PodGroup.Name().String()
}

// Share is the request of the missing members of one application.
type Share struct {
	App     *App
	Request resources.Vector
}

// MissingMembers returns the pods that have to start with a PodGroup, or with a member of it
// if p is not nil: as many as minMember lacks, or fewer if there are no more in queues. Of
// too many, it takes those first for which the function holds.
func MissingMembers(g *PodGroup, p *Pod, first func(*Pod) bool) (missing []*Pod, enough bool) {
	lack, rest := g.Min(), []*Pod{}
	for _, m := range g.Members() {
		switch {
		case m.State.HasNode() || m.Asker.HoldsNode() || m == p:
			lack--
		case m.App == nil:
		case first(m):
			missing = append(missing, m)
		default:
			rest = append(rest, m)
		}
	}
	missing = append(missing, rest...)
	return missing[:min(len(missing), max(lack, 0))], g.Min() > 0 && len(missing) >= lack
}

// ComparePods orders pods by higher priority, earlier creation and UID.
func ComparePods(a, b *Pod) int {
	return order.CompareAsks(a.AskKey(), b.AskKey())
}
