// Package search finds the pods to preempt for an asker: the best set of victims that the
// seven laws allow.
//
// [Plan] is a function of a frozen [planner.Snapshot], a [planner.Ask] and [planner.Params];
// it returns a [planner.Decision]. It reads no clock and calls nothing outside except
// Params.Fits, the only connection to the real filters, and that only for sets that fit by
// arithmetic.
//
//	problem.go        the problem of one asker: path, fence (law 7), what is over a max
//	path.go           the path from a victim's leaf to the asker's path: priority (law
//	                  6), the queues that a victim counts in
//	laws.go           where certain types are contested: laws 4 and 5 on single pods
//	                  (contestedView.judge), law 2 as the amounts that may be taken from each queue
//	                  (takableFrom, findShort, gains)
//	group.go          laws 2 and 4 for an asker that starts together with a group (lacks)
//	survey.go         a node: what the asker lacks, and the candidates
//	lower_bound.go    lower bounds of the harm of any plan on a node, and of its waste
//	candidate_pool.go candidates on other nodes, for a queue over its max (P3)
//	node_search.go    the best set of victims on a node, law 2 on sets (lawful); bound.go prunes,
//	                  spare.go reduces a set that the search did not find
//	key.go            the order of plans
//	plan.go           all nodes: a first pass over each, then a search where it may help
//	first_pass.go     plans with at most one victim, and the nodes to search
//	choose.go         the choice by the real filters
//	outcome.go        the decision
//	numbers.go        its numbers, law by law, or what stopped the asker
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
package search
