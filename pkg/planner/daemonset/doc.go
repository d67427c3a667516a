// Package daemonset decides which pods are preempted for a pod that can run on one node
// only: a DaemonSet pod (rules D1 to D8).
//
// [Plan] is a function of a frozen [Node], an [Ask] and [Params]; it returns a
// [Decision]. It reads no clock and calls nothing outside except Params.Fits, the only
// connection to the real filters, and that only if the asker fits by amounts. [Judge]
// judges a decision again by D2 to D7, on a state that may be newer. It applies the same
// rules to each victim, and shares no code with the choice of victims (choose.go). A test
// checks both against an oracle with rules of its own.
//
// Only the max of queues matters here (D2). No guarantee, fence or delay applies to such
// an asker, unless daemonSetNamespaces leaves its namespace out (guarantees.go). Its victims
// may be of its own queue and application. The remaining problem is about one node:
//
//	node.go       the input
//	need.go       what the asker lacks on the node (D7)
//	candidates.go which pods may be preempted (D4), and in what order (D5)
//	choose.go     the selections single and multiple, and the real filters (D6)
//	plan.go       whether the node is held, and since when pods are preempted (D1 to D3)
//	guarantees.go which pods go together if guarantees bind the asker (laws 1, 2, 5, 7)
//	decision.go   the decision with its numbers (D8); words.go, its texts
//	judge.go      the second check
//
// # What the rules do not define
//
//   - A pod with preemptionPolicy Never has no candidates (D2). So its node is held for
//     it only if it fits there once leaving pods are gone.
//   - The covered share of the need is the largest over the types, and at most 1: all
//     pods that cover the need alone count as equally large.
//   - Each pod uses disruptions of budgets that the following pods in the order then
//     lack. Budgets break ties of class, priority, time to stop, share and age, before the UID does.
//   - A pod that is both originator and opted out comes after the other opted-out pods,
//     also in the selection single, whatever its deviation.
//   - If filters reject although amounts fit, one victim is tried first, whatever the
//     selections. If none is enough, multiple continues, if it is selected. Otherwise two
//     pods with two ports that the asker needs would block its node forever.
//   - If filters reject the victims that cover the need, multiple takes more, in order,
//     until they pass.
//   - A hold that found no victims is kept (D1); [Decision.Tried] says why it found none.
package daemonset
