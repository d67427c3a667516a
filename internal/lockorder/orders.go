package lockorder

import (
	"bytes"
	"errors"
	"fmt"
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
	mu    sync.Mutex
	taken map[string]bool
	after map[string]map[string]string
	wrong []error
}

var (
	held = holding{by: map[uint64][]string{}}
	seen = orders{taken: map[string]bool{}, after: map[string]map[string]string{}}
)

func enter(lock string) {
	seen.take(lock)
	g := goroutine()
	for _, before := range held.of(g) {
		seen.note(before, lock)
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
	tell(Sighting{Order: Order{before, lock}, Stack: o.after[before][lock]})
	if way := o.way(lock, before, nil); way != nil {
		text := fmt.Sprintf("%s is taken while %s is held:\n%s", lock, before, o.after[before][lock])
		for i := range len(way) - 1 {
			text += fmt.Sprintf("and %s while %s is held:\n%s", way[i+1], way[i], o.after[way[i]][way[i+1]])
		}
		o.wrong = append(o.wrong, errors.New(text))
	}
}

// way returns a path from a lock to another one by the recorded orders; nil if there is
// none.
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
