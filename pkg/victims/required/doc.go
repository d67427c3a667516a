// Package required decides whom to preempt for a pod that can run on one node
// only: a pod of a DaemonSet (rules D1 to D8).
//
// [Plan] is a function: a frozen [Node], an [Ask], [Params] in, a [Decision] out.
// It reads no clock and asks nobody but Params.Fits, the one seam to the real
// filters, and that only where amounts say yes. [Judge] judges a decision by the
// same rules again, on a state that may be newer, and shares no code with it.
//
// Queues count for nothing here but their max (D2): no guarantee, fence or delay
// binds such an asker, and its victims may be of its own queue and application.
// What is left is a question about one node:
//
//	world.go      what goes in
//	need.go       what the asker lacks on the node (D7)
//	candidates.go who may go (D4), and in what order (D5)
//	choose.go     the selections single and multiple, and the real filters (D6)
//	plan.go       whether the node is held, and since when pods go (D1 to D3)
//	decision.go   what was decided, with its numbers (D8); words.go, in words
//	judge.go      the second opinion
//
// # What the rules leave open
//
//   - A pod with preemptionPolicy Never has no candidates (D2). So its node is
//     held for it when it fits there once leaving pods are gone, and not otherwise.
//   - The covered share of the need is the largest over the types, and at most
//     all: of pods that cover the need alone none counts as larger.
//   - Budgets are consumed by every pod that is before in the order, and break
//     ties of class, priority, share and age, before the UID does.
//   - A pod that is both originator and opted out goes after the others that
//     opted out in the selection single, too, whatever its deviation.
//   - Where filters refuse though amounts fit, one victim is tried first, whatever
//     the selections; if none is enough, multiple goes on, where it is selected.
//     Otherwise two pods with two ports that the asker needs would hold up its
//     node for ever.
//   - Where filters refuse the victims that cover the need, multiple takes more,
//     in order, until they pass.
//   - A hold that found no victims is kept (D1); [Decision.Tried] tells why none.
package required
