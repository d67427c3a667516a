package preemption_test

import (
	"strings"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// TestMissesBackOff: an asker with a clear hold is tried a few times at once, then once in
// a retry interval.
func TestMissesBackOff(t *testing.T) {
	const retry = 15 * time.Second
	var p preemption.Plan
	for n, want := range []int{50, 100, 200, 400, 800, 1600, 15000, 15000} {
		tried := p.IsTried()
		wait, last := p.Miss(retry)
		expect.That(t, wait.Milliseconds() == int64(want) && last == (n == 5) && tried == (n < 6),
			"miss %d: next in %v, last: %v, tried at once: %v", n+1, wait, last, tried)
	}
}

// TestNotesOfVictims: the plan in force has the message of its victims.
func TestNotesOfVictims(t *testing.T) {
	ask := &planner.Ask{Namespace: "ns", Name: "asker"}
	victim := &planner.Pod{UID: "v", Namespace: "ns", Name: "v"}
	for name, p := range map[string]preemption.Plan{
		"ordinary":   {Decision: &planner.Decision{Ask: ask, Node: "n1", Victims: []planner.Victim{{Pod: victim}}}},
		"node-bound": {NodeBoundDecision: &daemonset.Decision{Ask: &daemonset.Ask{Ask: ask}, Node: "n1", Victims: []daemonset.Victim{{Pod: &daemonset.Pod{Pod: victim}}}}},
	} {
		if note, known := p.Note("v"); !known || !strings.Contains(note, "ns/asker") {
			t.Errorf("%s: %q", name, note)
		}
		if _, known := p.Note("other"); known {
			t.Errorf("%s: it knows another pod", name)
		}
	}
	if _, known := (&preemption.Plan{}).Note("v"); known {
		t.Error("no plan knows a victim")
	}
}

// TestDecisionsHaveTheirTime: the ID of a decision has its time.
func TestDecisionsHaveTheirTime(t *testing.T) {
	expect.Same(t, "decided at", epoch, preemption.DecidedAt(preemption.DecisionID("a-b", epoch)))
	expect.Same(t, "decided at", time.Time{}, preemption.DecidedAt("nothing"))
}
