package documents

import (
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// Reason is a reason of the table, with the sentence of the case.
type Reason struct {
	Code string `json:"code"`
	// Message has the numbers and names of the case; Meaning and Remedy are the same
	// for all cases: what the code means, and what to do. Only what to do about a
	// request that is alone more than a max or a limit differs.
	Message string `json:"message"`
	Meaning string `json:"meaning,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
	never   bool   // no waiting helps
}

// reasonOf is a reason as people are shown it; nil for none.
func reasonOf(r reasons.Reason) *Reason {
	if r.None() {
		return nil
	}
	entry, _ := reasons.Explain(r.Code)
	return &Reason{Code: string(r.Code), Message: r.Text, Meaning: entry.Meaning, Remedy: r.Remedy(), never: r.Never}
}

// remedies are what to do about the reasons, each once, in order. Where no waiting
// helps with one of them, there are only those of that kind: the others tell people
// to wait.
func remedies(list ...*Reason) []string {
	never := slices.ContainsFunc(list, func(r *Reason) bool { return r != nil && r.never })
	var out []string
	for _, r := range list {
		if r != nil && r.never == never && r.Remedy != "" && !slices.Contains(out, r.Remedy) {
			out = append(out, r.Remedy)
		}
	}
	return out
}
