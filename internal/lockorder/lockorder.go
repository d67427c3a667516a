// Package lockorder has locks that record the order in which they are taken. Two
// goroutines that take two locks in different orders can deadlock; here it is enough that
// each order was seen once, at different times.
//
//	make lockorder
//
// builds the scheduler's packages with these locks in place of those of package sync (see
// the program in overlay), runs the tests of packages with locks and the histories of
// test/simulation. A lock is identified by its field, so that an order that was seen with
// one store counts for all. Foreign locks, such as upstream's, are reported with [Enter]
// where their code calls ours or ours calls theirs. The orders that all these programs
// saw must be those in [Declared] (see the program in judge).
//
// Only such a build uses this package.
package lockorder

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Mutex is a sync.Mutex that records its order. C is a type that stands for the field.
type Mutex[C any] struct{ mu sync.Mutex }

// Lock takes the lock.
func (m *Mutex[C]) Lock() {
	enter(name[C]())
	m.mu.Lock()
}

// Unlock releases the lock.
func (m *Mutex[C]) Unlock() {
	m.mu.Unlock()
	leave(name[C]())
}

// RWMutex is a sync.RWMutex that records its order. Readers count as writers do: a
// waiting writer blocks later readers.
type RWMutex[C any] struct{ mu sync.RWMutex }

// Lock takes the lock.
func (m *RWMutex[C]) Lock() {
	enter(name[C]())
	m.mu.Lock()
}

// Unlock releases the lock.
func (m *RWMutex[C]) Unlock() {
	m.mu.Unlock()
	leave(name[C]())
}

// RLock takes the lock for reading.
func (m *RWMutex[C]) RLock() {
	enter(name[C]())
	m.mu.RLock()
}

// RUnlock releases the lock.
func (m *RWMutex[C]) RUnlock() {
	m.mu.RUnlock()
	leave(name[C]())
}

// Enter reports that a foreign lock is held, or is about to be taken; the returned
// function reports its release. It may be called again while the lock is held, because
// foreign code may call ours back.
func Enter(lock string) (done func()) {
	if slices.Contains(held.of(goroutine()), lock) {
		return func() {}
	}
	enter(lock)
	return func() { leave(lock) }
}

// Seen lists the orders seen so far, sorted, each with the stack that showed it first.
func Seen() []Sighting {
	seen.mu.Lock()
	defer seen.mu.Unlock()
	var out []Sighting
	for order, stack := range seen.stacks {
		out = append(out, Sighting{Order: order, Stack: stack})
	}
	slices.SortFunc(out, func(a, b Sighting) int { return a.compare(b.Order) })
	return out
}

// Reset forgets everything.
func Reset() {
	seen.mu.Lock()
	defer seen.mu.Unlock()
	seen.taken, seen.stacks = map[string]bool{}, map[Order]string{}
}

// name is the readable name of a lock.
func name[C any]() string {
	t := reflect.TypeFor[C]()
	pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
	return pkg + "." + strings.ReplaceAll(strings.TrimPrefix(t.Name(), "lockOf_"), "_", ".")
}
