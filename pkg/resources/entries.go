package resources

import (
	"iter"
	"slices"
	"strings"
)

// entries are sorted by name and never written after construction: the representation shared
// by Vector, Limit and Guarantee.
type entries []Entry

// Get returns the amount of a type and whether the type is named.
func (list entries) Get(name string) (Amount, bool) {
	// Lists are short (three to six types); a scan beats a binary search.
	for i := range list {
		if list[i].Name == name {
			return list[i].Amount, true
		}
	}
	return 0, false
}

func entriesOf(m map[string]Amount) []Entry {
	if len(m) == 0 {
		return nil
	}
	out := make([]Entry, 0, len(m))
	for name, amount := range m {
		out = append(out, Entry{name, amount})
	}
	slices.SortFunc(out, byName)
	return out
}

// sumOf adds up the amounts of each name in the order of the list, because saturating sums
// depend on the order of their terms.
func sumOf(list []Entry) map[string]Amount {
	sum := make(map[string]Amount, len(list))
	for _, e := range list {
		sum[e.Name] = sum[e.Name].Add(e.Amount)
	}
	return sum
}

func byName(a, b Entry) int { return strings.Compare(a.Name, b.Name) }

// All yields the named types in order of their names.
func (list entries) All() iter.Seq2[string, Amount] {
	return func(yield func(string, Amount) bool) {
		for _, e := range list {
			if !yield(e.Name, e.Amount) {
				return
			}
		}
	}
}

// Map returns a new map with the entries.
func (list entries) Map() map[string]Amount {
	out := make(map[string]Amount, len(list))
	for _, e := range list {
		out[e.Name] = e.Amount
	}
	return out
}
