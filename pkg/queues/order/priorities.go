package order

import (
	"cmp"
	"slices"
)

// priorities counts values and returns the largest. There are few different values at a
// time, so a sorted slice is sufficient.
type priorities struct {
	counted []counted // ascending by value, counts above 0
}

type counted struct {
	value int64
	n     int
}

func (p *priorities) find(v int64) (int, bool) {
	return slices.BinarySearchFunc(p.counted, v, func(c counted, v int64) int { return cmp.Compare(c.value, v) })
}

func (p *priorities) add(v int64) {
	i, ok := p.find(v)
	if !ok {
		p.counted = slices.Insert(p.counted, i, counted{value: v})
	}
	p.counted[i].n++
}

func (p *priorities) remove(v int64) {
	i, _ := p.find(v)
	if p.counted[i].n--; p.counted[i].n == 0 {
		p.counted = slices.Delete(p.counted, i, i+1)
	}
}

// place is what a priorities counts for one item; the zero value stands for nothing.
type place struct {
	value int64
	in    bool
}

// recount makes p count value for the item, or nothing if it is not wanted.
func (p *priorities) recount(of *place, value int64, wanted bool) {
	if of.in && wanted && of.value == value {
		return
	}
	if of.in {
		p.remove(of.value)
	}
	if wanted {
		p.add(value)
	}
	*of = place{value: value, in: wanted}
}

// largest returns the largest value; 0 if there is none.
func (p *priorities) largest() int64 {
	if len(p.counted) == 0 {
		return 0
	}
	return p.counted[len(p.counted)-1].value
}
