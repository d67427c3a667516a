// Package stage turns the world of a scenario into objects of a cluster: queues as a
// configuration, pods, nodes and budgets as Kubernetes objects. The drivers that run the
// scenarios of package scenario with a real scheduler share it.
//
// Not every fact of a scenario can be expressed with objects on every cluster;
// [Unplayable] lists those that cannot, so that a driver leaves out exactly these.
//
// Scenarios abbreviate some facts. On the stage:
//
//   - every pod is an application of its own unless the scenario names one, because
//     otherwise the oldest pod of a queue would be an originator;
//   - an originator has a companion: a pod of its application that it owns, that fits no
//     node and that does not preempt;
//   - gpu is example.com/gpu;
//   - the requirements of a pod on its node beside room are a host port, a required term
//     of (anti-)affinity, or a constraint DoNotSchedule with a skew of 1, and the domain
//     is always the node.
package stage
