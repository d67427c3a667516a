package resources

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
)

// Names of the resource types that every pod or nearly every pod uses. Other
// types (ephemeral-storage, hugepages-2Mi, nvidia.com/gpu) keep the name
// Kubernetes gives them.
const (
	// CPU is in milli-CPU. YuniKorn calls it vcore, and we use its configuration and REST
	// interface.
	CPU = "vcore"
	// Memory is in bytes.
	Memory = "memory"
	// Pods is 1 for every pod, so that a max on it limits the number of pods.
	Pods = "pods"
)

// Entry is one resource type with its amount.
type Entry struct {
	Name   string
	Amount Amount
}

// Vector says how much of each resource type is used, requested or free. A
// type that is not in it counts as 0; entries of 0 are not kept, so two vectors
// that mean the same are equal. The zero value is the empty vector.
type Vector struct {
	entries // no zero amounts
}

// VectorOf returns the vector with the given entries; amounts of a repeated
// name are added up.
func VectorOf(entries ...Entry) Vector {
	return VectorFrom(sumOf(entries))
}

// VectorFrom returns the vector with the entries of m.
func VectorFrom(m map[string]Amount) Vector {
	return Vector{entries: slices.DeleteFunc(entriesOf(m), func(e Entry) bool { return e.Amount == 0 })}
}

// Get returns the amount of a type, 0 when it is not in the vector.
func (v Vector) Get(name string) Amount {
	a, _ := v.entries.Get(name)
	return a
}

// Len returns the number of types with an amount other than 0.
func (v Vector) Len() int { return len(v.entries) }

// IsZero tells whether every amount is 0.
func (v Vector) IsZero() bool { return len(v.entries) == 0 }

// Equal tells whether both vectors have the same amount of every type.
func (v Vector) Equal(w Vector) bool { return slices.Equal(v.entries, w.entries) }

// Add returns v+w, saturated.
func (v Vector) Add(w Vector) Vector {
	if len(w.entries) == 0 {
		return v
	}
	if len(v.entries) == 0 {
		return w
	}
	return Vector{entries: merge(v.entries, w.entries, Amount.Add)}
}

// Sub returns v-w, saturated; amounts may become negative.
func (v Vector) Sub(w Vector) Vector {
	if len(w.entries) == 0 {
		return v
	}
	return Vector{entries: merge(v.entries, w.entries, Amount.Sub)}
}

// SubFree is [Amount.SubFree] for each type.
func (v Vector) SubFree(w Vector) Vector {
	return Vector{entries: merge(v.entries, w.entries, Amount.SubFree)}
}

// Max returns the larger amount of each type.
func (v Vector) Max(w Vector) Vector {
	return Vector{entries: merge(v.entries, w.entries, func(a, b Amount) Amount { return max(a, b) })}
}

// Floor0 returns v without its negative entries.
func (v Vector) Floor0() Vector {
	if !v.HasNegative() {
		return v
	}
	return Vector{entries: slices.DeleteFunc(slices.Clone(v.entries), negative)}
}

// Split returns the entries of the types for which in is true, and the others.
func (v Vector) Split(in func(name string) bool) (with, without Vector) {
	if !slices.ContainsFunc(v.entries, func(e Entry) bool { return !in(e.Name) }) {
		return v, Vector{}
	}
	for _, e := range v.entries {
		if in(e.Name) {
			with.entries = append(with.entries, e)
		} else {
			without.entries = append(without.entries, e)
		}
	}
	return with, without
}

// Cap returns v with every amount at most the given one, which is above 0.
func (v Vector) Cap(most Amount) Vector {
	capped := slices.Clone(v.entries)
	for i := range capped {
		capped[i].Amount = min(capped[i].Amount, most)
	}
	return Vector{entries: capped}
}

// HasNegative tells whether any amount is below 0.
func (v Vector) HasNegative() bool { return slices.ContainsFunc(v.entries, negative) }

func negative(e Entry) bool { return e.Amount < 0 }

// Covers tells whether v has at least the amount of w for every type that w
// names. Types w does not name are not looked at.
func (v Vector) Covers(w Vector) bool {
	for _, e := range w.entries {
		if v.Get(e.Name) < e.Amount {
			return false
		}
	}
	return true
}

// Key returns a string that is equal for equal vectors and different for
// different ones, for use as a map key. It is not readable; see String.
func (v Vector) Key() string {
	const perEntry = 32 // a usual name, its length and the amount
	key := make([]byte, 0, perEntry*len(v.entries))
	for _, e := range v.entries {
		key = binary.AppendUvarint(key, uint64(len(e.Name)))
		key = append(key, e.Name...)
		key = binary.BigEndian.AppendUint64(key, uint64(e.Amount))
	}
	return string(key)
}

// String renders the vector as "memory=1024 pods=1 vcore=500", sorted by name,
// in base units; "0" when it is empty.
func (v Vector) String() string { return render(v.entries, "0") }

func render(entries []Entry, empty string) string {
	if len(entries) == 0 {
		return empty
	}
	var b strings.Builder
	for i, e := range entries {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(e.Name)
		b.WriteByte('=')
		b.WriteString(strconv.FormatInt(int64(e.Amount), 10))
	}
	return b.String()
}

// merge combines two sorted entry lists; a type present in one list only is
// combined with 0. Zero results are dropped.
func merge(a, b []Entry, op func(Amount, Amount) Amount) []Entry {
	out := make([]Entry, 0, max(len(a), len(b)))
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		var e Entry
		switch {
		case i < len(a) && j < len(b) && a[i].Name == b[j].Name: // mostly, and quick for one and the same string
			e = Entry{a[i].Name, op(a[i].Amount, b[j].Amount)}
			i++
			j++
		case j == len(b) || (i < len(a) && a[i].Name < b[j].Name):
			e = Entry{a[i].Name, op(a[i].Amount, 0)}
			i++
		default:
			e = Entry{b[j].Name, op(0, b[j].Amount)}
			j++
		}
		if e.Amount != 0 {
			out = append(out, e)
		}
	}
	return out
}
