// Package metrics is what is on the scheduler's own /metrics beside upstream's,
// registered with component-base.
//
//   - table.go lists every metric: its name, type, labels and what it is. Everything
//     else takes it from there, docs/metrics.md too.
//   - cluster.go and queues.go make the gauges at each scrape, in the goroutine that
//     serves the scrape, from snapshots; Gated takes the store's lock for a moment. Nothing
//     is set while pods are scheduled. How many queues have series is bounded.
//   - guarantee.go looks once a second for how long queues are under their
//     guarantee while pods wait that preemption could lawfully serve.
//   - decisions.go counts decisions about making room, from the store's events of topic
//     Decisions; counts.go keeps the counters by queue.
//   - yunikorn.go writes YuniKorn's names, for the REST interface.
//   - register.go counts what the auditors find, and reads of the configuration.
package metrics
