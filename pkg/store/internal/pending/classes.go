package pending

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
)

// Class is an equivalence class: the pods of one application that no filter can tell
// apart, so a result for one of them holds for all. Without it, each pod that ends would
// make a full cluster try ten thousand equal pods:
//
//   - Every pod is tried once, whatever the results of its class. Only a failed cycle of
//     its own sets the scheduler's condition that no node takes it, which cluster
//     autoscalers read. From then on it is a member of its class. A pod that a quota refused
//     and that a plan was made for is a member, too: a refused plan holds for the class.
//   - Once one member finds no node, the others leave the order.
//   - The scheduler's queue has the member that failed and watches events for it. When it
//     brings that member back, an event has happened that may help all members, and they
//     are in the order again.
type Class struct {
	// The caller sets these: the time and result of the last plan for a member, the earliest
	// time of the next, and the nodes that it can skip.
	TriedAt, RetryAt time.Time
	Refused          reasons.Reason
	Sweep            []string

	app     *order.App
	request resources.Vector
	hash    string // of what the filters read of a member
	members int
	stuck   int  // members in state Unschedulable
	failed  bool // a member found no node, with no event since: out of the order
	// nodesSeen is the generation of the nodes in the last failed cycle.
	nodesSeen uint64
}

// classKey identifies a class.
type classKey struct {
	app           *order.App
	request, hash string
}

func (c *Class) key() classKey { return classKey{c.app, c.request.Key(), c.hash} }

// Hash is the hash of the class; "" for nil.
func (c *Class) Hash() string {
	if c == nil {
		return ""
	}
	return c.hash
}

// Failed tells whether the class is out of the order. Nil is not.
func (c *Class) Failed() bool { return c != nil && c.failed }

// NodesSeen is the generation of the nodes in the last failed cycle of a class, or the given one
// of a pod if the class is nil.
func (c *Class) NodesSeen(own uint64) uint64 {
	if c == nil {
		return own
	}
	return c.nodesSeen
}

// Classes has the equivalence classes and the limit of their admitted members.
type Classes struct {
	Limit ClassLimit
	order *order.Index
	all   map[classKey]*Class
	of    map[*order.App]int // number of classes
}

func newClasses(index *order.Index, largest int) Classes {
	return Classes{Limit: ClassLimit{limit: 1, largest: largest}, order: index, all: map[classKey]*Class{}, of: map[*order.App]int{}}
}

// Any tells whether an application has a class.
func (x *Classes) Any(app *order.App) bool { return x.of[app] > 0 }

// Join makes a pod in a state a member of the class of a hash, in the place of its class
// before; hash "" is none.
func (x *Classes) Join(class **Class, app *order.App, request resources.Vector, hash string, in state.State) {
	if (*class).Hash() == hash {
		return
	}
	x.Leave(class, in)
	if hash == "" {
		return
	}
	c := &Class{app: app, request: request, hash: hash}
	if known := x.all[c.key()]; known != nil {
		c = known
	} else {
		x.all[c.key()] = c
		x.of[app]++
	}
	*class = c
	c.members++
	x.count(c, in, 1)
}

// Leave takes a pod in a state out of its class, if it has one.
func (x *Classes) Leave(class **Class, in state.State) {
	c := *class
	if c == nil {
		return
	}
	*class = nil
	c.members--
	x.count(c, in, -1)
	if c.members > 0 {
		return
	}
	delete(x.all, c.key())
	if x.of[c.app]--; x.of[c.app] == 0 {
		delete(x.of, c.app)
	}
}

// Move notes that a member goes from one state to another. The class may be nil.
func (x *Classes) Move(c *Class, from, to state.State) {
	if c != nil {
		x.count(c, from, -1)
		x.count(c, to, 1)
	}
}

// count updates the counts of a class when a member enters (n = 1) or leaves (n = -1) a
// state. A member that leaves Unschedulable returns a failed class to the order.
func (x *Classes) count(c *Class, in state.State, n int) {
	switch in {
	case state.Admitted, state.Scheduling:
		x.Limit.taken += n
	case state.Unschedulable:
		c.stuck += n
		if n < 0 && c.failed {
			x.Limit.reopened++
			x.close(c, false)
		}
	}
}

// close takes the members of a class out of the order, or puts them back.
func (x *Classes) close(c *Class, failed bool) {
	c.failed = failed
	x.order.SetClosed(c.app, c.request, c.hash, failed)
}

// Fail notes that a member, Unschedulable by now, found no node; saw is the generation of
// the nodes that it saw. The class may be nil.
func (x *Classes) Fail(c *Class, saw uint64) {
	if c != nil {
		c.nodesSeen = saw
		x.Limit.limit = 1
		x.close(c, true)
	}
}

// Placed notes that a member found a node. The class may be nil.
func (x *Classes) Placed(c *Class) {
	if c != nil {
		x.Limit.limit = min(2*x.Limit.limit, x.Limit.largest)
	}
}

// Check verifies the counts of classes and of the limit against all members, which are
// given with their states, and that the scheduler has a member of every failed class and
// so can bring it back.
func (x *Classes) Check(members iter.Seq2[*Class, state.State]) error {
	type count struct{ members, stuck int }
	counts := map[*Class]count{}
	admitted := 0
	for class, in := range members {
		if class == nil {
			continue
		}
		c := counts[class]
		c.members++
		switch {
		case in == state.Unschedulable:
			c.stuck++
		case in.HasSlot():
			admitted++
		}
		counts[class] = c
	}
	errs := []error{x.Limit.Check(admitted)}
	ofApp := 0
	for _, n := range x.of {
		ofApp += n
	}
	if len(counts) != len(x.all) || ofApp != len(x.all) {
		errs = append(errs, fmt.Errorf("%d equivalence classes have members, %d are known, %d by application", len(counts), len(x.all), ofApp))
	}
	for class, c := range counts {
		switch {
		case c != count{class.members, class.stuck} || x.all[class.key()] != class:
			errs = append(errs, fmt.Errorf("equivalence class %s: %d counted, %d of them unschedulable; there are %+v", class.hash, class.members, class.stuck, c))
		case class.failed && class.stuck == 0:
			errs = append(errs, fmt.Errorf("equivalence class %s: out of the order, and the scheduler has none of it", class.hash))
		}
	}
	return errors.Join(errs...)
}

// ClassLimit bounds how many members of equivalence classes (pods that found no node
// before) are admitted at a time: one, doubled up to largest with each one that is placed.
// Room for them is scarce, and each result can change the order: if the first one finds no
// node, its class need not be tried, and another queue is next. A window full of them would
// be tried in vain, or take room out of order.
type ClassLimit struct {
	limit, largest int
	taken          int
	reopened       uint64
}

// Full tells whether no further member may be admitted. All pods behind it in the order
// wait, too.
func (l *ClassLimit) Full() bool { return l.taken >= l.limit }

// Reopened is how often a failed class returned to the order.
func (l *ClassLimit) Reopened() uint64 { return l.reopened }

// Check verifies the number of admitted members.
func (l *ClassLimit) Check(admitted int) error {
	if l.taken != admitted || l.limit < 1 || l.limit > l.largest {
		return fmt.Errorf("class limit: %d pods counted, there are %d; the limit is %d of at most %d", l.taken, admitted, l.limit, l.largest)
	}
	return nil
}
