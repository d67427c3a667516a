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
		if err := lockorder.Wrong(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	t.Log(p)
	seen := lockorder.Seen()
	for _, order := range seen {
		if !order.Follows(lockorder.Simulated) {
			t.Errorf("%v was seen, and is not declared for the simulation, nor does it follow", order)
		}
	}
	for _, order := range lockorder.Simulated {
		if !slices.Contains(seen, order) {
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
	if want := []byte("app.processesMu is taken while " + lockorder.UpstreamQueue + " is held"); err == nil || !bytes.Contains(out, want) {
		t.Errorf("not found: %v\n%.2000s", err, out)
	}
}
