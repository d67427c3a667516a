package preemption

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// Asker is the record of a pod that may have room made for it. Every pod without a node
// has one. A pod that runs keeps it if it [Asker.EverHeld] a node.
type Asker struct {
	UID types.UID
	Retry
	Plan
	NodeBoundState
	holds bool

	// Its place in a Queue.
	when time.Time
	at   int
	ask  *order.Ask
}

// Retry is when the next plan for a pod may be made, and why the last one failed.
type Retry struct {
	TriedAt time.Time // time of the last plan
	RetryAt time.Time // no plan before this time; a node-bound pod is planned for then if no event brings it back
	Refused reasons.Reason
	// NoRoom: laws or amounts refused the last plan. No filter ran.
	NoRoom bool
	Losses Losses
	Sweep  Sweep // if it has no equivalence class
	// RefusalEndsCycle: the next refusal of a quota ends the current cycle. Before, the cycle
	// may still make a plan.
	RefusalEndsCycle bool
}

// FindsNoRoom tells whether the last plan was made since then and has NoRoom, and the next
// one is not due.
func (r *Retry) FindsNoRoom(since, now time.Time) bool {
	return r.NoRoom && !r.TriedAt.Before(since) && r.RetryAt.After(now)
}

// Plan is the plan for a pod that holds a node, and what remains of the last one.
type Plan struct {
	// Decision led to the hold; nil for none, or after a restart. ByFilters are the
	// victims that are not needed by amounts, as of the decision: only the filters know
	// why they must go.
	Decision          *planner.Decision
	ByFilters         []types.UID
	NodeBoundDecision *daemonset.Decision // the decision for a node-bound pod
	// ToldAt is when users were last told what such a pod waits for; DecidedAt is when
	// the last decision was made.
	ToldAt, DecidedAt time.Time
	Missed            int       // cycles that failed although the hold was clear
	HeldFrom          time.Time // when its hold began, or was read from a claim that says a later time
	ArrivalsAtHold    uint64    // Nodes.Arrivals of package cache when its hold began
	// LastHoldSince is when the latest ended hold had begun. Claims with that or an earlier
	// time are echoes of ended holds.
	LastHoldSince time.Time
	// Activated: a pod of no queue was let through since it holds its node.
	Activated bool
}

// NodeBoundState is what a node-bound pod knows of its node.
type NodeBoundState struct {
	SawNode uint64 // the node's generation at the last decision
	// Impossible: the pod would not fit the node even without all possible victims.
	Impossible bool
}

// NewAsker returns the record of a pod for which no plan was made.
func NewAsker(uid types.UID) *Asker { return &Asker{UID: uid, at: ranking.Outside} }

// Place implements the interface of package ranking.
func (a *Asker) Place() *int { return &a.at }

// sooner orders by time, then UID.
func sooner(a, b *Asker) bool {
	return cmp.Or(a.when.Compare(b.when), cmp.Compare(a.UID, b.UID)) < 0
}

// HoldsNode tells whether the pod holds a node. A pod without a record holds none.
func (a *Asker) HoldsNode() bool { return a != nil && a.holds }

// SetHoldsNode sets whether the pod holds a node.
func (a *Asker) SetHoldsNode(holds bool) { a.holds = holds }

// PlacedAt is when the pod was bound to the node on which room was made for it; zero if
// it was not, and for a pod without a record.
func (a *Asker) PlacedAt() time.Time {
	if a == nil {
		return time.Time{}
	}
	return a.Losses.PlacedAt
}

// IsEcho tells whether a claim with that beginning is from a hold that ended. For a pod
// without a record it is not.
func (a *Asker) IsEcho(since time.Time) bool { return a != nil && !since.After(a.LastHoldSince) }

// NextHold is when a hold begins that is made now; it distinguishes the hold from earlier
// ones.
func (a *Asker) NextHold(now time.Time) time.Time { return Latest(now, a.LastHoldSince.Add(1)) }

// EverHeld tells whether a hold of the pod ended. Once it runs, only this makes the record needed:
// it has the losses, in case the kubelet refuses the pod, and tells which claims are echoes.
func (a *Asker) EverHeld() bool { return !a.LastHoldSince.IsZero() }

// DecisionID identifies a decision by its asker and time.
func DecisionID(asker types.UID, now time.Time) string {
	return fmt.Sprintf("%s-%d", asker, now.UnixNano())
}

// DecidedAt returns the time in a decision's ID; zero if it has none.
func DecidedAt(decision string) time.Time {
	nanos, err := strconv.ParseInt(decision[strings.LastIndex(decision, "-")+1:], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

// Note is the message of the plan for a victim; false if the plan does not know it, as
// after a restart.
func (p *Plan) Note(victim types.UID) (string, bool) {
	if d := p.Decision; d != nil {
		if i := slices.IndexFunc(d.Victims, func(v planner.Victim) bool { return v.UID == string(victim) }); i >= 0 {
			return d.VictimNote(i), true
		}
	}
	if d := p.NodeBoundDecision; d != nil {
		if i := slices.IndexFunc(d.Victims, func(v daemonset.Victim) bool { return v.UID == string(victim) }); i >= 0 {
			return d.VictimNote(i), true
		}
	}
	return "", false
}

// An asker that has room on its node and is refused there is tried again triesAtOnce
// times, after FirstTry and then after twice as long each time; from then on once each retry
// interval.
const (
	triesAtOnce = 6
	FirstTry    = 50 * time.Millisecond
)

// Miss counts a cycle that failed although there was room. It returns the time to the
// next try, and whether this was the last one of those that follow each other at once.
func (p *Plan) Miss(retry time.Duration) (wait time.Duration, last bool) {
	p.Missed++
	if p.Missed > triesAtOnce {
		return retry, false
	}
	return FirstTry << (p.Missed - 1), p.Missed == triesAtOnce
}

// IsTried tells whether an asker with a clear hold is still tried at once.
func (p *Plan) IsTried() bool { return p.Missed < triesAtOnce }
