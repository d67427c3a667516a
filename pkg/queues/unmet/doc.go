// Package unmet finds the queues that are under their guarantee although pods wait there
// that preemption could lawfully serve, and adds up for how long: the time to guarantee.
//
// A queue has lawful unmet demand in a type that it guarantees if it uses less of
// it than that, and a leaf at or below it has pods that wait for some, and every
// queue from that leaf up to it that guarantees the type, too, is under its own
// guarantee (law 4, judged for victims outside the queue). [Find] looks at a
// snapshot; what the pods of a leaf wait for, the store says.
//
// A [Meter] is looked at from time to time and has no clock: what was found at one
// look is taken to have lasted until the next.
package unmet
