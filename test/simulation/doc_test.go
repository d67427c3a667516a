// Package simulation_test runs random histories of the whole scheduler in virtual time:
// upstream's scheduler with our plugins, on an API server with faults, with processes
// that crash. docs/survival.md describes the events, the invariants, and how to replay a
// history.
//
//	simulation_test.go   a history: steps, time, faults of calls
//	moves_test.go        the moves
//	settings_test.go     arguments of plugins, configurations of queues
//	cluster_test.go      pods, nodes and their labels, kubelets
//	neighbour_test.go    the second scheduler, and the taints by which room is kept from it
//	tenant_test.go       the hostile tenant: its moves and their invariants;
//	                     tenant_moves_test.go moves of queues, finalizers, pods too large
//	quotas_test.go       max, limits and maxapplications, added up from outside;
//	                     demand_test.go what autoscalers are told
//	budgets_test.go      PodDisruptionBudgets and the controller of their status
//	upstream_test.go     room of pods that upstream's preemption nominates, and pods for
//	                     which that makes room in vain
//	api_test.go          the API server; client_test.go the schedulers' client;
//	                     transport_test.go watches, the lease, and readers of PodGroups
//	nodebound_test.go    pods of DaemonSets go first on their node
//	podgroups_test.go    PodGroups: their moves and their invariants
//	instance_test.go     one process of the scheduler
//	interceptor_test.go  the calls to the store; judge_test.go judges by them, laws_test.go
//	                     all missing pods of a PodGroup and plans that take originators,
//	                     hold_times_test.go when holds end, room_test.go whether free room
//	                     goes to the pod that is first
//	checks_test.go       the invariants of every moment, and those of rest;
//	                     rest_test.go defines rest, and finds pods for which no plan is made
//	bugs_test.go         planted bugs, which show that the invariants find them;
//	                     bugs_found_test.go finds them
//	run_test.go          the tests and the flags, how much is judged and has to be, and what
//	                     notices a standstill; steps_test.go how many steps they take
//
// The order of locks is: the API server's, an interceptor's, the store's. The simulation's own
// lock (for the log and the faults) is taken last.
package simulation_test
