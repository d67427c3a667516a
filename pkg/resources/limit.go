package resources

import "slices"

// Limit says how much of each resource type may be used at most. A type it
// does not name is unlimited; an explicit 0 forbids the type. Amounts may be
// negative where the limit is a headroom of something that is over its max.
// The zero value limits nothing.
type Limit struct {
	entries // zeros kept
}

// LimitFrom returns the limit with the entries of m; nil or empty limits nothing.
func LimitFrom(m map[string]Amount) Limit { return Limit{entries: entriesOf(m)} }

// IsUnlimited tells whether no type is limited.
func (l Limit) IsUnlimited() bool { return len(l.entries) == 0 }

// Equal tells whether both limit the same types to the same amounts.
func (l Limit) Equal(m Limit) bool { return slices.Equal(l.entries, m.entries) }

// Min returns the stricter of both limits, type by type; a type limited by only
// one of them keeps that limit.
func (l Limit) Min(m Limit) Limit {
	out := slices.Clone(l.entries)
	for _, e := range m.entries {
		at, both := slices.BinarySearchFunc(out, e, byName)
		if !both {
			out = slices.Insert(out, at, e)
		}
		out[at].Amount = min(out[at].Amount, e.Amount)
	}
	return Limit{entries: out}
}

// Headroom returns what is left of each limited type once used is taken off;
// negative where more is used than the limit allows.
func (l Limit) Headroom(used Vector) Limit {
	out := slices.Clone(l.entries)
	for i, e := range out {
		out[i].Amount = e.Amount.Sub(used.Get(e.Name))
	}
	return Limit{entries: out}
}

// Allows tells whether used+ask stays within the limit for every type that ask
// has some of. A type that is over its limit already does not hinder an ask
// that wants none of it (seed: "not defined is not looked at").
func (l Limit) Allows(used, ask Vector) bool {
	_, over := l.Breach(used, ask)
	return !over
}

// Breach is one type in which an ask does not fit a limit.
type Breach struct {
	Name  string
	Used  Amount // in use before the ask
	Asked Amount // wanted in addition
	Max   Amount // the limit
}

// Alone tells whether what is wanted would be over the limit even if nothing were
// used.
func (b Breach) Alone() bool { return b.Asked > b.Max }

// Breach returns the type to report in which used+ask exceeds the limit, in order of the
// names the first that waiting cannot cure (see [Breach.Alone]), or else the first. It is
// false exactly when Allows is true.
func (l Limit) Breach(used, ask Vector) (worst Breach, found bool) {
	for _, e := range l.entries {
		want := ask.Get(e.Name)
		if want <= 0 || used.Get(e.Name).Add(want) <= e.Amount {
			continue
		}
		b := Breach{Name: e.Name, Used: used.Get(e.Name), Asked: want, Max: e.Amount}
		if b.Alone() {
			return b, true
		}
		if !found {
			worst, found = b, true
		}
	}
	return worst, found
}

// String renders the limit as "memory=1024 vcore=500" in base units,
// "unlimited" when nothing is limited.
func (l Limit) String() string { return render(l.entries, "unlimited") }
