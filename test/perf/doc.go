// Package perf measures what the plugins cost a scheduler.
//
// perf_test.go (build tag perf) runs upstream's scheduler_perf: a real API
// server, etcd and scheduler in one process, 500 nodes, pods of 1,000 queues,
// once with upstream's configuration ("base") and once with ours. The program
// in pairs runs both by turns, because a machine is not equally fast all the
// time, and compares each pair. `make bench` runs it.
//
// What the steps of our plugins cost without a cluster, the benchmarks beside them
// measure. docs/performance.md has the figures, and says which benchmarks.
package perf
