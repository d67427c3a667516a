package resources

import (
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"
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
		if got := DominantShare(test.used, test.guaranteed, test.bounds...).String(); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
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

// three is three pairs of used and entitled.
type three [3]pair

var threes = rapid.Custom(func(t *rapid.T) three {
	amounts := rapid.OneOf(counts, extreme, rapid.Map(rapid.Int64Range(int64(MaxAmount)-4, int64(MaxAmount)), func(i int64) Amount { return Amount(i) }))
	var out three
	for i := range out {
		out[i] = pair{amounts.Draw(t, "used"), amounts.Draw(t, "of")}
	}
	return out
})

type comparison = func(s, t Share) int

func inFloats(s, t Share) int {
	value := func(s Share) float64 {
		if s.used == 0 {
			return 0
		}
		return float64(s.used) / float64(s.of)
	}
	switch a, b := value(s), value(t); {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestShareCompareAgreesWithRationals(t *testing.T) {
	law := func(compare comparison) func(three) error {
		return func(c three) error {
			want := rational(c[0].a, c[0].b).Cmp(rational(c[1].a, c[1].b))
			if got := compare(ShareOf(c[0].a, c[0].b), ShareOf(c[1].a, c[1].b)); got != want {
				return fmt.Errorf("%v: got %d, want %d", c[:2], got, want)
			}
			return nil
		}
	}
	prove(t, threes, law(Share.Compare), law(inFloats))
}
