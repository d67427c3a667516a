package store

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// A plan goes through these methods in their order. Package internal/plans has their code,
// and lists its files in the same order.

// BeginPlan begins a plan for a pod that no node took or that a quota refused: it returns the
// input, or the reason why no plan may be made. AcceptPlan or RejectPlan ends it. inPermit
// are pods that wait in a Permit plugin: they may be victims although they are not bound.
// class is as in [Store.NoNode].
func (s *Store) BeginPlan(uid types.UID, class string, inPermit []types.UID, now time.Time) (in *output.PlanInput, why reasons.Reason) {
	s.change(now, func() { in, why = s.plans.BeginPlan(uid, class, inPermit, now) })
	return in, why
}

// BeginNodeBoundPlan returns the input of a decision for a node-bound pod that its node did not
// take or that a quota refused, or the reason why no decision may be made. inPermit is as in
// [Store.BeginPlan].
func (s *Store) BeginNodeBoundPlan(uid types.UID, inPermit []types.UID, now time.Time) (in *output.NodeBoundPlanInput, why reasons.Reason) {
	s.change(now, func() { in, why = s.plans.BeginNodeBoundPlan(uid, inPermit, now) })
	return in, why
}

// AcceptPlan accepts a plan: the node is held for the asker, its victims count as leaving
// and its request as arriving, and the executor gets work. The reason is none, or says
// what prevents the plan.
func (s *Store) AcceptPlan(uid types.UID, d *planner.Decision, now time.Time) (why reasons.Reason) {
	s.change(now, func() { why = s.plans.AcceptPlan(uid, d, now) })
	return why
}

// RejectPlan says that a plan failed, or that the pod fits a node once pods that leave
// anyway are gone. That room is not held: it goes to the pod that is then first in the
// order. The pod is planned for again when that node changes, and after the retry interval at
// the latest. RejectPlan returns the reason shown to users.
func (s *Store) RejectPlan(uid types.UID, d *planner.Decision, now time.Time) (why reasons.Reason) {
	s.change(now, func() { why = s.plans.RejectPlan(uid, d, now) })
	return why
}

// ApplyPlan applies a decision for a node-bound pod. It returns whether the node is now held for
// it, and the reason given to users. If not, the pod's cycle must still be ended, by [Store.NoNode]
// or [Store.QuotaRefused].
func (s *Store) ApplyPlan(uid types.UID, d *daemonset.Decision, now time.Time) (held bool, why reasons.Reason) {
	s.change(now, func() { held, why = s.plans.ApplyPlan(uid, d, now) })
	return held, why
}

// Commit checks a plan again on the current state. If it still holds, the asker may run on that
// node only from now on, and Commit returns the victims that have not been deleted. Otherwise no
// victim is deleted, and the reason says why: the hold ends, or, for a node-bound pod, goes on
// without a plan until the next decision. inPermit are the pods that wait in a Permit plugin now:
// one that left it since the plan was made is being bound, and is never a victim.
func (s *Store) Commit(asker types.UID, inPermit []types.UID, now time.Time) (victims []output.Victim, why reasons.Reason) {
	s.change(now, func() { victims, why = s.plans.Commit(asker, inPermit, now) })
	return victims, why
}

// VictimsDeleted says that all victims of an asker have been deleted. It does nothing if
// its hold has ended.
func (s *Store) VictimsDeleted(asker types.UID, now time.Time) {
	s.change(now, func() { s.plans.VictimsDeleted(asker, now) })
}

// VictimsRefused says that the API server refused for good to delete victims. They are no
// victims for the retry interval, doubled with each further refusal. Their plan may go on.
func (s *Store) VictimsRefused(refused []output.Undeletable, now time.Time) {
	s.change(now, func() { s.plans.VictimsRefused(refused, now) })
}

// FailPlan ends a plan that failed to execute. Victims that were not deleted stay. Those
// that the API server refused to delete for good are no victims for a while.
func (s *Store) FailPlan(asker types.UID, why reasons.Reason, refused []output.Undeletable, now time.Time) {
	s.change(now, func() { s.plans.FailPlan(asker, why, refused, now) })
}

// AbortPlan says that no victim was deleted for a node-bound asker, because a victim is being
// bound and cannot be deleted now. The node stays held, and another decision is made a second after
// the last one.
func (s *Store) AbortPlan(asker types.UID, why reasons.Reason, now time.Time) {
	s.change(now, func() { s.plans.AbortPlan(asker, why, now) })
}

// NodeRefuses says that the filters refuse the node that a pod holds, whichever pods
// leave it. The hold ends, and the pod is treated as one that found no node.
func (s *Store) NodeRefuses(uid types.UID, node, why string, now time.Time) {
	s.change(now, func() { s.cycle.NodeRefuses(uid, node, why, now) })
}

// KubeletRefused reports how a pod ended: with the reason for which the kubelet had no
// room for it, such as OutOfcpu, or in another way if the reason is empty. It returns the
// reason given to users if this is a loss.
func (s *Store) KubeletRefused(uid types.UID, reason string, now time.Time) (why reasons.Reason) {
	s.change(now, func() { why = s.holds.KubeletRefused(uid, reason, now) })
	return why
}
