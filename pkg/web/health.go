package web

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// CheckResult is one check with its result, in the form of YuniKorn's interface.
type CheckResult struct {
	Name             string
	Succeeded        bool
	Description      string
	DiagnosisMessage string // what is wrong; empty for nothing
}

// Checked has the results of the checks, and when they began; the zero value before the
// first.
type Checked struct {
	At     time.Time
	Checks []CheckResult
}

// healthContent is what is on the page of the health.
type healthContent struct {
	Started bool
	Checks  []CheckResult
	// Checked is when the checks began; empty before the first result.
	Checked moment
	// Wrong is how many checks failed.
	Wrong int
	Since moment
	Facts []fact
}

// fact is a number with its name.
type fact struct{ Name, Value string }

func (p *Pages) healthPage(r *request) (any, string) {
	last := p.options.Health()
	out := healthContent{Started: r.Started, Since: at(p.started), Checked: at(last.At)}
	for _, c := range last.Checks {
		c.Name, c.Description, c.DiagnosisMessage = visible(c.Name), visible(c.Description), visible(c.DiagnosisMessage)
		out.Checks = append(out.Checks, c)
		if !c.Succeeded {
			out.Wrong++
		}
	}
	waiting, foreign, victims := len(r.Unplaced), 0, 0
	for _, a := range r.Applications {
		waiting += len(a.Requests)
	}
	for _, n := range r.Nodes {
		foreign += len(n.Foreign)
	}
	for _, p := range r.InHolds {
		if p.Preempted {
			victims++
		}
	}
	number := func(name string, n int) { out.Facts = append(out.Facts, fact{name, thousands(int64(n))}) }
	number("Queues", r.Queues.Len())
	number("Applications", len(r.Applications))
	number("Pods of queues with a node", int(r.Queues.Root().Allocated.Get(resources.Pods)))
	number("Pods that wait", waiting)
	number("Pods leaving for others", victims)
	number("Nodes", len(r.Nodes))
	number("Held nodes", len(r.Holds.Nodes()))
	number("Pods of other schedulers with a node", foreign)
	return out, ""
}
