//go:build lockorder

package simulation_test

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/lockorder"
)

// watchesLocks tells that all our locks record the order in which they are taken.
const watchesLocks = true

// TestLocksAreTakenInOneOrder runs histories in which all our locks record the order in
// which they are taken; make lockorder runs it.
func TestLocksAreTakenInOneOrder(t *testing.T) {
	lockorder.Reset()
	p, steps := newProgress(), 10_000
	if *stepsFlag > 0 {
		steps = *stepsFlag
	}
	for seed := *firstFlag; p.steps < steps; seed++ {
		r := live(t, seed, historySteps, *bugFlag)
		if p.add(r); r.err != nil {
			t.Fatal(r.report())
		}
	}
	t.Log(p)
	seen := lockorder.Seen()
	for _, s := range seen {
		if !s.Follows(lockorder.Simulated) {
			t.Errorf("%v was seen, and is not declared for the simulation, nor does it follow:\n%s", s.Order, s.Stack)
		}
	}
	for _, order := range lockorder.Simulated {
		if !slices.ContainsFunc(seen, func(s lockorder.Sighting) bool { return s.Order == order }) {
			t.Errorf("%v was not seen", order)
		}
	}
}

// TestLocksInTwoOrdersAreNoticed runs the test binary with a lock of package app and
// an upstream lock taken in both orders. Its findings are recorded nowhere else.
func TestLocksInTwoOrdersAreNoticed(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), program, "-test.run", "^TestLocksAreTakenInOneOrder$", "-steps", "1", "-bug", bugTwoOrders)
	child.Env = append(os.Environ(), "LOCKORDER=")
	out, err := child.CombinedOutput()
	for _, order := range []lockorder.Order{
		{Before: lockorder.UpstreamQueue, Lock: "app.processesMu"}, {Before: "app.processesMu", Lock: lockorder.UpstreamQueue},
	} {
		if want := []byte(order.String() + " was seen, and is not declared"); err == nil || !bytes.Contains(out, want) {
			t.Errorf("%v is not found: %v\n%.2000s", order, err, out)
		}
	}
}
