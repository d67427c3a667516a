package resources

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

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
