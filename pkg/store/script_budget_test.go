package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/paddock-scheduler/paddock/pkg/objects"
)

// scriptBudget reads the budget of a command.
func scriptBudget(t *testing.T, d *datadriven.TestData) objects.Budget {
	b := objects.Budget{Namespace: "ns", Generation: 1, Observed: 1}
	for i, arg := range d.CmdArgs {
		value := strings.Join(arg.Vals, ",")
		number := map[string]*int64{
			"allowed": &b.Allowed, "healthy": &b.Healthy, "desired": &b.Desired, "generation": &b.Generation, "observed": &b.Observed,
		}
		switch {
		case i == 0:
			b.Name = arg.Key
		case arg.Key == "tier":
			b.Matches = func(labels map[string]string) bool { return labels["tier"] == value }
		case arg.Key == "always-allow":
			b.AlwaysAllow = true
		case arg.Key == "disrupted":
			b.Disrupted = map[string]bool{}
			for _, name := range arg.Vals {
				b.Disrupted[name] = true
			}
		case number[arg.Key] != nil:
			_, _ = fmt.Sscan(value, number[arg.Key])
		default:
			d.Fatalf(t, "unknown argument %s", arg.Key)
		}
	}
	return b
}

// originators lists the pods on nodes that plans see as originators.
func (s *script) originators() string {
	var names []string
	for _, n := range s.store.model.PlanningWorld().Nodes {
		for _, p := range n.Pods {
			if p.Originator {
				names = append(names, p.Name)
			}
		}
	}
	return strings.Join(names, " ") + "\n"
}
