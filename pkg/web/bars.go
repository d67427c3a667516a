package web

import (
	"math/bits"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// barWidth is how wide a bar is, in units of its drawing; its end.
const barWidth = 1000

// bar is one type of resource of one queue or node, drawn and in numbers. Places
// are 0 to barWidth.
type bar struct {
	Type, Unit string
	// Entitled is used and within the guarantee, Above is used beyond it, Waiting is
	// what pods that wait request: three pieces that follow each other.
	Entitled, Above, Waiting piece
	// Occupied is used by pods of other schedulers, after Above; nodes only.
	Occupied piece
	// Guarantee is the place of the guarantee, Limit that of the max; -1 for none.
	Guarantee, Limit int
	// The numbers; empty for none.
	Used, Guaranteed, Max, Wanted, Foreign string
	// Says is the bar as a sentence.
	Says string
}

// piece is a part of a bar.
type piece struct{ From, Width int }

// scale is what a bar is drawn from, in base units.
type scale struct {
	name                                string
	used, occupied, waiting, guaranteed resources.Amount
	promised                            bool
	limit                               resources.Amount
	limited                             bool
	// room is the length of the bar if there is no limit.
	room resources.Amount
}

// place returns the place of an amount in a bar of length full.
func place(a, full resources.Amount) int {
	if a <= 0 || full <= 0 {
		return 0
	}
	if a >= full {
		return barWidth
	}
	hi, lo := bits.Mul64(uint64(a), barWidth)
	quotient, _ := bits.Div64(hi, lo, uint64(full)) // a < full, so hi < full
	return max(int(quotient), 1)
}

// full returns the amount of the whole bar: the limit, or the room; more if more is used or
// guaranteed.
func (s scale) full() resources.Amount {
	full := s.room
	if s.limited {
		full = s.limit
	}
	return max(full, s.guaranteed, s.used.Add(s.occupied), 1)
}

// draw lays out a bar.
func (s scale) draw() bar {
	full := s.full()
	within := min(s.used, s.guaranteed)
	entitled, used := place(within, full), place(s.used, full)
	occupied := place(s.used.Add(s.occupied), full)
	wanted := place(s.used.Add(s.occupied).Add(s.waiting), full)
	b := bar{
		Type: visible(s.name), Unit: unit(s.name), Guarantee: -1, Limit: -1,
		Entitled: piece{0, entitled}, Above: piece{entitled, used - entitled},
		Occupied: piece{used, occupied - used}, Waiting: piece{occupied, wanted - occupied},
		Used: number(s.name, s.used),
	}
	if s.promised {
		b.Guarantee, b.Guaranteed = place(s.guaranteed, full), number(s.name, s.guaranteed)
	}
	if s.limited {
		b.Limit, b.Max = place(s.limit, full), number(s.name, s.limit)
	}
	if s.waiting > 0 {
		b.Wanted = number(s.name, s.waiting)
	}
	if s.occupied > 0 {
		b.Foreign = number(s.name, s.occupied)
	}
	b.Says = s.sentence()
	return b
}

func (s scale) sentence() string {
	parts := []string{quantity(s.name, s.used) + " allocated"}
	if s.occupied > 0 {
		parts = append(parts, quantity(s.name, s.occupied)+" used by other schedulers' pods")
	}
	if s.promised {
		parts = append(parts, quantity(s.name, s.guaranteed)+" guaranteed")
	}
	if s.limited {
		parts = append(parts, "at most "+quantity(s.name, s.limit))
	}
	if s.waiting > 0 {
		parts = append(parts, quantity(s.name, s.waiting)+" waiting")
	}
	return visible(s.name) + ": " + strings.Join(parts, ", ")
}

// rank sorts the types that every queue and node has first.
func rank(name string) int {
	switch name {
	case resources.CPU:
		return 0
	case resources.Memory:
		return 1
	case resources.Pods:
		return 3
	}
	return 2
}

// common are the types that are shown of every queue and node.
var common = []string{resources.CPU, resources.Memory}
