package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// What disruption budgets allow, counted anew from all pods for each question.

// budgetNames are the budgets in the order of the portrait's world.
func (c *cluster) budgetNames() []budgetName {
	return slices.SortedFunc(maps.Keys(c.budgets), func(a, b budgetName) int { return compareText(a.namespace+"/"+a.name, b.namespace+"/"+b.name) })
}

// allowances are what all budgets allow once the chosen pods are gone: of ready pods
// and of others, in the order of budgetNames.
func (p *portrait) allowances() []int64 {
	var out []int64
	for _, key := range p.budgetNames() {
		b := p.budgets[key]
		healthy, going := int64(0), int64(0)
		for i := range p.pods {
			m := &p.pods[i]
			if m.Health != Ready || m.Deleting || m.Namespace != b.Namespace || b.Matches == nil || !b.Matches(m.Labels) || b.Disrupted[m.Name] {
				continue
			}
			healthy++
			if p.chosen[m.UID] {
				going++
			}
		}
		allowed := min(b.Allowed, healthy-b.Desired) - going
		if allowed < 0 || b.Observed < b.Generation {
			allowed = 0
		}
		others := allowed
		if enough := min(b.Healthy, healthy)-going >= b.Desired && b.Desired > 0; enough || b.AlwaysAllow {
			others = boundless
		}
		out = append(out, allowed, others)
	}
	return out
}

// budgetsOver are the indexes of the allowances that a pod counts against.
func (p *portrait) budgetsOver(m *mirror) []int {
	var out []int
	for i, key := range p.budgetNames() {
		b := p.budgets[key]
		if m.Health == NotStarted || len(m.Labels) == 0 || m.Namespace != b.Namespace || b.Matches == nil || !b.Matches(m.Labels) || b.Disrupted[m.Name] {
			continue
		}
		if i *= 2; m.Health == Unready {
			i++
		}
		out = append(out, i)
	}
	return out
}

// showBudgets renders what the budgets of a pod still allow.
func showBudgets(left []int64, p *victims.Pod) string {
	var parts []string
	for _, b := range p.Budgets {
		parts = append(parts, fmt.Sprintf("%12d", left[b]))
	}
	slices.Sort(parts)
	return strings.Join(parts, "")
}

// beyond tells whether what is left of a plan violates more budgets than the plan
// said, by what has happened and without other plans in force.
func (c *cluster) beyond(o *object, h reservations.Hold) bool {
	said := c.store.pods[o.UID].asks.decision
	_, d, err := c.remaining(o, h)
	if err != nil || said == nil {
		return false
	}
	p := portrait{cluster: c, pods: c.mirrors()}
	var going []*victims.Pod
	for _, v := range d.Victims {
		going = append(going, v.Pod)
	}
	return victims.Violations(going, p.allowances()) > said.Violations
}
