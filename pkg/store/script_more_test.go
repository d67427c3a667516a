package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/unmet"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// gated prints how many pods are kept out of the scheduler's queue.
func (s *script) gated() string {
	var b strings.Builder
	counts := s.store.Gated()
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "%s %d\n", code, counts[code])
	}
	return b.String()
}

// look prints which queues are below their guarantee, and for how long.
func (s *script) look() string {
	found := unmet.Find(s.store.Snapshot(), func(leaves []*queues.Queue) []reasons.Code {
		return s.store.WaitsFor(leaves, s.now)
	})
	ended := s.meter.Look(s.now, found)
	var b strings.Builder
	for _, d := range found {
		fmt.Fprintf(&b, "%s: %s\n", d.Queue, d.Reason)
	}
	for _, took := range ended {
		fmt.Fprintf(&b, "took %v\n", took)
	}
	for _, t := range s.meter.Totals() {
		fmt.Fprintf(&b, "so far %s %s: %v\n", t.Queue, t.Reason, t.Time)
	}
	return b.String()
}

// freedUnseen prints the pods that gave room back without an event for it, or plays the end of a cycle that
// checked for them.
func (s *script) freedUnseen(words []string) string {
	switch {
	case len(words) == 0:
	case words[0] == "gone":
		s.store.Vanished(s.store.FreedPods(s.now))
	default:
		s.store.ComeBack(types.UID(words[0]), s.now)
	}
	var b strings.Builder
	for _, e := range s.store.FreedPods(s.now) {
		if e.Nominated {
			fmt.Fprintf(&b, "%s, nominated to %s\n", e.UID, e.Node)
			continue
		}
		fmt.Fprintf(&b, "%s on %q, requests %v\n", e.UID, e.Node, e.Request)
	}
	return b.String()
}

// scriptBudget reads the budget of a command.
func scriptBudget(t *testing.T, d *datadriven.TestData) objects.Budget {
	b := objects.Budget{Namespace: "ns", Name: d.CmdArgs[0].Key, Generation: 1, Observed: 1}
	tier, disrupted := "", []string{}
	scan(t, d, d.CmdArgs[1:], map[string]any{
		"allowed": &b.Allowed, "healthy": &b.Healthy, "desired": &b.Desired, "generation": &b.Generation,
		"observed": &b.Observed, "tier": &tier, "always-allow": &b.AlwaysAllow, "disrupted": &disrupted,
	})
	if d.HasArg("tier") {
		b.Matches = func(labels map[string]string) bool { return labels["tier"] == tier }
	}
	b.DisruptedPods = map[string]bool{}
	for _, name := range disrupted {
		b.DisruptedPods[name] = true
	}
	return b
}

// originators lists the pods on nodes that plans see as originators.
func (s *script) originators() string {
	var names []string
	for _, n := range s.store.model.PlanningSnapshot().Nodes {
		for _, p := range n.Pods {
			if p.Originator {
				names = append(names, p.Name)
			}
		}
	}
	return strings.Join(names, " ") + "\n"
}
