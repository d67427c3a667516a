package resources

import "math"

// Amount is a quantity of one resource type in its base unit: milli-CPU for
// [CPU], bytes for memory and storage, a count otherwise. It may be negative
// where a difference is meant (headroom of a queue over its max).
type Amount int64

// MaxAmount and MinAmount are where arithmetic saturates. A saturated amount
// stays saturated only as far as later operations do not lead away from the
// end; it is a bound, not a marker for "unlimited" (that is a missing entry of
// a [Limit]).
const (
	MaxAmount Amount = math.MaxInt64
	MinAmount Amount = math.MinInt64
)

// Add returns a+b, saturated.
func (a Amount) Add(b Amount) Amount {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return MaxAmount
	case a < 0 && b < 0 && sum >= 0:
		return MinAmount
	}
	return sum
}

// Sub returns a-b, saturated.
func (a Amount) Sub(b Amount) Amount {
	diff := a - b
	switch {
	case a >= 0 && b < 0 && diff < 0:
		return MaxAmount
	case a < 0 && b > 0 && diff >= 0:
		return MinAmount
	}
	return diff
}

// SubFree returns what is left of a when b takes of it what is free: a-b, but not below zero, and
// a itself if that is negative.
func (a Amount) SubFree(b Amount) Amount { return max(a.Sub(b), min(a, 0)) }
