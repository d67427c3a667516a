// Package victims decides whom to preempt: the seven laws, and the choice among
// what they allow.
//
// [Plan] is a function: a frozen [World], an [Ask], [Params] in, a [Decision]
// out. It reads no clock and asks nobody but Params.Fits, the one seam to the
// real filters, and that only for sets that fit by arithmetic. [Lawful] judges a
// decision by the same laws again and shares no code with the search.
//
//	scene.go    the ask side: path, fence (law 7), what is contested
//	route.go    the way from a victim's queue to the ask's: priority (law 6),
//	            guarantee (law 5), which queues it counts in
//	laws.go     law 4 by level, law 2 as what may be taken from each queue
//	node.go     the candidates of a node, by kind
//	search.go   the best set among them
//	key.go      the order of plans
//	plan.go     over all nodes, and the real filters
//	lawful.go   the second opinion
//
// Why the search may stop where it stops: every law that looks at a set only
// forbids more as the set grows (law 2), or looks at single victims (all
// others), and every criterion that counts (the first five) only grows. So a
// set that breaks a law, or is worse than the best so far, need not be grown;
// and a set that makes room need not either, so no plan has a victim too many.
package victims
