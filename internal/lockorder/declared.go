package lockorder

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Order means that a lock is taken while another one is held.
type Order struct{ Before, Lock string }

// String returns it in words.
func (o Order) String() string { return o.Before + " before " + o.Lock }

func (o Order) compare(other Order) int {
	return cmp.Or(cmp.Compare(o.Before, other.Before), cmp.Compare(o.Lock, other.Lock))
}

// Follows tells whether an order is one of these orders, or follows from some of them.
// The orders have no cycle.
func (o Order) Follows(from []Order) bool {
	return slices.ContainsFunc(from, func(d Order) bool {
		return d.Before == o.Before && (d.Lock == o.Lock || Order{d.Lock, o.Lock}.Follows(from))
	})
}

// UpstreamQueue is the lock of upstream's scheduling queue.
const UpstreamQueue = "upstream's queue lock"

// Simulated are the orders that the simulation shows, all of them within 2,000 steps.
var Simulated = []Order{
	{UpstreamQueue, "store.core.mu"},
	{"inventory.Inventory.mu", "store.core.mu"},
	{"app.Process.mu", "store.core.mu"},
	{"app.follower.mu", "store.core.mu"},
	{"informer.daemonSets.mu", "store.core.mu"},
}

// Declared are all orders, with those that follow from them: those that the simulation
// shows, and those that only the tests of packages show. docs/survival.md has the same
// list.
var Declared = slices.Concat(Simulated, []Order{
	{"eventlog.Log.taking", "eventlog.Log.mu"},
	{"eventlog.Log.taking", "store.core.mu"},
})

// Judge returns the differences between the seen orders and the declared ones: undeclared
// orders, and declared orders and locks that were not seen. It is nil for none.
func Judge(seen []Sighting, declared []Order, locks []string) error {
	var wrong []error
	orders, taken := map[Order]bool{}, map[string]bool{}
	for _, s := range seen {
		taken[s.Lock] = true
		if s.Before != "" && !orders[s.Order] && !s.Follows(declared) {
			wrong = append(wrong, fmt.Errorf("%v is not declared, nor does it follow; %s saw it:\n%s\nIf it cannot be avoided, add it to lockorder.Declared and to docs/survival.md", s.Order, s.Program, s.Stack))
		}
		orders[s.Order] = true
	}
	for _, o := range declared {
		if !orders[o] {
			wrong = append(wrong, fmt.Errorf("%v is declared, and no run took it: take it out of lockorder.Declared and docs/survival.md, or run what takes it", o))
		}
	}
	for _, lock := range locks {
		if !taken[lock] {
			wrong = append(wrong, fmt.Errorf("no run took %s: no test that is run reaches it; is its package in LOCKING of the Makefile?", lock))
		}
	}
	return errors.Join(wrong...)
}
