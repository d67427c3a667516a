// Package unmet finds the queues that are under their guarantee while pods wait there that
// preemption could lawfully make room for, and for how long: the time to guarantee.
//
// A queue has lawful unmet demand in a type that it guarantees if
//   - it uses less of the type than its guarantee,
//   - a leaf at or below it has waiting pods that request the type, and
//   - every queue from that leaf up to it that also guarantees the type is under its own
//     guarantee (law 4, judged for victims outside the queue).
//
// [Find] looks at a snapshot. The store says why the pods of a leaf wait.
//
// A [Meter] has no clock. It assumes that what one look found lasted until the next look.
package unmet
