package preemption

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// DecisionID identifies a decision by its preemptor and time.
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
		for i := range d.Victims {
			if d.Victims[i].UID == string(victim) {
				return d.VictimNote(i), true
			}
		}
	}
	if d := p.Required; d != nil {
		for i := range d.Victims {
			if d.Victims[i].UID == string(victim) {
				return d.VictimNote(i), true
			}
		}
	}
	return "", false
}

// Number and first interval of the tries before a preemptor with a clear hold waits for
// events again.
const (
	triesAtOnce = 6
	FirstTry    = 50 * time.Millisecond
)

// Miss counts a cycle that failed although the hold was clear. It returns the time to the
// next try, and whether this was the last one of those that follow each other at once.
func (p *Plan) Miss(retry time.Duration) (wait time.Duration, last bool) {
	p.Missed++
	if p.Missed > triesAtOnce {
		return retry, false
	}
	return FirstTry << (p.Missed - 1), p.Missed == triesAtOnce
}

// IsTried tells whether a preemptor with a clear hold is still tried at once.
func (p *Plan) IsTried() bool { return p.Missed < triesAtOnce }
