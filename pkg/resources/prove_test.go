package resources

import (
	"testing"

	"pgregory.net/rapid"
)

// prove checks a law on random cases, and shows that the law is worth something:
// the same law, held against an implementation with a planted bug, must fail.
func prove[C any](t *testing.T, cases *rapid.Generator[C], law, planted func(C) error) {
	t.Helper()
	t.Run("holds", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			if err := law(cases.Draw(t, "case")); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("finds the planted bug", func(t *testing.T) {
		for seed := range 2000 {
			if planted(cases.Example(seed)) != nil {
				return
			}
		}
		t.Fatal("the law holds for the broken implementation, too")
	})
}

var (
	typeNames = []string{"a", "b", "c", CPU, Memory, Pods}
	// extreme amounts meet the ends of int64 often; modest ones never saturate.
	extreme = rapid.OneOf(
		rapid.Map(rapid.Int64(), func(i int64) Amount { return Amount(i) }),
		rapid.SampledFrom([]Amount{0, 1, -1, MaxAmount, MinAmount, MaxAmount - 1, MinAmount + 1, MaxAmount / 2, MinAmount / 2}),
	)
	modest  = rapid.Map(rapid.Int64Range(-1000, 1000), func(i int64) Amount { return Amount(i) })
	counts  = rapid.Map(rapid.Int64Range(0, 6), func(i int64) Amount { return Amount(i) })
	anyKind = rapid.OneOf(extreme, modest, counts)
)

func maps(amounts *rapid.Generator[Amount]) *rapid.Generator[map[string]Amount] {
	return rapid.MapOfN(rapid.SampledFrom(typeNames), amounts, 0, len(typeNames))
}

func vectors(amounts *rapid.Generator[Amount]) *rapid.Generator[Vector] {
	return rapid.Map(maps(amounts), VectorFrom)
}

func limits(amounts *rapid.Generator[Amount]) *rapid.Generator[Limit] {
	return rapid.Map(maps(amounts), LimitFrom)
}
