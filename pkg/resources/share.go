package resources

import (
	"cmp"
	"fmt"
	"math/bits"
)

// Share is an exact non-negative fraction: used over entitled. It is compared
// without rounding, so that equal usage always gives equal shares. The zero
// value is a share of nothing.
type Share struct {
	used, of uint64 // of is 0 only in the zero value
}

// ShareOf returns used/of. Nothing used (or a negative amount) is the zero
// share; use of a type with nothing to divide by counts as 1, "all of it".
func ShareOf(used, of Amount) Share {
	switch {
	case used <= 0:
		return Share{}
	case of <= 0:
		return Share{used: 1, of: 1}
	}
	return Share{used: uint64(used), of: uint64(of)}
}

// Compare returns -1, 0 or 1 as s is smaller than, equal to or larger than t.
func (s Share) Compare(t Share) int {
	// s.used/s.of ? t.used/t.of, by cross multiplication in 128 bits.
	hi1, lo1 := bits.Mul64(s.used, max(t.of, 1))
	hi2, lo2 := bits.Mul64(t.used, max(s.of, 1))
	return cmp.Or(cmp.Compare(hi1, hi2), cmp.Compare(lo1, lo2))
}

// Max returns the larger share, and s if both are equal.
func (s Share) Max(t Share) Share {
	if t.Compare(s) > 0 {
		return t
	}
	return s
}

// String renders the fraction as "3/8", "0" for the zero share.
func (s Share) String() string {
	if s.used == 0 {
		return "0"
	}
	return fmt.Sprintf("%d/%d", s.used, s.of)
}

// DominantShare returns the largest share over the used types: used over
// guaranteed where the type is guaranteed, else used over the first of bounds
// that names the type. A type with none of them is left out; a guarantee of 0
// that is used counts as 1. Values above 1 mean "over the guarantee" and are
// meaningful.
func DominantShare(used Vector, guaranteed Guarantee, bounds ...Limit) Share {
	var largest Share
	for _, e := range used.entries {
		of, named := guaranteed.Get(e.Name)
		for i := 0; !named && i < len(bounds); i++ {
			of, named = bounds[i].Get(e.Name)
		}
		if !named {
			continue
		}
		largest = largest.Max(ShareOf(e.Amount, of))
	}
	return largest
}
