package lockorder

import (
	"bytes"
	"runtime"
	"slices"
	"strconv"
	"sync"
)

// holding is the locks that each goroutine holds.
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

// orders records which locks were taken, which lock was taken while which one was held,
// and where first.
type orders struct {
	mu     sync.Mutex
	taken  map[string]bool
	stacks map[Order]string
}

var (
	held = holding{by: map[uint64][]string{}}
	seen = orders{taken: map[string]bool{}, stacks: map[Order]string{}}
)

func enter(lock string) {
	seen.take(lock)
	g := goroutine()
	for _, before := range held.of(g) {
		seen.note(Order{before, lock})
	}
	held.add(g, lock)
}

// leave is called by the goroutine that releases a lock. In all watched code that is the
// one that took it.
func leave(lock string) { held.remove(goroutine(), lock) }

func (o *orders) take(lock string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.taken[lock] {
		o.taken[lock] = true
		tell(Sighting{Order: Order{Lock: lock}})
	}
}

func (o *orders) note(order Order) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.stacks[order]; !known {
		o.stacks[order] = stack()
		tell(Sighting{Order: order, Stack: o.stacks[order]})
	}
}

// goroutine returns the number of the calling goroutine.
func goroutine() uint64 {
	var buf [64]byte
	text := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	if i := bytes.IndexByte(text, ' '); i >= 0 {
		text = text[:i]
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		panic(err) // the runtime has changed the format
	}
	return n
}

func stack() string {
	buf := make([]byte, 8192)
	return string(buf[:runtime.Stack(buf, false)])
}
