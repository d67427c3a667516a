// Package lockorder has locks that watch in which order they are taken. Two
// goroutines that take two locks in different orders wait for each other one day;
// here it is enough that each order was seen once, at different times.
//
//	make lockorder
//
// builds the scheduler's packages with these locks in place of those of package
// sync (see the program in overlay) and lives the histories of test/simulation with
// them. A lock is known by the field that it is, so that an order that was seen with
// one store counts for all. Locks of others, such as upstream's, are told of with
// [Enter] where their code calls ours or ours calls theirs.
//
// Nothing outside of such a build uses it.
package lockorder

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
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

// TryLock takes the lock if that needs no waiting. Who does not wait is in no circle.
func (m *Mutex[C]) TryLock() bool {
	if !m.mu.TryLock() {
		return false
	}
	held.add(goroutine(), name[C]())
	return true
}

// Unlock gives it back.
func (m *Mutex[C]) Unlock() {
	m.mu.Unlock()
	leave(name[C]())
}

// RWMutex is a sync.RWMutex that watches. Readers count as writers do: one who waits
// to write holds up those who come to read.
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
func Seen() []string {
	seen.mu.Lock()
	defer seen.mu.Unlock()
	var out []string
	for before, after := range seen.after {
		for lock := range after {
			out = append(out, before+" before "+lock)
		}
	}
	slices.Sort(out)
	return out
}

// Reset forgets everything.
func Reset() {
	seen.mu.Lock()
	defer seen.mu.Unlock()
	seen.after, seen.wrong = map[string]map[string]string{}, nil
}

// name is how people know a lock.
func name[C any]() string {
	t := reflect.TypeFor[C]()
	pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
	return pkg + "." + strings.ReplaceAll(strings.TrimPrefix(t.Name(), "lockOf_"), "_", ".")
}

// holding is what each goroutine holds.
type holding struct {
	mu sync.Mutex
	by map[uint64][]string
}

func (h *holding) add(g uint64, lock string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.by[g] = append(h.by[g], lock)
}

func (h *holding) remove(g uint64, lock string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.by[g], lock); i >= 0 {
		h.by[g] = slices.Delete(h.by[g], i, i+1)
	}
	if len(h.by[g]) == 0 {
		delete(h.by, g)
	}
}

func (h *holding) of(g uint64) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.by[g])
}

// orders is which lock was taken while which one was held, and where first.
type orders struct {
	mu    sync.Mutex
	after map[string]map[string]string
	wrong []error
}

var (
	held = holding{by: map[uint64][]string{}}
	seen = orders{after: map[string]map[string]string{}}
)

func enter(lock string) {
	g := goroutine()
	for _, before := range held.of(g) {
		seen.note(before, lock)
	}
	held.add(g, lock)
}

// leave is told by who gives a lock back: the goroutine that took it, in all code
// that is watched.
func leave(lock string) { held.remove(goroutine(), lock) }

func (o *orders) note(before, lock string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.after[before][lock]; known {
		return
	}
	if o.after[before] == nil {
		o.after[before] = map[string]string{}
	}
	o.after[before][lock] = stack()
	if way := o.way(lock, before, nil); way != nil {
		text := fmt.Sprintf("%s is taken while %s is held:\n%s", lock, before, o.after[before][lock])
		for i := range len(way) - 1 {
			text += fmt.Sprintf("and %s while %s is held:\n%s", way[i+1], way[i], o.after[way[i]][way[i+1]])
		}
		o.wrong = append(o.wrong, errors.New(text))
	}
}

// way is how one leads from a lock to another one by what is taken after what; nil
// if it does not.
func (o *orders) way(from, to string, past []string) []string {
	if past = append(slices.Clone(past), from); from == to {
		return past
	}
	for next := range o.after[from] {
		if slices.Contains(past, next) {
			continue
		}
		if found := o.way(next, to, past); found != nil {
			return found
		}
	}
	return nil
}

// goroutine is the number of the one that asks.
func goroutine() uint64 {
	var buf [64]byte
	text := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	if i := bytes.IndexByte(text, ' '); i >= 0 {
		text = text[:i]
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		panic(err) // the runtime writes it otherwise by now
	}
	return n
}

func stack() string {
	buf := make([]byte, 8192)
	return string(buf[:runtime.Stack(buf, false)])
}
