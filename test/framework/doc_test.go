// Package framework_test holds the plugins against upstream's scheduler: the
// real queue, cycles, hints and binding goroutines, on an API server that is a
// map (api_test.go). What the store's own tests cannot see is here: the order in
// which the scheduler takes pods, when it takes none, and what happens when a
// step after ours fails.
//
// cluster_test.go starts a scheduler, probe_test.go watches its cycles,
// naive_test.go knows the order from first principles, order_test.go compares.
// scenario_test.go tells the stories of preemption in virtual time.
package framework_test
