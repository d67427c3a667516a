package resources

import (
	"fmt"
	"strconv"
	"strings"
)

// Format renders an amount of a type for people: CPU in cores with up to three
// decimals ("1.5"), bytes of memory and storage in the largest binary unit that
// divides them, else in bytes ("2Gi", "1000"), everything else as a number.
func Format(name string, a Amount) string {
	switch {
	case name == CPU:
		return formatMilli(int64(a))
	case name == Memory, name == "ephemeral-storage", strings.HasPrefix(name, "hugepages-"):
		return InUnits(a, 1024, "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
	}
	return strconv.FormatInt(int64(a), 10)
}

func formatMilli(milli int64) string {
	sign := ""
	if milli < 0 {
		sign = "-"
	}
	// Division keeps the sign, so both halves are made positive on their own;
	// the smallest int64 has no positive counterpart, but its halves have.
	whole, rest := milli/1000, milli%1000
	text := fmt.Sprintf("%s%d.%03d", sign, max(whole, -whole), max(rest, -rest))
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// InUnits renders an amount with the largest unit that leaves no remainder. Each unit is base
// times the one before it.
func InUnits(a, base Amount, units ...string) string {
	unit := ""
	for _, next := range units {
		if a == 0 || a%base != 0 {
			break
		}
		a, unit = a/base, next
	}
	return strconv.FormatInt(int64(a), 10) + unit
}
