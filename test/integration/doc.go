// Package integration tests the scheduler as users meet it: the built binary, as
// its own process and under the RBAC it asks for, against a real API server,
// etcd and controller manager, with simulated nodes that refuse what does not
// fit. Nothing of the scheduler is replaced or called directly; what the tests
// know comes from the API server, the REST interface, /metrics and the log.
//
//	make integration
//
// builds the binaries first, so that a missing or old one is never a reason to
// skip. One control plane serves all tests; every test runs a scheduler of its
// own with one of the shipped configurations, in which only the addresses are
// changed. The logs of a failed run are kept, and the test says where.
//
// # Guided tour
//
// main_test.go builds and starts; env_test.go is what a test has around it: its
// scheduler, its ConfigMap, its namespaces, and what is checked at the end of
// every test (no pod refused by a node, nothing forbidden by RBAC, no panic).
// pods_test.go makes pods and waits for them, observe_test.go reads REST,
// metrics, events and the log, chronicle_test.go remembers all that happened to
// the pods of a test. apiproxy_test.go stands between a scheduler and the API
// server and does something when a certain write comes along; replicas_test.go
// has two schedulers on one lease, each behind a proxy that keeps a journal.
// scenario_test.go tells the stories of preemption, scenario_stage_test.go makes
// what they have. The other files are tests, named after what they are about.
//
// Tests poll; they never sleep. Where a test says that something does not
// happen, it first waits for a sign that the scheduler has seen the cause, then
// watches for a short while.
package integration
