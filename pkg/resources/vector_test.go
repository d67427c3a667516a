package resources

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestVectorValues(t *testing.T) {
	v := VectorOf(Entry{CPU, 500}, Entry{Memory, 10})
	w := VectorOf(Entry{CPU, 500}, Entry{Pods, 1})
	tests := []struct {
		name string
		got  Vector
		want string
	}{
		{"zero value", Vector{}, "0"},
		{"no entries", VectorOf(), "0"},
		{"nil map", VectorFrom(nil), "0"},
		{"zeros are dropped", VectorOf(Entry{CPU, 0}, Entry{Pods, 1}), "pods=1"},
		{"zeros of a map are dropped", VectorFrom(map[string]Amount{CPU: 0, Pods: 1}), "pods=1"},
		{"sorted by name", VectorOf(Entry{CPU, 500}, Entry{Memory, 1024}, Entry{"nvidia.com/gpu", 1}), "memory=1024 nvidia.com/gpu=1 vcore=500"},
		{"repeated names add up", VectorOf(Entry{CPU, 1}, Entry{Pods, 1}, Entry{CPU, 2}), "pods=1 vcore=3"},
		{"repeated names that cancel out", VectorOf(Entry{CPU, 1}, Entry{CPU, -1}), "0"},
		{"sums saturate in the order given", VectorOf(Entry{CPU, MaxAmount}, Entry{CPU, 1}, Entry{CPU, -1}), "vcore=9223372036854775806"},
		{"negative amounts are kept", VectorOf(Entry{CPU, -5}), "vcore=-5"},

		{"sum", v.Add(w), "memory=10 pods=1 vcore=1000"},
		{"sum with nothing", v.Add(Vector{}), "memory=10 vcore=500"},
		{"sum of nothing", Vector{}.Add(w), "pods=1 vcore=500"},
		{"types after all others", v.Add(VectorOf(Entry{"z", 1})).Add(w), "memory=10 pods=1 vcore=1000 z=1"},
		{"difference drops what is even", v.Sub(w), "memory=10 pods=-1"},
		{"difference with nothing", v.Sub(Vector{}), "memory=10 vcore=500"},
		{"difference of nothing", Vector{}.Sub(w), "pods=-1 vcore=-500"},
		{"difference with itself", v.Sub(v), "0"},
		{"of what is free", v.SubFree(VectorOf(Entry{CPU, 600}, Entry{Memory, 4}, Entry{Pods, 1})), "memory=6"},
		{"of a negative amount", Vector{}.Sub(v).SubFree(v), "memory=-10 vcore=-500"},
		{"saturated", VectorOf(Entry{CPU, MaxAmount}).Add(w), "pods=1 vcore=9223372036854775807"},
	}
	for _, test := range tests {
		expect.Same(t, test.name, test.want, test.got.String())
	}
}

func TestVectorQueries(t *testing.T) {
	v := VectorOf(Entry{CPU, -1}, Entry{Memory, 10})
	expect.Same(t, "amounts", []Amount{-1, 10, 0}, []Amount{v.Get(CPU), v.Get(Memory), v.Get(Pods)})
	expect.Same(t, "length, zero, negative", []any{2, false, true}, []any{v.Len(), v.IsZero(), v.HasNegative()})
	v0 := Vector{}
	expect.Same(t, "of the zero value", []any{0, true, false}, []any{v0.Len(), v0.IsZero(), v0.HasNegative()})
	covers := []struct {
		name string
		w    Vector
		want bool
	}{
		{"nothing", Vector{}, true},
		{"less", VectorOf(Entry{Memory, 9}), true},
		{"equal", VectorOf(Entry{Memory, 10}), true},
		{"more", VectorOf(Entry{Memory, 11}), false},
		{"a type it has not", VectorOf(Entry{Pods, 1}), false},
		{"less than nothing of a type it has not", VectorOf(Entry{Pods, -1}), true},
		{"its own debt is not looked at", VectorOf(Entry{Memory, 1}), true},
		{"its own debt is looked at", VectorOf(Entry{CPU, 1}), false},
	}
	for _, test := range covers {
		expect.Same(t, "covers "+test.name, test.want, v.Covers(test.w))
	}
}

// TestValuesShareNoMemory: neither what goes in nor what comes out shares memory with a value.
func TestValuesShareNoMemory(t *testing.T) {
	entries := []Entry{{Memory, 2}, {CPU, 1}, {Pods, 0}}
	v, l, g := VectorOf(entries...), LimitOf(entries...), GuaranteeOf(entries...)
	expect.Same(t, "the arguments", []Entry{{Memory, 2}, {CPU, 1}, {Pods, 0}}, entries)
	for i := range entries {
		entries[i].Amount = 77
	}
	v.Map()[CPU], l.Map()[CPU], g.Map()[CPU] = 77, 77, 77
	want := []string{"memory=2 vcore=1", "memory=2 pods=0 vcore=1", "memory=2 pods=0 vcore=1"}
	expect.Same(t, "values", want, []string{v.String(), l.String(), g.String()})
}

