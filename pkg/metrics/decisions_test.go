package metrics

import (
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/output"

	"k8s.io/component-base/metrics/testutil"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

func victim(uid string, optedOut, originator bool) planner.Victim {
	return planner.Victim{Pod: &planner.Pod{UID: uid, OptedOut: optedOut, Originator: originator}}
}

// steps is a history: a refusal, a preemption of three pods and an unknown one, committed
// twice; a hold for a DaemonSet pod that was called off; and what another process does.
func steps() []output.Step {
	p, d := objects.Ref{UID: "p", Name: "p"}, objects.Ref{UID: "d", Name: "d"}
	hold := reservations.Hold{Asker: "p", Since: now}
	forDaemon := reservations.Hold{Asker: "d", Since: now, NodeBound: true}
	going := []output.Victim{
		{Ref: objects.Ref{UID: "1"}, Queue: "root.a"}, {Ref: objects.Ref{UID: "2"}, Queue: "root.a"},
		{Ref: objects.Ref{UID: "3"}, Queue: "root.gone"}, {Ref: objects.Ref{UID: "4"}},
	}
	return []output.Step{
		{Ref: p, Kind: output.StepRefused, Decision: &planner.Decision{Outcome: planner.Refuse, Stopped: planner.Law4, Rejected: []planner.Rejection{{Rule: planner.Law5, Pods: 3}}}},
		{Ref: p, Kind: output.StepHeld, Hold: hold, Decision: &planner.Decision{
			Outcome: planner.Preempt, Victims: []planner.Victim{victim("1", false, false), victim("2", true, true), victim("3", false, true)},
		}},
		{Ref: p, Kind: output.StepCommitted, Hold: hold, Going: going[:3]},
		{Ref: p, Kind: output.StepCommitted, Hold: hold, Going: going},
		{Ref: p, Kind: output.StepVictimsDeleted, Hold: hold},
		{Ref: p, Kind: output.StepEnded, Hold: hold, At: now.Add(5 * time.Second), Ended: reservations.Bound},
		{Ref: d, Kind: output.StepHeld, Hold: forDaemon, NodeBoundDecision: &daemonset.Decision{Outcome: planner.Hold, Stopped: daemonset.RuleNoVictims}},
		{Ref: d, Kind: output.StepAborted, Hold: forDaemon, Reason: reasons.Brief(reasons.HoldGivenUp)},
		{Ref: d, Kind: output.StepTakenUp, Hold: forDaemon},
		{Ref: d, Kind: output.StepLost, Hold: forDaemon, Losses: 1, Reason: reasons.Brief(reasons.HoldSuperseded)},
		{Ref: p, Kind: output.StepEnded, Hold: hold, Losses: 1, Ended: reservations.Superseded, Reason: reasons.Brief(reasons.HoldSuperseded)},
		{Ref: p, Kind: output.StepEnded, Hold: hold, Losses: 2, Ended: reservations.Superseded, Reason: reasons.Brief(reasons.HoldSuperseded)},
		{Ref: p, Kind: output.StepEnded, Hold: hold, Ended: reservations.GivenUp, Reason: reasons.Brief(reasons.HoldGivenUp)},
		{Ref: p, Kind: output.StepEnded, Hold: hold, Standby: true, Losses: 1, Ended: reservations.Superseded, Reason: reasons.Brief(reasons.HoldSuperseded)},
		{Ref: d, Kind: output.StepRefused, Standby: true, NodeBoundDecision: &daemonset.Decision{Outcome: planner.Refuse}},
	}
}

func TestDecisions(t *testing.T) {
	newStore(t, "root\n  a\n  b")
	decided.Reset()
	rejected.Reset()
	held.Reset()
	lostHolds.Reset()
	c := NewDecisions()
	for _, step := range steps() {
		c.Count(&step)
	}
	if len(c.open) != 0 {
		t.Errorf("holds that are over are remembered: %v", c.open)
	}
	want := `
# HELP paddock_holds_lost_total [ALPHA] Holds that were lost: pods went, the node was kept clear until the time-out, or the plan could not be carried out, and the pod did not get the room. By the reason.
# TYPE paddock_holds_lost_total counter
paddock_holds_lost_total{kind="queue",reason="HoldGivenUp"} 0
paddock_holds_lost_total{kind="queue",reason="HoldNodeGone"} 0
paddock_holds_lost_total{kind="queue",reason="HoldNodeUnschedulable"} 0
paddock_holds_lost_total{kind="queue",reason="HoldSuperseded"} 2
paddock_holds_lost_total{kind="queue",reason="HoldTimedOut"} 0
paddock_holds_lost_total{kind="required",reason="HoldGivenUp"} 0
paddock_holds_lost_total{kind="required",reason="HoldNodeGone"} 0
paddock_holds_lost_total{kind="required",reason="HoldNodeUnschedulable"} 0
paddock_holds_lost_total{kind="required",reason="HoldSuperseded"} 1
paddock_holds_lost_total{kind="required",reason="HoldTimedOut"} 0
# HELP paddock_preemption_decisions_total [ALPHA] Decisions whether to make room for a pod, by outcome, and by the rule or reason that stopped them.
# TYPE paddock_preemption_decisions_total counter
paddock_preemption_decisions_total{kind="queue",outcome="preempt",reason=""} 1
paddock_preemption_decisions_total{kind="queue",outcome="refused",reason="law 4"} 1
paddock_preemption_decisions_total{kind="required",outcome="called off",reason="HoldGivenUp"} 1
paddock_preemption_decisions_total{kind="required",outcome="hold",reason="no selection found victims"} 1
# HELP paddock_preemption_rejected_candidates_total [ALPHA] Pods that decisions found could not go, by the law or rule that protects them, once for each decision.
# TYPE paddock_preemption_rejected_candidates_total counter
paddock_preemption_rejected_candidates_total{kind="queue",rule="law 5"} 3
# HELP paddock_preemption_victims_total [ALPHA] Pods that were preempted, by their queue, the kind of pod that preempted them, and their role in their application.
# TYPE paddock_preemption_victims_total counter
paddock_preemption_victims_total{class="opted out",kind="queue",queue="root.a"} 1
paddock_preemption_victims_total{class="originator",kind="queue",queue="other"} 1
paddock_preemption_victims_total{class="regular",kind="queue",queue="root.a"} 1
paddock_preemption_victims_total{class="unknown",kind="queue",queue="none"} 1
`
	for range 2 { // what was put to the others stays there, once
		compare(t, want, "paddock_holds_lost_total", "paddock_preemption_decisions_total", "paddock_preemption_rejected_candidates_total", "paddock_preemption_victims_total")
	}
	if v, err := testutil.GetHistogramMetricValue(held.WithLabelValues(string(record.Queue), string(reservations.Bound))); err != nil || v != 5 {
		t.Errorf("the hold lasted %v: %v", v, err)
	}
}
