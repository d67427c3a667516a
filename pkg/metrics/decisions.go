package metrics

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

var (
	decided  = newCounters("preemption_decisions_total")
	rejected = newCounters("preemption_rejected_candidates_total")
	// All of its series are there from the start, so that the first loss is an increase.
	lostHolds = newCounters("holds_lost_total")
	// From a second to about a day.
	held = newHistogramVec("hold_duration_seconds", metrics.ExponentialBuckets(1, 2, 17))
	// From 50 us to 3 s.
	planned = newHistogramVec("preemption_plan_duration_seconds", metrics.ExponentialBuckets(0.00005, 2, 17))
)

// Planned notes how long it took to decide whether room can be made for a pod.
func Planned(kind record.Kind, took time.Duration) {
	planned.WithLabelValues(string(kind)).Observe(took.Seconds())
	observePlan(took)
}

// Decisions counts decisions about making room, and what becomes of them.
// One goroutine uses it.
type Decisions struct {
	// open are the holds with victims that may still be evicted, by asker: the classes of
	// the victims, until they are counted.
	open map[types.UID]map[types.UID]string
}

// NewDecisions returns a counter of decisions.
func NewDecisions() *Decisions {
	Register()
	for _, kind := range []record.Kind{record.Queue, record.NodeBound} {
		for _, why := range lossReasons {
			lostHolds.WithLabelValues(string(kind), string(why))
		}
	}
	return &Decisions{open: map[types.UID]map[types.UID]string{}}
}

// lossReasons are the reasons for which holds are lost.
var lossReasons = []reasons.Code{
	reasons.HoldSuperseded, reasons.HoldTimedOut, reasons.HoldGivenUp, reasons.HoldNodeGone, reasons.HoldNodeUnschedulable,
}

// The outcomes of decisions, as label outcome has them.
const (
	outcomeRefused   = "refused"
	outcomeHold      = "hold"
	outcomePreempt   = "preempt"
	outcomeCalledOff = "called off"
)

// Count counts a step. What another process decides is not counted here.
func (c *Decisions) Count(s *output.Step) {
	if s.Standby {
		return
	}
	if s.Losses > 0 {
		lostHolds.WithLabelValues(kindOf(s), string(s.Reason.Code)).Inc()
	}
	switch s.Kind {
	case output.StepRefused, output.StepHeld:
		c.decision(s)
	case output.StepCommitted:
		c.victims(s)
	case output.StepAborted:
		decided.WithLabelValues(kindOf(s), outcomeCalledOff, string(s.Reason.Code)).Inc()
	case output.StepEnded:
		delete(c.open, s.UID)
		if s.At.After(s.Hold.Since) {
			held.WithLabelValues(kindOf(s), string(s.Ended)).Observe(s.At.Sub(s.Hold.Since).Seconds())
		}
	case output.StepTakenUp, output.StepVictimsDeleted, output.StepLost: // others say what becomes of it
	}
}

// kindOf returns the value of label kind: the kind of pod that room is made for.
func kindOf(s *output.Step) string {
	return string(record.KindOf(s.NodeBoundDecision != nil || s.Hold.NodeBound))
}

// decision counts a decision by its outcome, and the rule that stopped it.
func (c *Decisions) decision(s *output.Step) {
	var stopped planner.Rule
	var list []planner.Rejection
	classes := map[types.UID]string{}
	switch {
	case s.Decision != nil:
		stopped, list = s.Decision.Stopped, s.Decision.Rejected
		for _, v := range s.Decision.Victims {
			classes[types.UID(v.UID)] = daemonset.ClassOf(v.Pod).String()
		}
	case s.NodeBoundDecision != nil:
		stopped, list = s.NodeBoundDecision.Stopped, s.NodeBoundDecision.Rejected
		for _, v := range s.NodeBoundDecision.Victims {
			classes[types.UID(v.UID)] = v.Class.String()
		}
	default:
		return
	}
	outcome := outcomeHold
	switch {
	case s.Kind == output.StepRefused:
		outcome = outcomeRefused
	case len(classes) > 0:
		outcome = outcomePreempt
		maps.Copy(classes, c.open[s.UID]) // earlier victims of the hold, which may not be gone
		c.open[s.UID] = classes
	}
	kind := kindOf(s)
	decided.WithLabelValues(kind, outcome, string(stopped)).Inc()
	for _, r := range list {
		rejected.WithLabelValues(kind, string(r.Rule)).Add(float64(r.Pods))
	}
}

// victims counts the pods that are let go, each once for a hold. Of a decision by
// an earlier process their classes are not known.
func (c *Decisions) victims(s *output.Step) {
	classes := c.open[s.UID]
	if classes == nil {
		classes = map[types.UID]string{}
		c.open[s.UID] = classes
	}
	for _, v := range s.Going {
		class, known := classes[v.UID]
		switch {
		case !known:
			class = "unknown"
		case class == "":
			continue // counted before
		}
		classes[v.UID] = ""
		gone.add(countKey{v.Queue, kindOf(s), class}, 1)
	}
}
