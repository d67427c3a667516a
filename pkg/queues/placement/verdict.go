package placement

import (
	"fmt"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// verdict says what became of a rule. The zero value is consent.
type verdict struct {
	code reasons.Code
	why  string
	// final ends the search: the rule's result can never be right, and a later
	// rule would only hide the mistake.
	final bool
}

func (v verdict) ok() bool { return v.code == "" }

// below is the verdict of a rule when its parent rule gave no queue.
func (v verdict) below(parent string) verdict {
	v.why = "parent rule " + parent + ": " + v.why
	return v
}

// pass is a verdict after which the next rule is tried.
func pass(code reasons.Code, format string, args ...any) verdict {
	return verdict{code: code, why: fmt.Sprintf(format, args...)}
}

// skip is the verdict of a rule that does not apply to the pod.
func skip(format string, args ...any) verdict {
	return pass(reasons.NoPlacementRuleMatched, format, args...)
}

// stop is a verdict after which no further rule is tried.
func stop(code reasons.Code, format string, args ...any) verdict {
	v := pass(code, format, args...)
	v.final = true
	return v
}
