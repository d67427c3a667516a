package resources

import (
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
		return formatBytes(int64(a))
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
	if whole < 0 {
		whole = -whole
	}
	if rest < 0 {
		rest = -rest
	}
	if rest == 0 {
		return sign + strconv.FormatInt(whole, 10)
	}
	decimals := strconv.FormatInt(1000+rest, 10)[1:]
	return sign + strconv.FormatInt(whole, 10) + "." + strings.TrimRight(decimals, "0")
}

func formatBytes(n int64) string {
	units := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	i := 0
	for n != 0 && n%1024 == 0 && i < len(units)-1 {
		n /= 1024
		i++
	}
	return strconv.FormatInt(n, 10) + units[i]
}
