package history

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
)

// Mark is the part of a thing that its [Dirty] set needs. Embed it in the thing. The zero
// Mark is that of a thing that no reader has seen and that is not in the set.
type Mark[R any] struct {
	shown *R    // as readers saw it last; nil for never
	at    int32 // index in the set plus 1; 0 outside
}

func (m *Mark[R]) mark() *Mark[R] { return m }

// Marked is a thing with a Mark.
type Marked[R any] interface{ mark() *Mark[R] }

// Dirty has the things of one kind that changed since a reader looked at them, and the
// keys of things that a reader has seen and that are gone. K is the key of a thing, R
// the record that readers get, and T the thing. A thing is in the set once, however often
// it changes. A thing that was never read leaves no key when it goes. The zero Dirty is
// empty.
type Dirty[K comparable, R any, T Marked[R]] struct {
	list []T
	gone []K
}

// Add marks a thing as changed.
func (d *Dirty[K, R, T]) Add(x T) {
	if m := x.mark(); m.at == 0 {
		d.list = append(d.list, x)
		m.at = int32(len(d.list))
	}
}

// Remove notes that a thing is gone. It may be called again.
func (d *Dirty[K, R, T]) Remove(x T, key K) {
	m := x.mark()
	if m.at != 0 {
		last := len(d.list) - 1
		d.list[m.at-1] = d.list[last]
		d.list[m.at-1].mark().at = m.at
		m.at = 0
		d.shrink(last)
	}
	if m.shown != nil {
		d.gone = append(d.gone, key)
		m.shown = nil
	}
}

// TakeGone takes at most limit keys of things that are gone, the first ones first.
func (d *Dirty[K, R, T]) TakeGone(limit int) []K {
	n := min(limit, len(d.gone))
	taken := d.gone[:n:n]
	if d.gone = d.gone[n:]; len(d.gone) == 0 {
		d.gone = nil
	}
	return taken
}

// Take takes at most limit things out of the set, in no particular order, and returns
// their records, which readers must not change. It takes nothing before all of TakeGone
// is taken, because a new thing may have the key of one that is gone.
func (d *Dirty[K, R, T]) Take(limit int, record func(T) *R) []*R {
	first := max(len(d.list)-limit, 0)
	if first == len(d.list) || len(d.gone) > 0 {
		return nil
	}
	taken := make([]*R, 0, len(d.list)-first)
	for _, x := range d.list[first:] {
		m := x.mark()
		m.at, m.shown = 0, record(x)
		taken = append(taken, m.shown)
	}
	d.shrink(first)
	return taken
}

func (d *Dirty[K, R, T]) shrink(n int) {
	clear(d.list[n:])
	d.list = d.list[:n]
}

// Len is the number of changed things and of keys of things that are gone.
func (d *Dirty[K, R, T]) Len() int { return len(d.list) + len(d.gone) }

// Check verifies that each of all things is in the set or is as readers saw it last, and
// that the set is consistent.
func (d *Dirty[K, R, T]) Check(all iter.Seq2[K, T], record func(T) *R) error {
	var errs []error
	for key, x := range all {
		if m := x.mark(); m.at == 0 && (m.shown == nil || !reflect.DeepEqual(m.shown, record(x))) {
			errs = append(errs, fmt.Errorf("%v changed and readers were not told", key))
		}
	}
	for i, x := range d.list {
		if at := x.mark().at; int(at) != i+1 {
			errs = append(errs, fmt.Errorf("entry %d of the dirty set has index %d", i, at-1))
		}
	}
	return errors.Join(errs...)
}
