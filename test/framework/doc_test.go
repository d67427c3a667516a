// Package framework_test tests the plugins with upstream's scheduler: the real queue,
// cycles, hints and binding goroutines, on an API server in memory (api_test.go). It
// covers what the store's own tests cannot see: the order in which the scheduler takes
// pods, when it takes none, and what becomes of a hold when its node changes.
//
// cluster_test.go starts a scheduler, probe_test.go observes its cycles, order_test.go
// computes the order from first principles and compares.
package framework_test
