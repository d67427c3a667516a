// Package simulation_test runs random histories of the whole scheduler in virtual time:
// upstream's scheduler with our plugins, on an API server with faults, with processes
// that crash. docs/survival.md describes the events, the invariants, and how to replay a
// history.
//
//	simulation_test.go   a history: steps, time, faults of calls
//	moves_test.go        the moves
//	settings_test.go     arguments of plugins, configurations of queues; shipped_test.go
//	                     compares the profiles with those that are shipped
//	cluster_test.go      pods, nodes, kubelets; labels_test.go labels of nodes that pods require
//	neighbour_test.go    the second scheduler; taints_test.go the room that it may take
//	tenant_test.go       the hostile tenant: its moves and their invariants;
//	                     tenant_moves_test.go queues, finalizers, labels
//	quotas_test.go       max, limits and maxapplications, added up from outside;
//	                     demand_test.go what autoscalers are told
//	originators_test.go  plans that take originators
//	budgets_test.go      PodDisruptionBudgets and the controller of their status
//	nominated_test.go    room of pods that upstream's preemption nominates; stranded_test.go
//	                     pods for which that makes room in vain
//	api_test.go          the API server; watch_test.go its watches, client_test.go
//	                     the schedulers' client, lease_test.go the lease
//	transport_test.go    the transport for readers of PodGroups
//	nodebound_test.go    pods of DaemonSets go first on their node
//	podgroups_test.go    PodGroups: their moves and their invariants; groups_judge_test.go
//	                     the laws for all missing pods of one
//	instance_test.go     one process of the scheduler
//	interceptor_test.go  the calls to the store; judge_test.go judges by them, room_test.go
//	                     whether free room goes to the pod that is first
//	checks_test.go       the invariants of every moment, and those of rest;
//	                     rest_test.go defines rest, asked_test.go finds pods for which no
//	                     plan is made
//	counts_test.go       how much is judged, and how much has to be
//	bugs_test.go         planted bugs, which show that the invariants find them;
//	                     bugs_found_test.go finds them
//	watchdog_test.go     notices a standstill
//	run_test.go          the tests, and the flags; steps_test.go how many steps they take;
//	                     main_test.go prepares the program
//
// The order of locks is: the API server's, an interceptor's, the store's. The simulation's own
// lock (for the log and the faults) is taken last.
package simulation_test
