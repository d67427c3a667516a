// Package retrial judges decisions again after they were put into force, to find
// out whether whoever judged them before was right.
//
// A [Case] is the state right after a decision was committed: its victims count as
// leaving and its asker as arriving. Judge does not take anybody's word for what
// was before. It takes that back by its own arithmetic, from what the case says of
// the pods, and then asks the laws: [victims.Lawful], or [required.Judge] for a pod
// that can run on one node only. A mistake in the books of the store between the
// decision and its execution shows here as a broken law, and so does a plan that
// nobody judged at all.
//
// It asks neither whether another plan would have done less harm (law 1), nor the
// real filters: those are gone by then.
package retrial
