// Package nodeagent simulates Kubernetes nodes: one process is the kubelet of every node
// with the label local.paddock.io/node=simulated. There are no containers; what else
// a scheduler and the controllers see is as with a kubelet, unless it is said here.
//
// # What a simulated node does
//
//   - It reports itself Ready, and renews no lease: the node controller needs a long
//     --node-monitor-grace-period. Creating a Node object with the label, with kubectl or
//     from Go, adds a node while the agent runs; deleting the object removes it. The object must
//     have labels and allocatable resources, as those of NodeSpec have.
//   - It admits or rejects every pod bound to it (see admission.go). A pod that does not
//     fit beside the unfinished pods already admitted, terminating ones included, ends in
//     phase Failed with the kubelet's reason: OutOfcpu, OutOfmemory, OutOfpods,
//     OutOf<resource>, NodeAffinity, NodePorts, TaintToleration. The node is never
//     overcommitted silently: rejections are counted by reason (see Stats). One
//     difference: a pod that requests an extended resource that the node does not have is
//     rejected, where a kubelet accepts it.
//   - An admitted pod is Running and Ready at once, whatever its readiness gates; init
//     containers have completed.
//   - A deleted pod stays, with its resources, for its whole grace period, as if its process ignored SIGTERM.
//     Then it goes to phase Failed and is deleted.
//
// # Annotations on pods (values are Go durations: 500ms, 5s, 2m)
//
//	local.paddock.io/complete-after   the pod ends Succeeded this long after its start; use it in the template of a Job
//	local.paddock.io/stop-after       a deleted pod is gone after this time, if that is less than its grace period
//
// A pod without them runs until it is deleted, whatever its owner. A finished pod is not
// restarted, whatever its restartPolicy. A value that is no duration is logged and
// ignored.
package nodeagent
