// Package forecast says what a queue configuration would mean for what runs and
// waits in a cluster now: which queues would be over their max, which guarantees
// nothing can meet, what would be left in queues that are gone, and which queues
// could lose pods to which others.
//
//   - books.go: [Books] are what was recorded of a cluster. [Books.Under] makes
//     the tree of queues it would have, by the same code the scheduler uses
//     for a reload.
//   - forecast.go: [Of] judges such a tree. quotas.go has what is about amounts,
//     losers.go what is about preemption.
//   - compare.go: [Compare] tells what a change brings and what it ends.
//
// Laws 2, 4, 5 and 7 are judged by queue and by resource type, because pods are not in
// the books. So the forecast says which queues could lose, and how much at most;
// priorities (law 6), opt-outs (law 1), and whether the pods stand in the asker's way at
// all decide in the end. One thing is not seen: a pod that uses no type the asker's
// queues are short of may have to go, too, for another type the node is short of.
//
// The package is pure: everything follows from the arguments.
package forecast
