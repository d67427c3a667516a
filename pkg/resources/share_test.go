package resources

import (
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestShareEdges(t *testing.T) {
	tests := []struct {
		used, of Amount
		want     string
	}{
		{0, 0, "0"}, {0, 5, "0"}, {-1, 5, "0"}, {-1, 0, "0"}, {MinAmount, MinAmount, "0"},
		{3, 8, "3/8"}, {8, 4, "8/4"},
		{3, 0, "1/1"}, {3, -1, "1/1"}, {MaxAmount, 0, "1/1"},
		{MaxAmount, 1, "9223372036854775807/1"},
	}
	for _, test := range tests {
		if got := ShareOf(test.used, test.of).String(); got != test.want {
			t.Errorf("ShareOf(%d, %d): got %s, want %s", test.used, test.of, got, test.want)
		}
	}
	if (Share{}).Compare(ShareOf(0, 7)) != 0 || ShareOf(2, 4).Compare(ShareOf(1, 2)) != 0 {
		t.Error("shares of equal value differ")
	}
	// Apart by less than a float64 can tell.
	if a, b := ShareOf(MaxAmount-1, MaxAmount), ShareOf(MaxAmount-2, MaxAmount-1); a.Compare(b) != 1 || b.Compare(a) != -1 {
		t.Errorf("%v is not more than %v", a, b)
	}
}

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

func rat(s Share) *big.Rat {
	if s.used == 0 {
		return new(big.Rat)
	}
	return new(big.Rat).SetFrac(new(big.Int).SetUint64(s.used), new(big.Int).SetUint64(s.of))
}

// account is what a queue uses of what.
type account struct {
	used       Vector
	guaranteed Guarantee
	max        Limit
	capacity   Limit
}

var accounts = rapid.Custom(func(t *rapid.T) account {
	amounts := rapid.OneOf(counts, anyKind)
	return account{vectors(amounts).Draw(t, "used"), guarantees(amounts).Draw(t, "guaranteed"),
		limits(amounts).Draw(t, "max"), limits(amounts).Draw(t, "capacity")}
})

func TestDominantShareAgreesWithRationals(t *testing.T) {
	law := func(dominant func(Vector, Guarantee, ...Limit) Share) func(account) error {
		return func(c account) error {
			want := new(big.Rat)
			for _, name := range typeNames {
				of, named := c.guaranteed.Get(name)
				if !named {
					of, named = c.max.Get(name)
				}
				if !named {
					of, named = c.capacity.Get(name)
				}
				if s := rational(c.used.Get(name), of); named && s.Cmp(want) > 0 {
					want = s
				}
			}
			if got := rat(dominant(c.used, c.guaranteed, c.max, c.capacity)); got.Cmp(want) != 0 {
				return fmt.Errorf("%v: got %v, want %v", c, got, want)
			}
			return nil
		}
	}
	zeroIsAbsent := func(used Vector, g Guarantee, bounds ...Limit) Share {
		named := g.Map()
		for name, amount := range named {
			if amount == 0 {
				delete(named, name)
			}
		}
		return DominantShare(used, GuaranteeFrom(named), bounds...)
	}
	prove(t, accounts, law(DominantShare), law(zeroIsAbsent))
}
