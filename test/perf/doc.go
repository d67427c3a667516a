// Package perf measures what the plugins cost a scheduler.
//
// What is measured are runs of upstream's scheduler_perf: a real API server, etcd and
// scheduler in one process, with everything that makes nodes and pods. A case is run by
// two sides, one of which is the base: mostly upstream's scheduler, of the same binary.
// The program in pairs runs both by turns, because a machine is not equally fast all the
// time, and compares each pair. `make bench` runs it; CASES, PAIRS and LARGE choose.
//
// All but span_test.go and pairs has the build tag perf. In the order to read it:
//
//   - cases_test.go: BenchmarkOurs, the cases that upstream has none for. Each is a list
//     of operations, and some look at the cluster at the end, whether it was as they say.
//   - workload_test.go: what those are written with: configurations of schedulers and of
//     queues, operations, templates of nodes and pods.
//   - readers_test.go: clients that poll REST meanwhile.
//   - upstream_test.go: BenchmarkUpstream, cases of upstream's own in sizes of ours. Its
//     sides are base, beside (the pods are in no queue, our profile is beside theirs),
//     asks (as beside, and QueuePreemption is asked for the pods) and managed (the pods
//     are in a queue).
//   - cpu_test.go: the CPU time of the measured part, printed for pairs to read;
//     span_test.go: when that part was.
//   - perf_test.go: etcd for scheduler_perf, and our plugins.
//
// In pairs, benchmarks.go lists the cases and their sides, main.go runs them, profile.go
// asks pprof for the scheduling goroutine and for our part of it, and summary.go has the
// medians and their intervals.
//
// A new case needs a line in BenchmarkOurs or upstreamCases, one in pairs/benchmarks.go,
// and a row in docs/performance.md, which has the figures.
//
// What the steps of our plugins cost without a cluster, the benchmarks beside them
// measure; docs/performance.md says which.
package perf
