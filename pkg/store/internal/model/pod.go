package model

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Pod is the record of a pod: that of package cache, and what the store has of it beside.
// Most pods of a cluster run. To save memory, state that only pending pods need is in
// WaitState and Asker. Pods that need no WaitState share an empty one.
type Pod struct {
	CachePod
	*WaitState
	State state.State
	Asked bool // it joined its application without a node
	// Overdue tells whether the pod was deleted and is still there after the time for which it
	// counts as leaving.
	Overdue bool

	ChosenBy    types.UID // the asker that chose it as a victim; empty for none
	ChosenByOwn bool      // that asker is node-bound and has the pod's namespace or queue (IsOfItsOwn)

	App      *App              // nil while unplaced
	Gang     *HardGang         // the Hard gang that it asks for or is kept back by; nil if none
	PodGroup *PodGroup         // the PodGroup that it names; nil if none
	Asker    *preemption.Asker // nil once it runs, unless it held a node

	Failed *output.Failures // nil for none
	Report *history.Report  // nil once it runs and nothing is left to report

	history.Mark[output.PodRecord]
}

// CachePod renames cache.Pod: embedded as Pod it would hide the event, which is a field Pod
// of it.
type CachePod = cache.Pod

// WaitState is the state that a pod needs until it runs. A pod of a queue has its own until
// then; a foreign pod has its own while it has no node. A deleted pod on a node has its own while
// its Timer is set.
type WaitState struct {
	Ask      *order.Ask    // set while Queued
	RetryAsk *order.Ask    // set while the pod is in a retry order; it is BackingOff or Unschedulable then
	RetryIn  *order.Sparse // that retry order

	// LargerRequest is the request before it shrank, kept until a cycle of the pod ends; else nil.
	// The scheduler's queue may not have seen the change, so that cycle may use the larger request.
	LargerRequest *resources.Vector

	EquivalenceClass    *pending.Class // its equivalence class; set once it found no node
	ReopenedAtAdmission uint64         // ClassLimit.Reopened when it was admitted
	NodesGeneration     uint64         // Nodes.Generation when it was last passed to the scheduler's queue
	GaveWay             int            // how often in a row it found a node and went back to the order
	Reason              reasons.Reason // why it has no queue, or is unschedulable
	// DemandVerdict tells whether quotas would let it run on a new node (package admission); nil
	// before that is decided.
	DemandVerdict *queues.Verdict
	// OnlyTimeHelps: no event brings it back before its back-off ends. Its cycle or its bind
	// ended with an error, its lease ended, or another plugin refused it.
	OnlyTimeHelps bool
	BackoffEnds   time.Time     // end of its back-off
	LateEvent     *objects.Pod  // the latest event while it is assumed
	Tallied       history.Tally // its contribution to the counts

	// Timer is the end of its lease or back-off; on a node, of the time for which it counts
	// as leaving.
	Timer pending.Timer[*Pod]
}

// NewPod returns the record of a pod after its first event.
func NewPod(event *objects.Pod, noWaitState *WaitState) *Pod {
	p := &Pod{CachePod: cache.NewPod(event), WaitState: noWaitState}
	if event.Node == "" || !event.Foreign {
		p.WaitState = NewWaitState(p, p.UID) // its own until it runs in a queue
	}
	if event.Node == "" {
		p.Asker = preemption.NewAsker(p.UID)
	}
	return p
}

// NewWaitState returns the wait state of a pod; that of no pod and no UID is the shared one.
func NewWaitState(p *Pod, uid types.UID) *WaitState {
	return &WaitState{Timer: pending.NewTimer(p, uid)}
}

// Leaves tells whether the pod has a node and is about to leave it: it was deleted or
// chosen as a victim.
func (p *Pod) Leaves() bool {
	return (p.Foreign || p.State.HasNode()) && (p.Deleting || p.ChosenBy != "")
}

// IsOfItsOwn tells whether a pod has the namespace or the queue of an asker. The asker's
// own user may then cause the pod to leave. Pods of one controller or of one application have
// one namespace.
func (p *Pod) IsOfItsOwn(asker *Pod) bool {
	return p.Namespace == asker.Namespace || p.App != nil && asker.App != nil && p.App.Leaf == asker.App.Leaf
}

