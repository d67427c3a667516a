package web

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// longest is how many characters of a text are shown.
const longest = 2000

// visible replaces characters that are invisible, or that hide others, by their number, and
// cuts text that is too long. Some reverse the text after them, so that a name would look
// like another one.
func visible(s string) string {
	plain := len(s) <= longest
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] >= ' ' && s[i] < 0x7f || s[i] == '\n'
	}
	if plain {
		return s
	}
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > longest {
			b.WriteString("…")
			break
		}
		if r == '\n' || unicode.IsGraphic(r) && r != unicode.ReplacementChar && !unicode.Is(unicode.Bidi_Control, r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}

// inBytes tells whether amounts of a type are bytes.
func inBytes(name string) bool {
	return name == resources.Memory || name == "ephemeral-storage" || strings.HasPrefix(name, "hugepages-")
}

// unit is the unit of amounts of a type, for numbers without one.
func unit(name string) string {
	if name == resources.CPU {
		return "cores"
	}
	return ""
}

// number writes an amount as it is shown beside [unit]: to three digits or so.
func number(name string, a resources.Amount) string {
	switch {
	case name == resources.CPU:
		return decimal(float64(a) / 1000)
	case inBytes(name):
		return binary(float64(a))
	}
	return thousands(int64(a))
}

// quantity writes an amount on its own: "1.5 cores", "2 GiB", "8".
func quantity(name string, a resources.Amount) string {
	switch {
	case name != resources.CPU:
		return number(name, a)
	case a == 1000:
		return "1 core"
	}
	return number(name, a) + " cores"
}

// amounts writes all of a vector: "1.5 cores, 2 GiB memory, 3 pods".
func amounts(v resources.Vector) string {
	var parts []string
	for _, name := range ranked(nil, v.All()) {
		parts = append(parts, amountOf(name, v.Get(name)))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// amountOf writes an amount with the name of its type.
func amountOf(name string, a resources.Amount) string {
	switch {
	case name == resources.CPU:
		return quantity(name, a)
	case name == resources.Pods && a == 1:
		return "1 pod"
	}
	return quantity(name, a) + " " + visible(name)
}

// decimal writes a number with three significant digits or so.
func decimal(f float64) string {
	switch size := max(f, -f); {
	case size >= 1000:
		return thousands(int64(f))
	case size >= 100:
		return trimmed(f, 0)
	case size >= 10:
		return trimmed(f, 1)
	case size >= 1:
		return trimmed(f, 2)
	}
	return trimmed(f, 3)
}

func trimmed(f float64, decimals int) string {
	s := strconv.FormatFloat(f, 'f', decimals, 64)
	if decimals > 0 {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}

// binary writes a number of bytes.
func binary(f float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for max(f, -f) >= 1000 && i < len(units)-1 {
		f /= 1024
		i++
	}
	if f == 0 {
		return "0"
	}
	return decimal(f) + " " + units[i]
}

// thousands writes a number with a comma at each thousand.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return sign + s
}

// count writes a number of things: "1 pod", "2,000 pods".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return thousands(int64(n)) + " " + thing + "s"
}

// moment is a time for people and for machines.
type moment struct{ UTC, Machine string }

// at is a time; the zero moment for the zero time.
func at(t time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	t = t.UTC()
	return moment{UTC: t.Format("2006-01-02 15:04:05 UTC"), Machine: t.Format(time.RFC3339)}
}

// age writes how long ago something was, in its two largest units.
func age(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	d := max(now.Sub(then), 0)
	days, hours, minutes, seconds := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case days >= 10:
		return fmt.Sprintf("%s d", thousands(int64(days)))
	case days > 0:
		return fmt.Sprintf("%d d %d h", days, hours)
	case hours > 0:
		return fmt.Sprintf("%d h %d min", hours, minutes)
	case minutes >= 10:
		return fmt.Sprintf("%d min", minutes)
	case minutes > 0:
		return fmt.Sprintf("%d min %d s", minutes, seconds)
	}
	return fmt.Sprintf("%d s", seconds)
}

// ranked returns the given types and those of amounts in the order of a page, each once.
func ranked(types []string, amounts ...iter.Seq2[string, resources.Amount]) []string {
	types = slices.Clone(types)
	for _, all := range amounts {
		for name := range all {
			types = append(types, name)
		}
	}
	slices.SortFunc(types, func(a, b string) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a, b)) })
	return slices.Compact(types)
}
