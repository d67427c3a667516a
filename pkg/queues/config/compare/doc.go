// Package compare tells the difference of two queue configurations in words
// people use: what was added and removed, which guarantee was raised, which max
// was lowered, type by type.
//
// [Specs] is the only way in. It starts from [config.Diff], which decides
// whether there is a difference at all, and takes the changes of quotas apart
// into one [Difference] per resource type. Like its parent, the package is pure.
package compare
