// Package simulation_test runs random histories of the whole scheduler in virtual time: upstream's
// scheduler with our plugins, on an API server with faults, with processes that crash. docs/survival.md
// describes the events, the invariants, and how to replay a history.
//
//	simulation_test.go   a history: steps, time, faults of calls; arguments of plugins,
//	                     configurations of queues
//	moves_test.go        the moves; pods, nodes and their labels, kubelets
//	neighbour_test.go    the second scheduler, and the taints by which room is kept from it
//	budgets_test.go      PodDisruptionBudgets and the controller of their status
//	tenant_test.go       the hostile tenant: its moves and their invariants;
//	                     tenant_moves_test.go moves of queues, finalizers, pods too large
//	quotas_test.go       max, limits and maxapplications, added up from outside; what
//	                     autoscalers are told
//	podgroups_test.go    PodGroups: their moves and their invariants
//	nodebound_test.go    pods of DaemonSets go first on their node
//	api_test.go          the API server, watches, the lease, and readers of PodGroups;
//	                     client_test.go the schedulers' client
//	instance_test.go     one process of the scheduler
//	interceptor_test.go  the calls to its store
//	judge_test.go        judges by these calls: plans, all missing pods of a PodGroup,
//	                     originators; hold_times_test.go when holds end
//	room_test.go         whether free room goes to the pod that is first; room of pods that
//	                     upstream's preemption nominates, and pods for which that makes
//	                     room in vain
//	rest_test.go         rest, and the invariants of every moment and of rest
//	bugs_test.go         planted bugs, which show that the invariants find them;
//	                     bugs_found_test.go finds them
//	run_test.go          the tests and the flags, how much is judged and has to be, and what
//	                     notices a standstill; steps_test.go how many steps they take
//
// The order of locks is: the API server's, an interceptor's, the store's. The simulation's own
// lock (for the log and the faults) is taken last.
package simulation_test
