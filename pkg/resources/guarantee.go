package resources

import "slices"

// Guarantee says how much of each resource type is promised to a queue. A type
// it does not name is not promised and counts as 0 in comparisons; naming a
// type with 0 is kept, because it tells readers that the type was thought of.
// The zero value promises nothing.
type Guarantee struct {
	entries // zeros kept
}

// GuaranteeFrom returns the guarantee with the entries of m; nil or empty promises nothing.
func GuaranteeFrom(m map[string]Amount) Guarantee { return Guarantee{entries: entriesOf(m)} }

// IsNone tells whether no type is named.
func (g Guarantee) IsNone() bool { return len(g.entries) == 0 }

// Equal tells whether both promise the same types in the same amounts.
func (g Guarantee) Equal(h Guarantee) bool { return slices.Equal(g.entries, h.entries) }

// Missing returns what used lacks of the guarantee, type by type, never negative.
func (g Guarantee) Missing(used Vector) Vector {
	var out []Entry
	for _, e := range g.entries {
		if lack := e.Amount.Sub(used.Get(e.Name)); lack > 0 {
			out = append(out, Entry{e.Name, lack})
		}
	}
	return Vector{entries: out}
}

// Types are types of a vector: bit i is its i-th. Those beyond the 64th are never part of
// it: a pod may request 64 types and pods, and real ones request far fewer.
type Types uint64

// Standing tells how what is used stands to the guarantee in the types that an ask
// requests: below it, or at it and above. A type that is not named is neither. Where
// it is strict, what is requested counts as used. What is in less does not.
func (g Guarantee) Standing(used, ask Vector, strict bool, less ...Vector) (below, reached Types) {
	for i, e := range ask.entries {
		promised, named := g.Get(e.Name)
		if !named || e.Amount <= 0 {
			continue
		}
		has := used.Get(e.Name)
		for _, l := range less {
			has = has.Sub(l.Get(e.Name))
		}
		if strict && has.Add(e.Amount) <= promised || !strict && has < promised {
			below |= 1 << i
		} else {
			reached |= 1 << i
		}
	}
	return below, reached
}

// String renders the guarantee as "memory=1024 vcore=500" in base units,
// "none" when nothing is promised.
func (g Guarantee) String() string { return render(g.entries, "none") }
