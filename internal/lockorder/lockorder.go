// Package lockorder has locks that watch in which order they are taken. Two
// goroutines that take two locks in different orders wait for each other one day;
// here it is enough that each order was seen once, at different times.
//
//	make lockorder
//
// builds the scheduler's packages with these locks in place of those of package
// sync (see the program in overlay), runs the tests of those that have locks and lives
// the histories of test/simulation. A lock is known by the field that it is, so that an
// order that was seen with one store counts for all. Locks of others, such as
// upstream's, are told of with [Enter] where their code calls ours or ours calls theirs.
// What all these programs saw has to be what [Declared] says (see the program in judge).
//
// Nothing outside of such a build uses it.
package lockorder

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Mutex is a sync.Mutex that watches. C is a type that stands for the field.
type Mutex[C any] struct{ mu sync.Mutex }

// Lock takes the lock.
func (m *Mutex[C]) Lock() {
	enter(name[C]())
	m.mu.Lock()
}

// TryLock takes the lock if that needs no waiting. A goroutine that does not wait is in
// no circle.
func (m *Mutex[C]) TryLock() bool {
	if !m.mu.TryLock() {
		return false
	}
	seen.take(name[C]())
	held.add(goroutine(), name[C]())
	return true
}

// Unlock gives it back.
func (m *Mutex[C]) Unlock() {
	m.mu.Unlock()
	leave(name[C]())
}

// RWMutex is a sync.RWMutex that watches. Readers count as writers do: a writer that
// waits holds up later readers.
type RWMutex[C any] struct{ mu sync.RWMutex }

// Lock takes the lock.
func (m *RWMutex[C]) Lock() {
	enter(name[C]())
	m.mu.Lock()
}

// Unlock gives it back.
func (m *RWMutex[C]) Unlock() {
	m.mu.Unlock()
	leave(name[C]())
}

// RLock takes the lock for reading.
func (m *RWMutex[C]) RLock() {
	enter(name[C]())
	m.mu.RLock()
}

// RUnlock gives it back.
func (m *RWMutex[C]) RUnlock() {
	m.mu.RUnlock()
	leave(name[C]())
}

// Enter tells that a lock of others is held, or is about to be taken; the returned
// function, that it is given back. It may be told again while it is held: they call
// us from within what we have called.
func Enter(lock string) (done func()) {
	if slices.Contains(held.of(goroutine()), lock) {
		return func() {}
	}
	enter(lock)
	return func() { leave(lock) }
}

// Wrong is what is wrong with the orders seen so far: a circle, or a lock that is
// taken while one of its kind is held. It is nil for nothing.
func Wrong() error {
	seen.mu.Lock()
	defer seen.mu.Unlock()
	return errors.Join(seen.wrong...)
}

// Seen lists the orders seen so far, sorted.
func Seen() []Order {
	seen.mu.Lock()
	defer seen.mu.Unlock()
	var out []Order
	for before, after := range seen.after {
		for lock := range after {
			out = append(out, Order{before, lock})
		}
	}
	slices.SortFunc(out, Order.compare)
	return out
}

// Reset forgets everything.
func Reset() {
	seen.mu.Lock()
	defer seen.mu.Unlock()
	seen.taken, seen.after, seen.wrong = map[string]bool{}, map[string]map[string]string{}, nil
}

// name is how people know a lock.
func name[C any]() string {
	t := reflect.TypeFor[C]()
	pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
	return pkg + "." + strings.ReplaceAll(strings.TrimPrefix(t.Name(), "lockOf_"), "_", ".")
}
