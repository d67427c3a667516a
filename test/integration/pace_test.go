package integration

import (
	"testing"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

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
