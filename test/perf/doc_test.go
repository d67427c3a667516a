// Package perf measures the cost of the plugins for a scheduler.
//
// The measured runs are those of upstream's scheduler_perf: a real API server, etcd and
// scheduler in one process, with the creation of nodes and pods. A case is run by two
// sides, one of which is the base: mostly upstream's scheduler, in the same binary. The
// program in pairs runs both in turn, because the speed of a machine varies with time,
// and compares each pair. `make bench` runs it; CASES, PAIRS and LARGE choose.
//
// All files except span_test.go and pairs have the build tag perf. In reading order:
//
//   - cases_test.go: BenchmarkOurs, the cases that upstream does not have. Each is a list
//     of operations, and some check the cluster at the end.
//   - workload_test.go: the parts of cases: configurations of schedulers and of queues,
//     operations, templates of nodes and pods.
//   - readers_test.go: clients that poll REST meanwhile.
//   - upstream_test.go: BenchmarkUpstream, upstream's own cases in our sizes. Its sides
//     are base, beside (the pods are in no queue, our profile is beside upstream's), asks
//     (as beside, and QueuePreemption is called for the pods) and managed (the pods are
//     in a queue).
//   - cpu_test.go: the CPU time of the measured part, printed for pairs to read;
//     span_test.go: the time span of that part, and which pods were held back at its end.
//   - perf_test.go: etcd for scheduler_perf, and our plugins.
//
// In pairs, benchmarks.go lists the cases and their sides, main.go runs them, and summary.go
// computes the medians and their intervals.
//
// A new case needs a line in BenchmarkOurs or upstreamCases, one in pairs/benchmarks.go,
// and a row in docs/performance.md, which has the figures.
//
// The cost of the plugins' steps without a cluster is measured by the benchmarks beside
// them; docs/performance.md lists these.
package perf
