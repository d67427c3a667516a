package resources

// LimitOf returns the limit with the given entries; amounts of a repeated name are added up.
func LimitOf(entries ...Entry) Limit { return LimitFrom(sumOf(entries)) }

// GuaranteeOf returns the guarantee with the given entries; amounts of a repeated name are added
// up.
func GuaranteeOf(entries ...Entry) Guarantee { return GuaranteeFrom(sumOf(entries)) }
