package inventory_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
)

func TestTenth(t *testing.T) {
	tenth := func(used, most int64) int {
		var n inventory.Node
		n.Allocated = queuestest.Vector(fmt.Sprint("pods=", used))
		n.Allocatable = queuestest.Vector(fmt.Sprint("pods=", most))
		return n.Tenth("pods")
	}
	for used, want := range map[int64]int{-1: 0, 0: 0, 10: 0, 11: 1, 20: 1, 21: 2, 90: 8, 91: 9, 100: 9, 200: 9} {
		if got := tenth(used, 100); got != want {
			t.Errorf("%d of 100 is tenth %d, want %d", used, got, want)
		}
	}
	if got := tenth(math.MaxInt64, math.MaxInt64); got != 9 {
		t.Errorf("all of the largest amount is tenth %d, want 9", got)
	}
}
