package resources

import (
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

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
	if !(Guarantee{}).IsNone() || g.IsNone() || GuaranteeOf(Entry{CPU, 0}).IsNone() {
		t.Error("naming a type with 0 is not the same as naming none")
	}
	if !g.Equal(GuaranteeOf(Entry{"gpu", 0}, Entry{CPU, 4}, Entry{CPU, 6})) || g.Equal(GuaranteeOf(Entry{CPU, 10})) {
		t.Error("equality is not that of types and amounts")
	}
}

func TestStanding(t *testing.T) {
	g := GuaranteeFrom(map[string]Amount{"a": 3, "b": 3, "d": 0})
	used := VectorFrom(map[string]Amount{"a": 2, "b": 3, "c": 1})
	for _, tt := range []struct {
		name           string
		ask            map[string]Amount
		strict         bool
		below, reached Types
	}{
		{"nothing is requested", nil, false, 0, 0},
		{"below", map[string]Amount{"a": 1}, false, 1, 0},
		{"below, and over it with the ask", map[string]Amount{"a": 2}, false, 1, 0},
		{"below, and strict", map[string]Amount{"a": 1}, true, 1, 0},
		{"over it with the ask, and strict", map[string]Amount{"a": 2}, true, 0, 1},
		{"reached", map[string]Amount{"b": 1}, false, 0, 1},
		{"a type that is not named", map[string]Amount{"c": 1}, false, 0, 0},
		{"a guarantee of nothing", map[string]Amount{"d": 1}, false, 0, 1},
		{"each type for itself", map[string]Amount{"a": 1, "b": 1, "c": 1, "d": 1}, false, 1, 2 + 8},
		{"less than nothing is not requested", map[string]Amount{"a": -1}, false, 0, 0},
	} {
		below, reached := g.Standing(used, VectorFrom(tt.ask), tt.strict)
		expect.Same(t, tt.name+": below and reached", []Types{tt.below, tt.reached}, []Types{below, reached})
	}
}
