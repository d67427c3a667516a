package ranking_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/internal/ranking"
)

type item struct{ value, id, at int }

func (i *item) Place() *int { return &i.at }

func less(a, b *item) bool { return a.value < b.value || a.value == b.value && a.id < b.id }

// Items that come, go and change are always led by the first in the order.
func TestHeapProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := ranking.New(less)
		var in, out []*item
		for id := range 8 {
			out = append(out, &item{id: id, at: ranking.Outside})
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				if len(out) > 0 {
					i := out[0]
					i.value = rapid.IntRange(0, 4).Draw(t, "value")
					h.Update(i, true)
					in, out = append(in, i), out[1:]
				}
			case 1:
				if len(in) > 0 {
					n := rapid.IntRange(0, len(in)-1).Draw(t, "which")
					h.Update(in[n], false)
					out = append(out, in[n])
					in = slices.Delete(in, n, n+1)
				}
			case 2:
				if len(in) > 0 {
					i := rapid.SampledFrom(in).Draw(t, "which")
					i.value = rapid.IntRange(0, 4).Draw(t, "value")
					h.Update(i, true)
				}
			case 3:
				for _, i := range in {
					i.value = rapid.IntRange(0, 4).Draw(t, "value")
				}
				h.Restore()
			}
			if err := h.Check(); err != nil {
				t.Fatal(err)
			}
			first, ok := h.First()
			if ok != (len(in) > 0) || h.Len() != len(in) {
				t.Fatalf("%d items of %d", h.Len(), len(in))
			}
			for _, i := range in {
				if less(i, first) {
					t.Fatalf("%+v is first, although there is %+v", *first, *i)
				}
			}
			for _, o := range out {
				if o.at != ranking.Outside {
					t.Fatalf("%+v is outside and has a place", *o)
				}
				h.Update(o, false) // taking out what is not in changes nothing
			}
		}
	})
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	h := ranking.New(less)
	items := []*item{{value: 1, at: -1}, {value: 2, at: -1}}
	for _, i := range items {
		h.Update(i, true)
	}
	items[1].value = 0
	expect.That(t, h.Check() != nil, "an item before the one above it was not found")
	items[1].value, items[1].at = 2, 0
	expect.That(t, h.Check() != nil, "an item with a wrong place was not found")
}

// Leading gives what sorting gives, and looks at little more than that.
func TestLeadingProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		looked := 0
		h := ranking.New(less)
		var all []*item
		for id, value := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 40).Draw(t, "values") {
			i := &item{value: value, id: id, at: ranking.Outside}
			h.Update(i, true)
			all = append(all, i)
		}
		slices.SortFunc(all, func(a, b *item) int { return map[bool]int{true: -1, false: 1}[less(a, b)] })
		bound, most := rapid.IntRange(0, 10).Draw(t, "bound"), rapid.IntRange(0, 40).Draw(t, "most")
		got, whole := h.Leading(func(i *item) bool { looked++; return i.value < bound }, most)
		want := all[:0:0]
		for _, i := range all {
			if i.value < bound {
				want = append(want, i)
			}
		}
		if cut := want[:min(most, len(want))]; !slices.Equal(got, cut) || whole != (len(want) <= most) {
			t.Fatalf("%d items, all: %t; want %d of %d", len(got), whole, len(cut), len(want))
		}
		if looked > len(got)+1 {
			t.Fatalf("%d looks for %d items", looked, len(got))
		}
	})
}
