// Package transitions has tables of the transitions between the states of a thing. A doc
// comment shows each table, and a test compares them.
package transitions

import (
	"fmt"
	"slices"
	"strings"
)

// Line is one line of a table: the states From become To when something happens.
type Line[S fmt.Stringer] struct {
	From []S
	To   S
	When string
}

// Table has every transition of a thing.
type Table[S interface {
	comparable
	fmt.Stringer
}] []Line[S]

// Allows tells whether a state may become another one. A state may always stay.
func (t Table[S]) Allows(from, to S) bool {
	return from == to || slices.ContainsFunc(t, func(l Line[S]) bool { return l.To == to && slices.Contains(l.From, from) })
}

// Move changes a state. A transition that is not in the table does not take place.
func (t Table[S]) Move(at *S, to S) {
	if t.Allows(*at, to) {
		*at = to
	}
}

// String is the table as a doc comment shows it.
func (t Table[S]) String() string {
	var b strings.Builder
	for _, l := range t {
		var from []string
		for _, s := range l.From {
			from = append(from, s.String())
		}
		fmt.Fprintf(&b, "//\t%s: %s\n//\t    from %s\n", l.To, l.When, strings.Join(from, ", "))
	}
	return b.String()
}
