// Package quantity reads and writes the amounts of queues.yaml.
package quantity

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// factors are those of the suffixes other than "m".
var factors = map[string]uint64{
	"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
	"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60,
}

// Parse reads the amount of a resource type as queues.yaml writes it:
// digits, then optionally k K M G T P E (powers of 1000), Ki Mi Gi Ti Pi Ei
// (powers of 1024), or m (a thousandth; only for [resources.CPU]). Signs,
// fractions and exponents are refused. The result is in base units: thousandths
// for [resources.CPU], so "10" is 10000 and "500m" is 500; bytes or a count for
// everything else. It is never negative. An error quotes the text and says what to write.
func Parse(name, text string) (resources.Amount, error) {
	trimmed := strings.TrimSpace(text)
	digits := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "0123456789"))]
	suffix := strings.TrimLeft(trimmed[len(digits):], " \t\n\f\r")
	factor, ok := factors[suffix]
	switch isCPU := name == resources.CPU; {
	case isCPU && suffix == "m":
		factor, ok = 1, true
	case isCPU && factor >= math.MaxUint64/1000:
		factor = math.MaxUint64 // more than any amount, unless the number is 0
	case isCPU:
		factor *= 1000
	}
	if digits == "" || !ok {
		return 0, fmt.Errorf("invalid quantity %q: write a whole number without sign, such as 4, 500m (%s only) or 16Gi; "+
			"suffixes are k M G T P E and Ki Mi Gi Ti Pi Ei", text, resources.CPU)
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, tooLarge(text)
	}
	high, low := bits.Mul64(number, factor)
	if high != 0 || low > uint64(resources.MaxAmount) {
		return 0, tooLarge(text)
	}
	return resources.Amount(low), nil
}

func tooLarge(text string) error {
	return fmt.Errorf("quantity too large: %q is more than %d base units", text, resources.MaxAmount)
}

// Format writes an amount, not negative, so that [Parse] reads
// the same amount again, as short as it goes: 16Gi, 500M, 1500m for
// [resources.CPU].
func Format(name string, a resources.Amount) string {
	if name == resources.CPU {
		if a%1000 != 0 {
			return strconv.FormatInt(int64(a), 10) + "m"
		}
		return strconv.FormatInt(int64(a/1000), 10)
	}
	binary := resources.InUnits(a, 1024, "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
	decimal := resources.InUnits(a, 1000, "k", "M", "G", "T", "P", "E")
	if len(decimal) < len(binary) {
		return decimal
	}
	return binary
}
