package resources

import "pgregory.net/rapid"

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

// LimitOf returns the limit with the given entries; amounts of a repeated name are added up.
func LimitOf(entries ...Entry) Limit { return LimitFrom(sumOf(entries)) }

// GuaranteeOf returns the guarantee with the given entries; amounts of a repeated name are added
// up.
func GuaranteeOf(entries ...Entry) Guarantee { return GuaranteeFrom(sumOf(entries)) }
