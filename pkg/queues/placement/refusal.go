package placement

import (
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// refusal makes one reason of the steps that failed: the code and the beginning
// of the sentence come from the step with the given index, the other steps
// follow in the order in which they were tried. Without such a step (-1) no rule
// had anything to say.
func refusal(trace []Step, first int) reasons.Reason {
	if first < 0 {
		return reasons.New(reasons.NoPlacementRuleMatched, "no placement rule gave a queue; %s.", sentence(trace))
	}
	ordered := append([]Step{trace[first]}, trace[:first]...)
	return reasons.New(trace[first].Refusal.Code, "%s.", sentence(append(ordered, trace[first+1:]...)))
}

// mostTelling returns the index of the step that is worth correcting, -1 when
// there is none.
//
// A pod that names a queue hears about that queue, also when it is missing.
// Otherwise a missing queue tells little (most rules look for a queue that only
// some pods have), and only a queue that is there and refuses counts.
func mostTelling(trace []Step, named bool) int {
	if named {
		if i := closest(trace, byCloseness, func(s Step) bool { return s.Rule == string(config.RuleProvided) }); i >= 0 {
			return i
		}
	}
	return closest(trace, byCloseness[1:], func(Step) bool { return true })
}

// byCloseness has the codes of steps that found or missed a queue, those last that
// came closest to placing the pod.
var byCloseness = []reasons.Code{reasons.QueueNotFound, reasons.QueueNotLeaf, reasons.QueueDraining, reasons.SubmitDenied}

// closest returns the index of the first step with the last of the codes that
// occur, -1 when none occurs.
func closest(trace []Step, codes []reasons.Code, counts func(Step) bool) int {
	best, rank := -1, -1
	for i, s := range trace {
		if r := slices.Index(codes, s.Refusal.Code); counts(s) && r > rank {
			best, rank = i, r
		}
	}
	return best
}

func sentence(steps []Step) string {
	parts := make([]string, len(steps))
	for i, s := range steps {
		parts[i] = s.Rule + ": " + s.Refusal.Text
		if s.Rule != stepDefault {
			parts[i] = "rule " + parts[i]
		}
	}
	return strings.Join(parts, "; ")
}
