package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// TestPace checks how many pods are preempted at once: of the victims for four small
// askers and a large one, two are chosen in a round of two seconds, and the three of the
// large one alone in a round of their own (P2). The pods that are held back say so, and
// none waits longer than that.
func TestPace(t *testing.T) {
	const most, round, slack = 2, 2 * time.Second, 5 * time.Second
	e := setup(t, preemptionQueues, preemption("maxVictimsPerRound", most), preemption("round", round.String()))
	e.useNodes(1, localcluster.NodeSpec{CPU: "8"})
	c := e.keepChronicle()
	e.fill("victim", 8, inQueue("root.borrows"))
	askers := e.create("small", 4, inQueue("root.owed"))
	askers = append(askers, e.createPod(e.pod("large", "large", inQueue("root.owed"), requests("cpu", "3"))))
	c.expectEvicted("victim", 7)
	var claims []reservations.Claim
	held := 0
	for _, a := range askers {
		c.awaitPlaced(a)
		claim, _ := c.claim(a.UID)
		claims = append(claims, claim)
		if c.first(a.UID, toldPaced) != nil {
			held++
		}
	}
	slices.SortFunc(claims, func(a, b reservations.Claim) int { return a.Since.Compare(b.Since) })
	rounds := roundsOf(claims, round)
	for _, r := range rounds {
		victims := 0
		for _, claim := range r {
			victims += len(claim.Victims)
		}
		if victims > most && len(r) > 1 {
			t.Errorf("%d plans of a round have %d victims: %+v", len(r), victims, r)
		}
	}
	// Two rounds of two, one of three: the last begins two rounds after the first. On a
	// busy machine two askers may miss each other's round, but there are never fewer
	// rounds.
	took := claims[len(claims)-1].Since.Sub(claims[0].Since)
	t.Logf("%d plans in %d rounds took %v; %d askers were told of the pace", len(claims), len(rounds), took, held)
	if len(rounds) < 3 || took < 2*round || took > 2*round+slack {
		t.Errorf("the plans took %d rounds and %v, want 3 or more and %v to %v", len(rounds), took, 2*round, 2*round+slack)
	}
	if held == 0 {
		t.Errorf("nobody was told of %s", reasons.PreemptionPaced)
	}
	e.expectBooks()
}

// TestPacedPodIsExplained asks about a pod for which no victim is left in a round that
// takes an hour.
func TestPacedPodIsExplained(t *testing.T) {
	e := setup(t, preemptionQueues, preemption("maxVictimsPerRound", 1), preemption("round", "1h"))
	e.useNodes(1, localcluster.NodeSpec{CPU: "2"})
	c := e.keepChronicle()
	e.fill("victim", 2, inQueue("root.borrows"))
	c.awaitPlaced(e.createPod(e.pod("first", "first", inQueue("root.owed"))))
	second := e.createPod(e.pod("second", "second", inQueue("root.owed")))
	e.awaitExplained(second, reasons.PreemptionPaced, asNoRoom)
	c.expectEvicted("victim", 1)
}

// toldPaced tells whether the conditions of a pod said, at that time, that it has to wait
// for the next round.
func toldPaced(s sight) bool {
	told := conditionOf(s.pod, corev1.PodScheduled)
	return told != nil && strings.Contains(told.Message, string(reasons.PreemptionPaced))
}

// roundsOf splits claims, the oldest first, into rounds: a round begins with the first
// claim after the end of the one before.
func roundsOf(claims []reservations.Claim, round time.Duration) [][]reservations.Claim {
	var rounds [][]reservations.Claim
	var end time.Time
	for _, claim := range claims {
		if !claim.Since.Before(end) {
			rounds, end = append(rounds, nil), claim.Since.Add(round)
		}
		rounds[len(rounds)-1] = append(rounds[len(rounds)-1], claim)
	}
	return rounds
}
