package resources

import (
	"cmp"
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestLimitEdges(t *testing.T) {
	tests := []struct {
		name      string
		limit     Limit
		used, ask Vector
		allows    bool
	}{
		{"unlimited", Limit{}, VectorOf(Entry{CPU, MaxAmount}), VectorOf(Entry{CPU, MaxAmount}), true},
		{"nothing asked", LimitOf(Entry{CPU, 0}), VectorOf(Entry{CPU, 9}), Vector{}, true},
		{"exactly full", LimitOf(Entry{CPU, 10}), VectorOf(Entry{CPU, 4}), VectorOf(Entry{CPU, 6}), true},
		{"one too many", LimitOf(Entry{CPU, 10}), VectorOf(Entry{CPU, 4}), VectorOf(Entry{CPU, 7}), false},
		{"explicit 0 forbids", LimitOf(Entry{"gpu", 0}), Vector{}, VectorOf(Entry{"gpu", 1}), false},
		{"a type not limited", LimitOf(Entry{CPU, 1}), Vector{}, VectorOf(Entry{Memory, 1 << 40}), true},
		{"over in a type not asked for", LimitOf(Entry{CPU, 1}, Entry{Memory, 5}), VectorOf(Entry{CPU, 9}), VectorOf(Entry{Memory, 5}), true},
		{"negative ask", LimitOf(Entry{CPU, 1}), VectorOf(Entry{CPU, 9}), VectorOf(Entry{CPU, -1}), true},
		{"negative limit", LimitOf(Entry{CPU, -1}), Vector{}, VectorOf(Entry{CPU, 1}), false},
		{"negative use", LimitOf(Entry{CPU, 1}), VectorOf(Entry{CPU, -4}), VectorOf(Entry{CPU, 5}), true},
		{"the sum saturates", LimitOf(Entry{CPU, MaxAmount - 1}), VectorOf(Entry{CPU, MaxAmount}), VectorOf(Entry{CPU, MaxAmount}), false},
		{"a limit nothing can exceed", LimitOf(Entry{CPU, MaxAmount}), VectorOf(Entry{CPU, MaxAmount}), VectorOf(Entry{CPU, 1}), true},
	}
	for _, test := range tests {
		expect.Same(t, test.name, test.allows, test.limit.Allows(test.used, test.ask))
		b, over := test.limit.Breach(test.used, test.ask)
		expect.That(t, over != test.allows, "%s: breach %v %t", test.name, b, over)
	}
}

// TestLimitBreach: users are told first of what no waiting mends, with its numbers.
func TestLimitBreach(t *testing.T) {
	limit, used := LimitOf(Entry{"gpu", 0}, Entry{CPU, 10}, Entry{Memory, 100}), VectorOf(Entry{CPU, 8}, Entry{Memory, 10})
	for _, c := range []struct {
		ask  Vector
		want Breach
	}{
		{VectorOf(Entry{CPU, 3}, Entry{Memory, 90}, Entry{"gpu", 1}, Entry{Pods, 1}), Breach{Name: "gpu", Asked: 1}},
		{VectorOf(Entry{CPU, 3}, Entry{Memory, 90}), Breach{Name: CPU, Used: 8, Asked: 3, Max: 10}},
		{VectorOf(Entry{CPU, 3}, Entry{Memory, 91}), Breach{Name: Memory, Used: 10, Asked: 91, Max: 100}},
		{VectorOf(Entry{CPU, 11}, Entry{Memory, 91}), Breach{Name: CPU, Used: 8, Asked: 11, Max: 10}},
		{VectorOf(Entry{CPU, 11}, Entry{Memory, 101}), Breach{Name: Memory, Used: 10, Asked: 101, Max: 100}},
		{VectorOf(Entry{CPU, 11}, Entry{Memory, 91}, Entry{"gpu", 1}), Breach{Name: "gpu", Asked: 1}},
		{VectorOf(Entry{CPU, 3}, Entry{Memory, 101}), Breach{Name: Memory, Used: 10, Asked: 101, Max: 100}},
	} {
		got, over := limit.Breach(used, c.ask)
		expect.Same(t, c.ask.String(), c.want, got)
		expect.That(t, over, "%v: no breach", c.ask)
	}
}

func TestLimitValues(t *testing.T) {
	l := LimitFrom(map[string]Amount{CPU: 10, "gpu": 0})
	m := LimitOf(Entry{CPU, 5}, Entry{Memory, 7})
	tests := []struct {
		name string
		got  Limit
		want string
	}{
		{"zero value", Limit{}, "unlimited"},
		{"no entries", LimitOf(), "unlimited"},
		{"empty map", LimitFrom(map[string]Amount{}), "unlimited"},
		{"zeros are kept", l, "gpu=0 vcore=10"},
		{"repeated names add up", LimitOf(Entry{CPU, 1}, Entry{CPU, 2}), "vcore=3"},
		{"stricter of both", l.Min(m), "gpu=0 memory=7 vcore=5"},
		{"stricter than no limit", l.Min(Limit{}), "gpu=0 vcore=10"},
		{"no limit made stricter", Limit{}.Min(l), "gpu=0 vcore=10"},
		{"a type after all others", m.Min(LimitOf(Entry{"z", 1})), "memory=7 vcore=5 z=1"},
		{"headroom", l.Headroom(VectorOf(Entry{CPU, 3}, Entry{Memory, 4})), "gpu=0 vcore=7"},
		{"headroom used up", l.Headroom(VectorOf(Entry{CPU, 10})), "gpu=0 vcore=0"},
		{"headroom overdrawn", l.Headroom(VectorOf(Entry{CPU, 12}, Entry{"gpu", 1})), "gpu=-1 vcore=-2"},
		{"headroom saturates", LimitOf(Entry{CPU, MaxAmount}).Headroom(VectorOf(Entry{CPU, -1})), "vcore=9223372036854775807"},
		{"headroom of no limit", Limit{}.Headroom(VectorOf(Entry{CPU, 3})), "unlimited"},
	}
	for _, test := range tests {
		expect.Same(t, test.name, test.want, test.got.String())
	}
	for name, want := range map[string]bool{"gpu": true, Memory: false} {
		amount, limited := l.Get(name)
		expect.That(t, amount == 0 && limited == want, "%s: got %d, %t", name, amount, limited)
	}
	expect.That(t, (Limit{}).IsUnlimited() && !LimitOf(Entry{"gpu", 0}).IsUnlimited(), "0 is unlimited")
	expect.That(t, !LimitOf(Entry{CPU, 0}).Equal(Limit{}), "a limit of 0 equals no limit")
}

type admission struct {
	limit     Limit
	used, ask Vector
}

var admissions = rapid.Custom(func(t *rapid.T) admission {
	return admission{limits(counts).Draw(t, "limit"), vectors(counts).Draw(t, "used"), vectors(counts).Draw(t, "ask")}
})

func TestLimitAllowsWhatFitsTheHeadroom(t *testing.T) {
	law := func(allows func(l Limit, used, ask Vector) bool) func(admission) error {
		return func(c admission) error {
			fits := true
			for name, room := range c.limit.Headroom(c.used).All() {
				want := c.ask.Get(name)
				fits = fits && (want <= 0 || want <= room)
			}
			if allows(c.limit, c.used, c.ask) != fits {
				return fmt.Errorf("limit %v, used %v, ask %v: fits %t", c.limit, c.used, c.ask, fits)
			}
			return nil
		}
	}
	strict := func(l Limit, used, ask Vector) bool { // refuses the last bit
		return l.Allows(used.Add(VectorOf(Entry{CPU, 1})), ask)
	}
	expect.Law(t, admissions, law(Limit.Allows), law(strict))
}

func TestGuaranteeEdges(t *testing.T) {
	g := GuaranteeOf(Entry{CPU, 10}, Entry{"gpu", 0})
	tests := []struct {
		name      string
		guarantee Guarantee
		used      Vector
		missing   string
	}{
		{"nothing promised, nothing used", Guarantee{}, Vector{}, "0"},
		{"nothing promised", Guarantee{}, VectorOf(Entry{CPU, 3}), "0"},
		{"nothing used", g, Vector{}, "vcore=10"},
		{"exactly used", g, VectorOf(Entry{CPU, 10}), "0"},
		{"less used", g, VectorOf(Entry{CPU, 4}), "vcore=6"},
		{"more used", g, VectorOf(Entry{CPU, 14}), "0"},
		{"a promise of 0", g, VectorOf(Entry{CPU, 10}, Entry{"gpu", 2}), "0"},
		{"less in one type, more in another", g, VectorOf(Entry{CPU, 1}, Entry{Memory, 5}), "vcore=9"},
		{"negative use", g, VectorOf(Entry{CPU, -1}, Entry{Memory, -5}), "vcore=11"},
		{"saturated", GuaranteeOf(Entry{CPU, MaxAmount}), VectorOf(Entry{CPU, -1}), "vcore=9223372036854775807"},
	}
	for _, test := range tests {
		expect.Same(t, test.name+": missing", test.missing, test.guarantee.Missing(test.used).String())
	}
}

func TestGuaranteeValues(t *testing.T) {
	g := GuaranteeFrom(map[string]Amount{CPU: 10, "gpu": 0})
	expect.Same(t, "text", "gpu=0 vcore=10, none", g.String()+", "+Guarantee{}.String())
	expect.That(t, (Guarantee{}).IsNone() && !g.IsNone() && !GuaranteeOf(Entry{CPU, 0}).IsNone(),
		"naming a type with 0 is not the same as naming none")
	same, other := GuaranteeOf(Entry{"gpu", 0}, Entry{CPU, 4}, Entry{CPU, 6}), GuaranteeOf(Entry{CPU, 10})
	expect.That(t, g.Equal(same) && !g.Equal(other), "equality is not that of types and amounts")
}

func TestStanding(t *testing.T) {
	g := GuaranteeFrom(map[string]Amount{"a": 3, "b": 3, "d": 0})
	used := VectorFrom(map[string]Amount{"a": 2, "b": 3, "c": 1})
	for _, tt := range []struct {
		name           string
		ask            map[string]Amount
		strict         bool
		below, reached Types
		less           []Vector
	}{
		{name: "nothing is requested"},
		{"below", map[string]Amount{"a": 1}, false, 1, 0, nil},
		{"below, and over it with the ask", map[string]Amount{"a": 2}, false, 1, 0, nil},
		{"below, and strict", map[string]Amount{"a": 1}, true, 1, 0, nil},
		{"over it with the ask, and strict", map[string]Amount{"a": 2}, true, 0, 1, nil},
		{"reached", map[string]Amount{"b": 1}, false, 0, 1, nil},
		{"a type that is not named", map[string]Amount{"c": 1}, false, 0, 0, nil},
		{"a guarantee of nothing", map[string]Amount{"d": 1}, false, 0, 1, nil},
		{"each type for itself", map[string]Amount{"a": 1, "b": 1, "c": 1, "d": 1}, false, 1, 2 + 8, nil},
		{"less than nothing is not requested", map[string]Amount{"a": -1}, false, 0, 0, nil},
		{"reached only with what does not count", map[string]Amount{"b": 1}, false, 1, 0, []Vector{{}, VectorOf(Entry{"b", 1})}},
	} {
		below, reached := g.Standing(used, VectorFrom(tt.ask), tt.strict, tt.less...)
		expect.Same(t, tt.name+": below and reached", []Types{tt.below, tt.reached}, []Types{below, reached})
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
