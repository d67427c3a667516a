package state

import (
	"fmt"
	"strings"
)

// Drawing is the table as text, one line for each transition.
func Drawing() string {
	var b strings.Builder
	for _, t := range table {
		var from []string
		for _, s := range t.from {
			from = append(from, s.String())
		}
		fmt.Fprintf(&b, "%s: %s\n    from %s\n", t.to, t.when, strings.Join(from, ", "))
	}
	return b.String()
}
