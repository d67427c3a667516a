package admission

import (
	"fmt"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// PodGroups starts the members of PodGroups together, or none of them.
type PodGroups struct {
	m      *model.Model
	states *States
}

// NewPodGroups returns the PodGroups of a model.
func NewPodGroups(m *model.Model, states *States) *PodGroups { return &PodGroups{m, states} }

// The members of a PodGroup start together, or none starts. Plugin Coscheduling ensures
// that: each member waits, with its node and its quota, until minMember of them have a
// place; if one finds none, or after a time-out, all places are taken back. During that
// time other pods cannot use the places, so the store lets a group try only when it can
// succeed:
//
//	             too few of them can go on, the quota has no room for
//	             the rest of them, or another group is being placed
//	  Queued ────────────────────────────────────────────────────────► GroupBlocked
//	     │   ▲                                                               │
//	     │   └───────────────────────────────────────────────────────────────┘
//	     │                    none of these reasons is left
//	     └──► Admitted, together with all missing members
//
// A member that found no node is Unschedulable like any pod and does not count as able to
// go on. When the scheduler's hints bring it back, its group can go on, too. A member that
// holds a node counts as placed, so the plan for the next member is made at once, while the
// victims of the first one are still leaving. One group is placed at a time: two groups
// that each take half of the nodes would block each other for ever. Other groups wait for
// it as long as for a pod without a result of its cycle (the slot lease). How long it
// keeps its places without progress is set by its own PodGroup.
//
// Once minMember members have a place, further members are ordinary pods.

// startGroup is for a pod that is first in the order while its group lacks members.
// Either all missing members are admitted together with it, or it becomes GroupBlocked.
func (x *PodGroups) startGroup(p *model.Pod, now time.Time) {
	g := p.PodGroup
	if !x.mayStart(g, now) {
		x.m.Pending.Classes.Leave(&p.EquivalenceClass, p.State)
		p.Reason = reasons.Reason{}
		x.states.Enter(p, state.GroupBlocked)
		return
	}
	x.m.Pending.PodGroups.Place(g, now.Add(x.m.Options.SlotLease))
	for _, m := range g.Next() {
		if m.State == state.GroupBlocked {
			x.states.ToQueued(m)
		}
		x.states.LetThrough(m, now)
	}
	x.releaseBlocked(g)
}

// mayStart tells whether a group may start now, and notes what it waits for otherwise.
func (x *PodGroups) mayStart(g *model.PodGroup, now time.Time) bool {
	x.m.Pending.PodGroups.Reopen(g)
	if !g.Able() {
		return false
	}
	if x.m.Pending.PodGroups.OtherIsBeingPlaced(g, now) {
		x.m.Pending.PodGroups.Wait(g)
		return false
	}
	return x.quotaAllows(g)
}

// TakeBackSlots takes back the admission of the members of groups that cannot start any more,
// because a cycle of a member failed or a member is gone. The scheduler may still try the
// others; it then gets the reason not to.
func (x *PodGroups) TakeBackSlots() {
	for _, g := range x.m.Pending.PodGroups.Touched() {
		if g.Able() || g.Admitted() == 0 {
			continue
		}
		for _, m := range g.Select(func(m *model.Pod) bool { return m.State.HasSlot() && !m.Asker.HoldsNode() }) {
			x.states.putBack(m)
		}
	}
}

// WakeGroups puts one member of each marked group into the order; the others follow if
// the group starts.
func (x *PodGroups) WakeGroups(now time.Time) {
	for _, g := range x.m.Pending.PodGroups.TakeTouched(x.m.Options.SlotLease, now) {
		x.wakeGroup(g)
	}
}

// wakeGroup is WakeGroups for one group.
func (x *PodGroups) wakeGroup(g *model.PodGroup) {
	x.partClasses(g)
	refused := !g.Refusal().OK() && x.m.Cache.Tree().Queue(g.Refusal().At) != nil
	if refused && g.Able() && g.Missing() > 0 && !x.quotaAllows(g) {
		return
	}
	x.m.Pending.PodGroups.Reopen(g)
	switch {
	case g.Blocked() == 0:
	case g.Missing() <= 0:
		x.releaseBlocked(g)
	case g.Able() && g.In(state.Queued) == 0:
		x.states.ToQueued(g.InState(state.GroupBlocked)[0])
	}
}

// partClasses takes the members of an incomplete group out of their equivalence classes,
// because such members are tried with their group and not with a class.
func (x *PodGroups) partClasses(g *model.PodGroup) {
	if g.Complete() {
		return
	}
	for _, m := range g.Select(func(p *model.Pod) bool { return p.EquivalenceClass != nil }) {
		x.m.Pending.Classes.Leave(&m.EquivalenceClass, m.State)
		if m.State == state.Queued {
			x.states.ToQueued(m) // its ask has no class now
		}
	}
}

// releaseBlocked puts the blocked members into the order, because no member is missing any
// more.
func (x *PodGroups) releaseBlocked(g *model.PodGroup) {
	for _, m := range g.InState(state.GroupBlocked) {
		x.states.ToQueued(m)
	}
}

// checkMembers checks the quotas for n members of a group on a basis with the demand
// before them: for each application as if the members of those before it had started.
// counted tells whether an application counts against maxapplications without them.
func checkMembers(
	m *model.Model, g *model.PodGroup, n int, shares []model.Share, on queues.Basis, before *queues.Demand, counted func(*model.App) bool,
) queues.Verdict {
	for _, part := range shares {
		v := m.Cache.Books.CheckQuota(&part.App.CacheApp, counted(part.App), part.Request, on.With(before))
		if !v.OK() {
			v.Reason.Text = fmt.Sprintf("PodGroup %s starts with %d more pods at once: %s", g.Name(), n, v.Reason.Text)
			return v
		}
		before.Add(m.Cache.Tree(), part.App.Leaf, part.App.Owner, part.Request, !counted(part.App))
	}
	return queues.Granted
}

// sharesOf sums requests of pods by application.
func sharesOf(chosen []*model.Pod) []model.Share {
	var out []model.Share
	for _, p := range chosen {
		i := slices.IndexFunc(out, func(s model.Share) bool { return s.App == p.App })
		if i < 0 {
			i, out = len(out), append(out, model.Share{App: p.App})
		}
		out[i].Request = out[i].Request.Add(p.Request)
	}
	return out
}

// quotaAllows tells whether the quotas allow the missing members, and notes the refusal
// otherwise.
func (x *PodGroups) quotaAllows(g *model.PodGroup) bool {
	if g.Data.Shares == nil {
		g.Data.Shares = sharesOf(g.Next())
	}
	v := checkMembers(x.m, g, g.Missing(), g.Data.Shares, queues.OnCommitted, queues.NewDemand(), (*model.App).Counted)
	if !v.OK() {
		x.m.Pending.PodGroups.Refuse(g, v)
	}
	return v.OK()
}
