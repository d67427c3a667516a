package metrics

import (
	"testing"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
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
	expect.That(t, len(c.open) == 0, "holds that are over are remembered: %v", c.open)
	for range 2 { // what was put to the others stays there, once
		compare(t, "paddock_holds_lost_total", "reason", `
queue: HoldGivenUp=0 HoldNodeGone=0 HoldNodeUnschedulable=0 HoldSuperseded=2 HoldTimedOut=0
required: HoldGivenUp=0 HoldNodeGone=0 HoldNodeUnschedulable=0 HoldSuperseded=1 HoldTimedOut=0
`)
		compare(t, "paddock_preemption_decisions_total", "outcome", `
queue: preempt=1
queue law 4: refused=1
required HoldGivenUp: called off=1
required no selection found victims: hold=1
`)
		compare(t, "paddock_preemption_rejected_candidates_total", "rule", `
queue: law 5=3
`)
		compare(t, "paddock_preemption_victims_total", "class", `
queue none: unknown=1
queue other: originator=1
queue root.a: opted out=1 regular=1
`)
	}
	lasted := held.WithLabelValues(string(record.Queue), string(reservations.Bound))
	expect.Same(t, "seconds of the hold", 5.0, expect.Get(testutil.GetHistogramMetricValue(lasted))(t))
}

func TestFindingsAndLostStepsAreCounted(t *testing.T) {
	Audited([]string{"quota"})
	for _, c := range []struct {
		name    string
		counter metrics.CounterMetric
		tell    func()
		want    float64
	}{
		{"findings of a kind", drifts.WithLabelValues("quota"), func() { Drifted("quota") }, 1},
		{"steps one by one, though they are told many at a time", lost, func() { StepsLost(3) }, 3},
	} {
		value := func() float64 { return expect.Get(testutil.GetCounterMetricValue(c.counter))(t) }
		before := value() // not 0 where the test runs again
		c.tell()
		expect.Same(t, c.name, before+c.want, value())
	}
}
