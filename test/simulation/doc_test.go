// Package simulation_test lives random histories of the whole scheduler in virtual
// time: upstream's scheduler with our plugins, on an API server that fails, with
// processes that die. docs/survival.md says what happens in them, what must never be
// wrong, and how to live one again.
//
//	simulation_test.go   a history: steps, time, what goes wrong with a call
//	moves_test.go        the moves
//	settings_test.go     arguments of plugins, configurations of queues
//	cluster_test.go      pods, nodes, kubelets
//	neighbour_test.go    the second scheduler; taints_test.go the room that it may take
//	budgets_test.go      PodDisruptionBudgets and what writes their status
//	nominated_test.go    room of pods that upstream's preemption nominates
//	api_test.go          the API server; watch_test.go its watches, client_test.go
//	                     how schedulers speak to it, lease_test.go the lease
//	transport_test.go    how what reads PodGroups speaks to it
//	podgroups_test.go    PodGroups: what happens to them, and what must never be wrong
//	instance_test.go     one process of the scheduler
//	witness_test.go      what its store was told; judge_test.go judges by that
//	checks_test.go       what must never be wrong, and what not at rest;
//	                     rest_test.go what rest is
//	bugs_test.go         bugs that are planted, to show that they are found
//	watchdog_test.go     notices that time stands still
//	locks_test.go        looks at the order of locks
//	run_test.go          the tests, and the flags
//
// Locks: that of the API server, then that of a witness, then the store's; the
// simulation's own (what happened, what is wrong) is taken last.
package simulation_test
