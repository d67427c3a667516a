package model

import (
	"cmp"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"k8s.io/apimachinery/pkg/types"
)

// Only the first pod of a gang carries its style: a Spark driver has the style, and its
// executors have only the name of their group. So that a Hard gang never runs in part,
// all pods of its groups wait together with the pod that asks for Hard, regardless of the
// order in which they arrive.

// HardGang is an application in which a pending pod asks for a Hard gang.
type HardGang struct {
	Name cache.AppName
	Says map[types.UID]*Pod // pods that ask for it; never empty
	Kept map[types.UID]*Pod // members that are kept back because of them
}

// Elder orders pods: creation, then UID.
func Elder(a, b *Pod) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID)) }

// PodGroup is a PodGroup, or a group that pods name and that does not exist.
type PodGroup = pending.Group[*Pod, GroupData]

// GroupData is what the store keeps with a group.
type GroupData struct {
	Shares []share           // requests of the missing members; nil if not computed
	Losses preemption.Losses // losses until it has started
}

// Apart tells whether a pod may start only together with its group.
func (p *Pod) Apart() bool { return p.Mates != nil && !p.Mates.Complete() }

// MateOf tells whether two pods are of the same group.
func (p *Pod) MateOf(o *Pod) bool { return o != nil && p.Mates != nil && p.Mates == o.Mates }

// Group is the name of the pod's PodGroup in holds; empty for none.
func (p *Pod) Group() string {
	if p.Mates == nil {
		return ""
	}
	return p.Mates.Name().String()
}

// WithoutPlace returns the first member, by name, that found no node; nil for none.
func WithoutPlace(g *PodGroup, but *Pod) *Pod {
	var first *Pod
	for _, m := range g.InState(state.Unschedulable, state.BackingOff) {
		found := m.Asks.Holds() || m.Reason.Code == reasons.BackingOff || m.Reason.Code == reasons.PodGroupIncomplete
		if m != but && !found && (first == nil || m.Name < first.Name) {
			first = m
		}
	}
	return first
}

// The quota check of a PodGroup covers all missing members; see admission.Groups.

// share is the request of the missing members of one application.
type share struct {
	App     *App
	Request resources.Vector
}

// SharesOf sums requests of pods by application.
func SharesOf(chosen []*Pod) []share {
	var out []share
	at := map[*App]int{}
	for _, p := range chosen {
		i, known := at[p.App]
		if !known {
			i = len(out)
			at[p.App] = i
			out = append(out, share{App: p.App})
		}
		out[i].Request = out[i].Request.Add(p.Request)
	}
	return out
}

// firstMember orders members: priority, then age, then UID.
func firstMember(a, b *Pod) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}
