package inventory_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
)

// TestUsageIsATenthOfTheAllocatable: the usage of a node is a number from 0 to 9; an
// exact tenth belongs to the lower one.
func TestUsageIsATenthOfTheAllocatable(t *testing.T) {
	tenth := func(used, most int64) int {
		var n inventory.Node
		n.Allocated = queuestest.Vector(fmt.Sprint("pods=", used))
		n.Allocatable = queuestest.Vector(fmt.Sprint("pods=", most))
		by := (&inventory.View{Nodes: []*inventory.Node{&n}}).Tenths()["pods"]
		return slices.IndexFunc(by[:], func(names []string) bool { return len(names) > 0 })
	}
	for used, want := range map[int64]int{-1: 0, 0: 0, 10: 0, 11: 1, 20: 1, 21: 2, 90: 8, 91: 9, 100: 9, 200: 9} {
		expect.Same(t, fmt.Sprintf("tenth of %d of 100", used), want, tenth(used, 100))
	}
	expect.Same(t, "tenth of all of the largest amount", 9, tenth(math.MaxInt64, math.MaxInt64))
}
