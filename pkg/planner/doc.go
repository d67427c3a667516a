// Package planner decides which pods are preempted: it implements the seven laws, and the
// choice among the plans that they allow.
//
// [Plan] is a function of a frozen [World], an [Ask] and [Params]; it returns a
// [Decision]. It reads no clock and calls nothing outside except Params.Fits, the only
// connection to the real filters, and that only for sets that fit by arithmetic. [Lawful]
// judges a decision again by the same laws and shares no code with the search.
//
//	scene.go    the problem of one asker: path, fence (law 7), what is over a max
//	route.go    the path from a victim's leaf to the ask's path: priority (law 6),
//	            the queues that a victim counts in
//	laws.go     where certain types are contested: laws 4 and 5 on single pods,
//	            law 2 as the amounts that may be taken from each queue
//	digest.go   the pods of a node, in the form that plans read
//	survey.go   a node: what the asker lacks, and the candidates
//	floor.go    lower bounds of the harm of any plan on a node, and of its waste
//	pool.go     candidates on other nodes, for a queue over its max (P3)
//	search.go   the best set of victims on a node; bound.go prunes,
//	            spare.go reduces a set that the search did not find
//	key.go      the order of plans
//	plan.go     all nodes: a first pass over each, then a search where it may help
//	first_pass.go     first pass: plans with at most one victim, and nodes to search
//	choose.go   the choice by the real filters
//	decision.go the decision
//	numbers.go  its numbers, law by law, or what stopped the asker
//	sentence.go its texts for people
//	arena.go     arena for many small lists
//	lawful.go   the second check; room.go, whether enough is freed
//
// Why the search may prune: every law about a set only forbids more as the set grows (law
// 2), every other law is about single victims, and every criterion that counts (the first
// six) only grows. So a set that breaks a law, or is worse than the best so far, need not
// grow. A set that frees enough need not grow either, so no plan has an unneeded victim.
//
// Why preemption ends: take the sum, over all queues and types, of what is both used and
// guaranteed. The victims' queues keep their part of the sum (law 2), except in types in
// which they are already short of their guarantee. Of those they lose at most what the
// asker's queues, which are short of them as well, gain. In the contested types the
// asker's queues are below their guarantee (law 4), so there the sum grows with every
// plan. The sum is bounded.
package planner
