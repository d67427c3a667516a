// Package victims decides whom to preempt: the seven laws, and the choice among
// what they allow.
//
// [Plan] is a function: a frozen [World], an [Ask], [Params] in, a [Decision]
// out. It reads no clock and asks nobody but Params.Fits, the one seam to the
// real filters, and that only for sets that fit by arithmetic. [Lawful] judges a
// decision by the same laws again and shares no code with the search.
//
//	scene.go    the ask side: path, fence (law 7), what is over a max
//	route.go    the way from a victim's leaf to the ask's path: priority (law 6),
//	            which queues a victim counts in
//	laws.go     where certain types are contested: laws 4 and 5 on single pods,
//	            law 2 as what may be taken from each queue
//	digest.go   the pods of a node, in the form that plans read them in
//	survey.go   a node: what the asker lacks and who may go
//	floor.go    the least harm that any plan there does, and the least it wastes
//	pool.go     candidates on other nodes, for a queue over its max (P3)
//	search.go   the best set of victims on a node; bound.go where it may stop,
//	            spare.go what is left of a set that was not searched for
//	key.go      the order of plans
//	plan.go     over all nodes: skim each, then dig where it may be worth it
//	skim.go     plans without victims or with one, and where to dig
//	choose.go   the real filters
//	decision.go what was decided
//	numbers.go  the numbers it was judged by, law by law, or what stopped the asker
//	sentence.go the same for people
//	slab.go     memory for the many small lists
//	lawful.go   the second opinion; room.go, whether there is room
//
// Why the search may stop where it stops: every law that looks at a set only
// forbids more as the set grows (law 2), or looks at single victims (all
// others), and every criterion that counts (the first six) only grows. So a set
// that breaks a law, or is worse than the best so far, need not be grown; and a
// set that makes room need not either, so no plan has a victim too many.
//
// Why preemption ends: add up, over all queues and types, what is both used and
// guaranteed. The victims' queues keep what counts (law 2), but for what they are
// short of already, and of that they lose no more than the asker's queues, being
// short of it as well, win. The asker's queues are below their guarantee in what
// is contested (law 4), so there the sum grows with every plan; and it is bounded.
package victims