func TestAllYieldsInOrderAndStops(t *testing.T) {
	var names []string
	for name, amount := range VectorOf(Entry{"c", 3}, Entry{"a", 1}, Entry{"b", 2}).All() {
		if names = append(names, fmt.Sprint(name, amount)); name == "b" {
			break
		}
	}
	expect.Same(t, "", []string{"a1", "b2"}, names)
}

// TestVectorKey: names that hold the separators of the readable form do not collide.
func TestVectorKey(t *testing.T) {
	sly := VectorOf(Entry{"a=1 b", 2})
	plain := VectorOf(Entry{"a", 1}, Entry{"b", 2})
	expect.Same(t, "text of the example", sly.String(), plain.String())
	expect.That(t, sly.Key() != plain.Key() && plain.Key() != plain.Add(plain).Key(), "equal keys")
}

func TestVectorSplit(t *testing.T) {
	v := VectorOf(Entry{"a", 1}, Entry{"b", -2}, Entry{"c", 3})
	for _, c := range []struct{ in, with, without string }{
		{"", "0", "a=1 b=-2 c=3"},
		{"b", "b=-2", "a=1 c=3"},
		{"abc", "a=1 b=-2 c=3", "0"},
	} {
		with, without := v.Split(func(name string) bool { return strings.Contains(c.in, name) })
		expect.Same(t, c.in+": parts", []string{c.with, c.without}, []string{with.String(), without.String()})
		expect.Same(t, c.in+": sum", v, with.Add(without))
	}
}

func TestVectorFloor0(t *testing.T) {
	law := func(ceil func(Vector) Vector) func(Vector) error {
		return func(v Vector) error {
			f := ceil(v)
			for _, name := range typeNames {
				if f.Get(name) != max(v.Get(name), 0) {
					return fmt.Errorf("%v has %s=%d", f, name, f.Get(name))
				}
			}
			if f.HasNegative() || !f.Covers(v) || !f.Equal(ceil(f)) {
				return fmt.Errorf("%v of %v", f, v)
			}
			return nil
		}
	}
	magnitude := func(v Vector) Vector { return v.Floor0().Add(Vector{}.Sub(v).Floor0()) }
	expect.Law(t, vectors(anyKind), law(Vector.Floor0), law(magnitude))
}

func TestVectorKeysAreEqualForEqualVectors(t *testing.T) {
	law := func(key func(Vector) string) func([]Vector) error {
		return func(c []Vector) error {
			v, w := c[0], c[1]
			if (key(v) == key(w)) != v.Equal(w) {
				return fmt.Errorf("%v and %v have keys %q and %q", v, w, key(v), key(w))
			}
			if again := VectorFrom(v.Map()); key(again) != key(v) || !again.Equal(v) {
				return errors.New("the key depends on how the vector was made")
			}
			return nil
		}
	}
	namesOnly := func(v Vector) string {
		var names []string
		for name := range v.All() {
			names = append(names, name)
		}
		return strings.Join(names, " ")
	}
	expect.Law(t, rapid.SliceOfN(vectors(counts), 2, 2), law(Vector.Key), law(namesOnly))
}

func TestVectorCap(t *testing.T) {
	v := VectorOf(Entry{"a", 5}, Entry{"b", 7}, Entry{"c", -9})
	expect.Same(t, "capped at its largest amount", v, v.Cap(7))
	expect.Same(t, "capped", VectorOf(Entry{"a", 5}, Entry{"b", 6}, Entry{"c", -9}), v.Cap(6))
	expect.Same(t, "b of the original after capping", Amount(7), v.Get("b"))
}

func TestAmountSaturates(t *testing.T) {
	tests := []struct{ a, b, sum, diff Amount }{
		{0, 0, 0, 0}, {2, 3, 5, -1},
		{MaxAmount, 0, MaxAmount, MaxAmount}, {MaxAmount, 1, MaxAmount, MaxAmount - 1},
		{MaxAmount, MaxAmount, MaxAmount, 0}, {MaxAmount, -1, MaxAmount - 1, MaxAmount},
		{MaxAmount, MinAmount, -1, MaxAmount},
		{MinAmount, 0, MinAmount, MinAmount}, {MinAmount, 1, MinAmount + 1, MinAmount},
		{MinAmount, -1, MinAmount, MinAmount + 1}, {MinAmount, MinAmount, MinAmount, 0},
		{MinAmount, MaxAmount, -1, MinAmount},
		{0, MinAmount, MinAmount, MaxAmount}, {-1, MinAmount, MinAmount, MaxAmount},
		{-2, MinAmount, MinAmount, MaxAmount - 1}, {0, MaxAmount, MaxAmount, MinAmount + 1},
		{-1, MaxAmount, MaxAmount - 1, MinAmount}, {-2, MaxAmount, MaxAmount - 2, MinAmount},
	}
	for _, test := range tests {
		expect.Same(t, fmt.Sprintf("%d + %d", test.a, test.b), test.sum, test.a.Add(test.b))
		expect.Same(t, fmt.Sprintf("%d - %d", test.a, test.b), test.diff, test.a.Sub(test.b))
	}
}

