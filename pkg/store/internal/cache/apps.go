package cache

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// AppName identifies an application. Users choose application IDs, so two namespaces may
// use the same ID without sharing a queue.
type AppName struct {
	Namespace, ID string
	// Queue is the queue named by the pods, if their ID was generated. Such pods share an
	// application only if they name the same queue.
	Queue string
}

// inLeaf is the name inside one leaf, where the queue named by the pods does not matter.
func (n AppName) inLeaf() AppName { return AppName{Namespace: n.Namespace, ID: n.ID} }

func (n AppName) String() string { return n.Namespace + "/" + n.ID + "/" + n.Queue }

// Record is what the caller has of an application. It embeds an App.
type Record interface {
	comparable
	record() *App
}

func (a *App) record() *App { return a }

// Apps has the records of all applications. An application has a record in each leaf
// where it has pods. Make one with NewApps.
type Apps[A Record] struct {
	byName map[AppName][]A // oldest first
	byLeaf map[queues.ID]map[AppName]A
	serial uint64
}

// NewApps returns no applications.
func NewApps[A Record]() Apps[A] {
	return Apps[A]{byName: map[AppName][]A{}, byLeaf: map[queues.ID]map[AppName]A{}}
}

// Add adds a record and gives it its Serial.
func (x *Apps[A]) Add(a A) {
	r := a.record()
	x.serial++
	r.Serial = x.serial
	x.byName[r.Name] = append(x.byName[r.Name], a)
	if x.byLeaf[r.Leaf] == nil {
		x.byLeaf[r.Leaf] = map[AppName]A{}
	}
	x.byLeaf[r.Leaf][r.Name.inLeaf()] = a
}

// Remove removes a record. It tells whether it was the last one of its leaf.
func (x *Apps[A]) Remove(a A) (last bool) {
	r := a.record()
	for _, name := range append(r.aliases, r.Name) {
		if x.byName[name] = slices.DeleteFunc(x.byName[name], func(o A) bool { return o == a }); len(x.byName[name]) == 0 {
			delete(x.byName, name)
		}
	}
	delete(x.byLeaf[r.Leaf], r.Name.inLeaf())
	if last = len(x.byLeaf[r.Leaf]) == 0; last {
		delete(x.byLeaf, r.Leaf)
	}
	return last
}

// Named returns the records of an application, oldest first.
func (x *Apps[A]) Named(name AppName) []A { return x.byName[name] }

// Joinable returns the record that a new pod of an application joins: the oldest one in a
// queue that takes pods; the zero A if there is none. A pending pod does not join a record
// in the recovery queue, because that queue has no quota.
func (x *Apps[A]) Joinable(tree queues.View, name AppName, running bool) (recovered A) {
	for _, a := range x.byName[name] {
		switch q := tree.Queue(a.record().Leaf); {
		case q.Path == queues.RecoveryPath && running:
			recovered = a
		case q.Path != queues.RecoveryPath && q.Leaf:
			return a
		}
	}
	return recovered
}

// In returns the record that an application has in a leaf; the zero A if there is none.
func (x *Apps[A]) In(leaf queues.ID, name AppName) A { return x.byLeaf[leaf][name.inLeaf()] }

// Rejoin returns the record that an application has in the leaf that the placement rules chose;
// the zero A if there is none. The record may be under another name: with an ID generated for
// the pods of a namespace, the pods may write the name of their queue in several ways. Rejoin
// adds the new name to the record.
func (x *Apps[A]) Rejoin(leaf queues.ID, name AppName) A {
	a := x.In(leaf, name)
	var none A
	if a != none && !slices.Contains(x.byName[name], a) {
		a.record().aliases = append(a.record().aliases, name)
		x.byName[name] = append(x.byName[name], a)
	}
	return a
}

// All yields all records by their Serial, in no particular order.
func (x *Apps[A]) All() iter.Seq2[uint64, A] {
	return func(yield func(uint64, A) bool) {
		for _, apps := range x.byLeaf {
			for _, a := range apps {
				if !yield(a.record().Serial, a) {
					return
				}
			}
		}
	}
}

// Records yields all applications, in no particular order.
func (x *Apps[A]) Records() iter.Seq[*App] {
	return func(yield func(*App) bool) {
		for _, a := range x.All() {
			if !yield(a.record()) {
				return
			}
		}
	}
}

// Leaves returns the leaves with applications, sorted.
func (x *Apps[A]) Leaves() []queues.ID { return slices.Sorted(maps.Keys(x.byLeaf)) }

// Check verifies that each record of a pod is known, and that an application has one
// record in a leaf.
func (x *Apps[A]) Check(pods iter.Seq[*Pod]) error {
	known := map[*App]bool{}
	for a := range x.Records() {
		known[a] = true
	}
	for p := range pods {
		if p.app != nil && !known[p.app] {
			return fmt.Errorf("application %s: two records in queue %d", p.app.Name, p.app.Leaf)
		}
	}
	for name, apps := range x.byName {
		for _, a := range apps {
			if x.In(a.record().Leaf, name) != a {
				return fmt.Errorf("application %s: a record that its queue does not know", name)
			}
		}
	}
	return nil
}
