// Package stage puts the world of a story on a cluster: queues as a
// configuration, pods, nodes and budgets as Kubernetes objects. It is what the
// drivers share that tell the stories of package scenario to a real scheduler.
//
// Not everything that a story says can be said with objects on every cluster;
// [Unplayable] tells what cannot, so that a driver leaves out exactly that
// and nothing more.
//
// Stories say some things in short. On the stage:
//
//   - every pod is an application of its own unless the story names one, or the
//     oldest pod of a queue would be an originator;
//   - an originator has a companion: a pod of its application that it owns and that no
//     node takes and that does not preempt;
//   - gpu is example.com/gpu;
//   - what a pod wants of its node beside room is a host port, a required term of
//     (anti-)affinity, or a constraint DoNotSchedule with a skew of 1, and the
//     domain is always the node.
package stage