func TestFormat(t *testing.T) {
	tests := []struct {
		name   string
		amount Amount
		want   string
	}{
		{CPU, 0, "0"}, {CPU, 1000, "1"}, {CPU, 1500, "1.5"}, {CPU, 50, "0.05"}, {CPU, 1, "0.001"}, {CPU, 10_010, "10.01"},
		{CPU, -1500, "-1.5"}, {CPU, -1, "-0.001"},
		{CPU, MaxAmount, "9223372036854775.807"}, {CPU, MinAmount, "-9223372036854775.808"},
		{Memory, 0, "0"}, {Memory, 1, "1"}, {Memory, 1024, "1Ki"}, {Memory, 1536, "1536"}, {Memory, 1536 << 20, "1536Mi"}, {Memory, 2 << 30, "2Gi"},
		{Memory, -1 << 40, "-1Ti"}, {Memory, 1 << 60, "1Ei"}, {Memory, MinAmount, "-8Ei"}, {Memory, MaxAmount, "9223372036854775807"},
		{"ephemeral-storage", 1 << 20, "1Mi"}, {"hugepages-2Mi", 2 << 20, "2Mi"},
		{Pods, 1024, "1024"}, {"nvidia.com/gpu", 8, "8"}, {"example.com/memory", 1024, "1024"}, {Pods, MinAmount, "-9223372036854775808"},
	}
	for _, test := range tests {
		expect.Same(t, fmt.Sprintf("%s of %d", test.name, test.amount), test.want, Format(test.name, test.amount))
	}
}

// TestFormatLosesNothing: what is shown has exactly the value of the amount.
func TestFormatLosesNothing(t *testing.T) {
	units := map[string]*big.Rat{}
	for i, unit := range []string{"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"} {
		units[unit] = new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(10*(i+1))))
	}
	law := func(format func(string, Amount) string) func(Entry) error {
		return func(e Entry) error {
			text := format(e.Name, e.Amount)
			number, factor := text, big.NewRat(1, 1)
			if unit, ok := units[text[max(0, len(text)-2):]]; ok {
				number, factor = text[:len(text)-2], unit
			}
			shown, ok := new(big.Rat).SetString(number)
			if !ok {
				return fmt.Errorf("%q is no number", text)
			}
			want := new(big.Rat).SetInt64(int64(e.Amount))
			if e.Name == CPU {
				want.Quo(want, big.NewRat(1000, 1))
			}
			if shown.Mul(shown, factor).Cmp(want) != 0 {
				return fmt.Errorf("%s of %d is shown as %q", e.Name, e.Amount, text)
			}
			if strings.Contains(text, ".") && strings.HasSuffix(text, "0") {
				return fmt.Errorf("%q has zeros at its end", text)
			}
			return nil
		}
	}
	inFloats := func(name string, a Amount) string {
		if name == CPU {
			return strconv.FormatFloat(float64(a)/1000, 'f', -1, 64)
		}
		return Format(name, a)
	}
	entries := rapid.Custom(func(t *rapid.T) Entry {
		amount := anyKind.Draw(t, "amount")
		if rapid.Bool().Draw(t, "round") {
			amount = amount << rapid.SampledFrom([]int{10, 20, 30, 60}).Draw(t, "unit")
		}
		return Entry{rapid.SampledFrom(typeNames).Draw(t, "type"), amount}
	})
	expect.Law(t, entries, law(Format), law(inFloats))
}

var (
	typeNames = []string{"a", "b", "c", CPU, Memory, Pods}
	// extreme amounts meet the ends of int64 often; modest ones never saturate.
	extreme = rapid.OneOf(
		rapid.Map(rapid.Int64(), func(i int64) Amount { return Amount(i) }),
		rapid.SampledFrom([]Amount{0, 1, -1, MaxAmount, MinAmount, MaxAmount - 1, MinAmount + 1, MaxAmount / 2, MinAmount / 2}),
	)
	modest  = rapid.Map(rapid.Int64Range(-1000, 1000), func(i int64) Amount { return Amount(i) })
	counts  = rapid.Map(rapid.Int64Range(0, 6), func(i int64) Amount { return Amount(i) })
	anyKind = rapid.OneOf(extreme, modest, counts)
)

func maps(amounts *rapid.Generator[Amount]) *rapid.Generator[map[string]Amount] {
	return rapid.MapOfN(rapid.SampledFrom(typeNames), amounts, 0, len(typeNames))
}

func vectors(amounts *rapid.Generator[Amount]) *rapid.Generator[Vector] {
	return rapid.Map(maps(amounts), VectorFrom)
}

func limits(amounts *rapid.Generator[Amount]) *rapid.Generator[Limit] {
	return rapid.Map(maps(amounts), LimitFrom)
}

// LimitOf returns the limit with the given entries; amounts of a repeated name are added up.
func LimitOf(entries ...Entry) Limit { return LimitFrom(sumOf(entries)) }

// GuaranteeOf returns the guarantee with the given entries; amounts of a repeated name are added up.
func GuaranteeOf(entries ...Entry) Guarantee { return GuaranteeFrom(sumOf(entries)) }