// AskKey orders the pod among those of its application.
func (p *Pod) AskKey() order.AskKey {
	return order.AskKey{Priority: p.Priority, Created: p.Created, UID: string(p.UID)}
}

// Basis is what counts for quotas in a cycle of the pod: pods that have a node, and those that
// hold one. For a pod that holds a node itself the holders do not count, because its plan has
// already counted them.
func (p *Pod) Basis() queues.Basis {
	if p.Asker.HoldsNode() {
		return queues.OnAllocated
	}
	return queues.OnArriving
}

// AskInfo is the pod as order.Index.IsAhead compares it.
func (p *Pod) AskInfo() order.AskInfo {
	return order.AskInfo{Leaf: p.App.Leaf, Priority: p.Priority, Request: p.Request, Own: p.Charged(cache.Admitted)}
}

// HeldByClass tells whether a pod waits because its equivalence class failed.
func (p *Pod) HeldByClass() bool {
	return p.State == state.Queued && p.EquivalenceClass.Failed()
}

// Guarded is the pod as budgets see it.
func (p *Pod) Guarded() cache.Guarded {
	return cache.Guarded{Pod: p.Pod, Deleting: p.Deleting, Chosen: p.ChosenBy != ""}
}

// EnsureAsker gives a pod a record as an asker if it has none.
func (p *Pod) EnsureAsker() {
	if p.Asker == nil {
		p.Asker = preemption.NewAsker(p.UID)
	}
}

// AssumedUse is the request that the scheduler's cache may have for an assumed pod.
func (p *Pod) AssumedUse() resources.Vector { return ptr.Deref(p.LargerRequest, p.Uses()) }

// Queue is the path of a pod's queue; empty for a pod without one.
func (p *Pod) Queue(tree *queues.Draft) string {
	if p.App == nil {
		return ""
	}
	return tree.Queue(p.App.Leaf).Path
}

// Columns are the columns that a pod in its state is charged in; see lingers for longest.
func (p *Pod) Columns(longest time.Duration) cache.Columns {
	switch {
	case p.App == nil:
		return 0
	case p.State.HasNode():
		return cache.Allocated | p.moves(longest)
	case p.State.HasSlot() && !p.Asker.HoldsNode():
		return cache.Pending | cache.Admitted
	}
	return cache.Pending | p.moves(longest)
}

// Stopped is why a pod waits after a failed cycle: the quota that it is beyond, or the result of
// the cycle. A pod that only quotas refused has had no failed cycle of its own. It waits because
// another pod of its equivalence class found no node.
func (p *Pod) Stopped() reasons.Reason {
	switch {
	case !p.Asker.HoldsNode() && !p.BeyondQuota().None():
		return p.BeyondQuota()
	case p.Reason.None() && !p.State.WaitsForNode():
		return reasons.New(reasons.NoNodeFits, "no node could take the pod")
	}
	return p.Reason
}

// WithinQuota tells whether the pod is part of the demand.
func (p *Pod) WithinQuota() bool { return p.DemandVerdict != nil && p.DemandVerdict.OK() }

// BeyondQuota is the quota that keeps the pod out of the demand; none if it is in, or that is
// not decided yet.
func (p *Pod) BeyondQuota() reasons.Reason {
	return ptr.Deref(p.DemandVerdict, queues.Verdict{}).Reason
}

// DemandOf is what PodScheduled of a waiting pod should say; Unsaid if the scheduler's
// own condition is right or none is needed.
func (p *Pod) DemandOf() (objects.DemandSaid, reasons.Reason) {
	switch {
	case p.State == state.NoQueue && p.Demand == objects.DemandWanted && !p.Gated: // no queue takes it, so no node helps
		return objects.DemandBeyond, p.Reason
	case !p.BeyondQuota().None():
		return objects.DemandBeyond, p.BeyondQuota()
	case !p.WithinQuota() || p.Demand == objects.DemandUnsaid || p.isUntried():
		return objects.DemandUnsaid, reasons.Reason{}
	}
	return objects.DemandWanted, p.Stopped()
}

