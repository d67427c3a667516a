package resources

import (
	"cmp"
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestDominantShareEdges(t *testing.T) {
	used := VectorOf(Entry{CPU, 4}, Entry{Memory, 30})
	capacity := []Limit{LimitOf(Entry{CPU, 40}, Entry{Memory, 100})}
	tests := []struct {
		name       string
		used       Vector
		guaranteed Guarantee
		bounds     []Limit
		want       string
	}{
		{"nothing used", Vector{}, GuaranteeOf(Entry{CPU, 1}), capacity, "0"},
		{"negative use", VectorOf(Entry{CPU, -1}), GuaranteeOf(Entry{CPU, 1}), capacity, "0"},
		{"largest of the capacity", used, Guarantee{}, capacity, "30/100"},
		{"guarantee before capacity", used, GuaranteeOf(Entry{CPU, 8}), capacity, "4/8"},
		{"over the guarantee", used, GuaranteeOf(Entry{CPU, 2}), capacity, "4/2"},
		{"guarantee of 0", used, GuaranteeOf(Entry{CPU, 0}), capacity, "1/1"},
		{"capacity of 0", VectorOf(Entry{"gpu", 1}), Guarantee{}, []Limit{LimitOf(Entry{"gpu", 0})}, "1/1"},
		{"neither guaranteed nor there", VectorOf(Entry{"gpu", 1}), Guarantee{}, capacity, "0"},
		{"a guaranteed type that is not used", VectorOf(Entry{Memory, 1}), GuaranteeOf(Entry{CPU, 1}), capacity, "1/100"},
		{"unlimited", used, Guarantee{}, []Limit{{}}, "0"},
		{"no bounds at all", used, Guarantee{}, nil, "0"},
		{"the first bound that names the type", used, Guarantee{}, []Limit{LimitOf(Entry{Memory, 60}), capacity[0]}, "30/60"},
		{"a bound of 0 is a bound", used, Guarantee{}, []Limit{LimitOf(Entry{CPU, 0}), capacity[0]}, "1/1"},
	}
	for _, test := range tests {
		expect.Same(t, test.name, test.want, DominantShare(test.used, test.guaranteed, test.bounds...).String())
	}
}

// rational is the value of a share, made from its definition.
func rational(used, of Amount) *big.Rat {
	switch {
	case used <= 0:
		return new(big.Rat)
	case of <= 0:
		return big.NewRat(1, 1)
	}
	return big.NewRat(int64(used), int64(of))
}

// pair is two amounts that are used, each with what it is a part of.
type pair struct{ a, ofA, b, ofB Amount }

var pairs = rapid.Custom(func(t *rapid.T) pair {
	amounts := rapid.OneOf(counts, extreme, rapid.SampledFrom([]Amount{MaxAmount - 2, MaxAmount - 3, MaxAmount - 4}))
	return pair{amounts.Draw(t, "a"), amounts.Draw(t, "of a"), amounts.Draw(t, "b"), amounts.Draw(t, "of b")}
})

func inFloats(s, t Share) int {
	value := func(s Share) float64 {
		if s.used == 0 {
			return 0
		}
		return float64(s.used) / float64(s.of)
	}
	return cmp.Compare(value(s), value(t))
}

func TestShareCompareAgreesWithRationals(t *testing.T) {
	law := func(compare func(s, t Share) int) func(pair) error {
		return func(c pair) error {
			want := rational(c.a, c.ofA).Cmp(rational(c.b, c.ofB))
			if got := compare(ShareOf(c.a, c.ofA), ShareOf(c.b, c.ofB)); got != want {
				return fmt.Errorf("%v: got %d, want %d", c, got, want)
			}
			return nil
		}
	}
	expect.Law(t, pairs, law(Share.Compare), law(inFloats))
}
