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

// multiplier returns the factor of a suffix other than "m".
func multiplier(suffix string) (uint64, bool) {
	if suffix == "" {
		return 1, true
	}
	base := uint64(1000)
	letter := suffix
	if strings.HasSuffix(suffix, "i") {
		base, letter = 1024, suffix[:len(suffix)-1]
	}
	power := map[string]int{"K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}[letter]
	if suffix == "k" {
		power = 1
	}
	factor := uint64(1)
	for range power {
		factor *= base
	}
	return factor, power > 0
}

// Parse reads the amount of a resource type as queues.yaml writes it:
// digits, then optionally k K M G T P E (powers of 1000), Ki Mi Gi Ti Pi Ei
// (powers of 1024), or m (a thousandth; only for [resources.CPU]). Signs,
// fractions and exponents are refused. The result is in base units: thousandths
// for [resources.CPU], so "10" is 10000 and "500m" is 500; bytes or a count for
// everything else. It is never negative. An error quotes the text and says what to write.
func Parse(name, text string) (resources.Amount, error) {
	digits, suffix, err := splitQuantity(text)
	if err != nil {
		return 0, err
	}
	factor, ok := multiplier(suffix)
	switch {
	case suffix == "m" && name == resources.CPU:
		factor = 1
	case suffix == "m":
		return 0, fmt.Errorf("invalid suffix m in %q: thousandths are for %s only", text, resources.CPU)
	case !ok:
		return 0, fmt.Errorf("invalid suffix %s in %q: use k M G T P E or Ki Mi Gi Ti Pi Ei", suffix, text)
	case name == resources.CPU && (suffix == "E" || suffix == "Ei"):
		factor = math.MaxUint64 // more than any amount, unless the number is 0
	case name == resources.CPU:
		factor *= 1000
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

// splitQuantity cuts a trimmed quantity into digits and suffix, which is empty
// or one of the letters m k K M G T P E with an optional i.
func splitQuantity(text string) (digits, suffix string, err error) {
	trimmed := strings.TrimSpace(text)
	end := 0
	for end < len(trimmed) && trimmed[end] >= '0' && trimmed[end] <= '9' {
		end++
	}
	digits, suffix = trimmed[:end], strings.TrimLeft(trimmed[end:], " \t\n\f\r")
	letter := strings.TrimSuffix(suffix, "i")
	if digits == "" || len(letter) > 1 || (suffix != "" && !strings.Contains("mkKMGTPE", letter)) || suffix == "i" {
		return "", "", fmt.Errorf("invalid quantity %q: write a whole number without sign, such as 4, 500m (%s only) or 16Gi",
			text, resources.CPU)
	}
	return digits, suffix, nil
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
