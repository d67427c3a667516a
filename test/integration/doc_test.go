// Package integration tests the scheduler as users run it: the built binary, as its own process and
// under the RBAC of its manifests, with a real API server, etcd and controller manager, and with
// simulated nodes that reject pods that do not fit. No part of the scheduler is replaced or called
// directly; the tests observe it through the API server, the REST interface, /metrics and the log.
//
//	make integration
//
// builds the binaries first, so that a missing or old binary is never a reason to skip.
// One control plane serves all tests; every test runs a scheduler of its own with one of
// the shipped configurations, in which only the addresses are changed. The logs of a
// failed run are kept, and the test prints where.
//
// # Guided tour
//
// main_test.go builds and starts; env_test.go is the environment of a test: its scheduler, its
// ConfigMap, its namespaces, and the checks at the end of every test (no pod rejected by a node,
// nothing forbidden by RBAC, no panic). pods_test.go makes pods and waits for them, observe_test.go
// reads REST, metrics, events and the log, podhistory_test.go records the history of a test's pods,
// objects_test.go makes other objects. replicas_test.go has two schedulers on one lease, each behind a
// proxy that intercepts a chosen write and keeps a log of deeds. The other files are tests, named after
// their subjects.
//
// Tests poll; they never sleep. A test that checks that something does not happen first
// waits for a sign that the scheduler has seen the cause, then watches for a short while.
package integration
