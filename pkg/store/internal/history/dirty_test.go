package history_test

import (
	"fmt"
	"maps"
	"math/rand"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
)

// thing is a thing with one value that readers see.
type thing struct {
	history.Mark[int]
	value int
}

func recordOfThing(x *thing) *int { return &x.value }

func copyOfThing(x *thing) *int {
	value := x.value
	return &value
}

type dirty = history.Dirty[string, int, *thing]

// A reader that applies what it takes has a copy of all things, whatever happened
// between its calls and however little it takes at a time.
func TestDirtyKeepsACopyUpToDate(t *testing.T) {
	for seed := range int64(50) {
		r := rand.New(rand.NewSource(seed))
		var d dirty
		things, names, copied := map[string]*thing{}, map[*thing]string{}, map[string]*int{}
		take := func(gone int) {
			for _, name := range d.TakeGone(gone) {
				delete(copied, name)
			}
			d.Take(2, func(x *thing) *int {
				copied[names[x]] = copyOfThing(x)
				return copied[names[x]]
			})
		}
		for step := range 400 {
			name := fmt.Sprint("t", r.Intn(20))
			x := things[name]
			switch {
			case x == nil:
				x = &thing{value: step}
				things[name], names[x] = x, name
				d.Add(x)
			case r.Intn(4) == 0:
				delete(things, name)
				d.Remove(x, name)
				d.Remove(x, name)
			default:
				x.value = step
				d.Add(x)
			}
			if err := d.Check(maps.All(things), recordOfThing); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if r.Intn(3) == 0 {
				take(3)
			}
		}
		for d.Len() > 0 {
			take(2)
		}
		same := func(value *int, x *thing) bool { return *value == x.value }
		expect.That(t, maps.EqualFunc(copied, things, same), "seed %d: the copy of %d things differs", seed, len(things))
	}
}

func TestDirtyNoticesAMissingMark(t *testing.T) {
	var d dirty
	x := &thing{value: 1}
	all := maps.All(map[string]*thing{"x": x})
	expect.That(t, d.Check(all, recordOfThing) != nil, "a new thing without a mark is not noticed")
	d.Add(x)
	d.Take(1, copyOfThing)
	expect.Holds(t, d.Check(all, recordOfThing))
	x.value = 2
	expect.That(t, d.Check(all, recordOfThing) != nil, "a changed thing without a mark is not noticed")
}
