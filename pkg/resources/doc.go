// Package resources is the arithmetic of quotas: amounts, vectors of amounts,
// limits and guarantees.
//
// Three things look alike in a configuration file and are not alike at all:
//
//   - a [Vector] says how much is used or requested; a type it does not name is 0,
//   - a [Limit] says how much may be used at most; a type it does not name is unlimited,
//   - a [Guarantee] says how much is promised; a type it does not name is not
//     promised, which for comparisons counts as a promise of 0.
//
// They are therefore three types, so that no sentinel is compared by accident. An
// explicit 0 is kept by a limit ("no gpu here") and by a guarantee, and dropped by a
// vector.
//
// Amounts are int64 in base units: milli-CPU for the type named [CPU], bytes
// for memory, ephemeral storage and huge pages, a plain count for everything
// else ([Pods], extended resources). Arithmetic saturates at the ends of int64
// instead of wrapping around, so a hostile request can never make a quota
// larger. Nothing here uses floating point: shares are compared as exact
// fractions ([Share]).
//
// All values are immutable; methods return new values and never keep or hand
// out memory that a caller could write to.
//
// Start reading with amount.go, then vector.go, limit.go, guarantee.go, share.go.
package resources