// isUntried tells whether a pod waits in the order for its first cycle with the nodes: only
// quotas refused it. It may find a node, and if not the scheduler says so. A member of a
// PodGroup that has not started is tried with others, and is counted with them.
func (p *Pod) isUntried() bool {
	return p.State == state.Queued && p.Failed == nil && p.Asker.TriedAt.IsZero() && !p.HeldByClass() && !p.GroupIncomplete()
}

// NoDaemonSet is why a foreign pod that is not owned by a DaemonSet holds no node.
var NoDaemonSet = reasons.New(reasons.HoldGivenUp, "no DaemonSet owns the pod")

// MayAskForeign tells whether a foreign pod may be an asker.
func MayAskForeign(p *objects.Pod) bool {
	return p.Peer && p.RequiredNode != "" && p.Node == "" && !p.Deleting && !p.Gated
}

// CompareAge orders pods: creation, then UID.
func CompareAge(a, b *Pod) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}

// CompareUID orders pods by UID.
func CompareUID(a, b *Pod) int { return cmp.Compare(a.UID, b.UID) }

// SortedPods returns all pods, oldest first.
func (x *Model) SortedPods() []*Pod {
	return slices.SortedFunc(maps.Values(x.Pods), CompareAge)
}

// DelayEnd is when the preemption delay of the pod's leaf ends (P1).
func (p *Pod) DelayEnd(tree *queues.Draft) time.Time {
	return p.Created.Add(tree.Queue(p.App.Leaf).Policies.PreemptionDelay)
}

// Sweeping returns the sweep of a pod, shared by its equivalence class.
func (p *Pod) Sweeping() *preemption.Sweep {
	if p.EquivalenceClass != nil {
		return (*preemption.Sweep)(&p.EquivalenceClass.Sweep)
	}
	return &p.Asker.Sweep
}

// MeetsLaw4 tells whether law 4 can be met for a pod.
func (x *Model) MeetsLaw4(p *Pod) bool {
	return x.Cache.Books.BelowGuarantee(p.App.Leaf, p.Request, x.Preemption.StrictGuarantee)
}

// LastRefused returns when and why the last plan for the pod, or for another pod of its
// equivalence class, failed; zero and none if none did.
func (p *Pod) LastRefused() (at time.Time, why reasons.Reason) {
	at, why = p.Asker.TriedAt, p.Asker.Refused
	if t := p.EquivalenceClass; t != nil && t.TriedAt.After(at) {
		at, why = t.TriedAt, t.Refused
	}
	return at, why
}

// PlanFrom returns when the next plan for a pod may be made after a lost hold, and what users are
// told until then; zero and none without a loss. In the reason the code of a quota becomes
// HoldGivenUp, because the pod waits for a time and not for room in a queue.
func (p *Pod) PlanFrom() (time.Time, reasons.Reason) {
	l := &p.Asker.Losses
	if p.GroupIncomplete() && p.PodGroup.Data.Losses.Until.After(l.Until) {
		l = &p.PodGroup.Data.Losses
	}
	why := l.Why
	if why.Code.IsQuota() {
		why.Code = reasons.HoldGivenUp
	}
	return l.Until, why
}

// lingers tells whether the pod was deleted, is no victim of a plan in force, and is overdue or has
// a grace period over the longest that counts as leaving ([preemption.Options.LongestLeaving]). No
// plan counts on its room.
func (p *Pod) lingers(longest time.Duration) bool {
	return p.Deleting && p.ChosenBy == "" && (p.Overdue || p.DeletionGrace > longest)
}

// LeavesUntil is when the time ends for which a deleted pod on a node counts as leaving:
// as long after its deletion as a hold lasts. False for other pods.
func (p *Pod) LeavesUntil(o *preemption.Options) (time.Time, bool) {
	onNode := p.State == state.Bound && p.Deleting && !p.GoneBy.IsZero()
	return p.GoneBy.Add(o.HoldTimeout - p.DeletionGrace), onNode && !p.Overdue && p.DeletionGrace <= o.LongestLeaving()
}
