// Package placement says where a pod belongs, from metadata alone.
//
// Two questions are answered, one after the other:
//
//   - [Identify] reads a pod's labels and annotations: which application, which
//     user, which queue it names, and whether it is part of a gang. It knows
//     nothing of queues.
//   - [Place] asks the placement rules of queues.yaml, in order, for the leaf
//     queue of that identity in the live tree. It creates nothing: a result
//     with Create tells the caller to make the missing dynamic queues.
//
// [NamespaceQuota] reads what a namespace's annotations grant to the dynamic
// queue that is made for it.
//
// Labels, annotations, their precedence and the order of the rules are
// YuniKorn's, so that manifests and operators written for it work unchanged.
// One thing differs on purpose: where YuniKorn fails the pods of an application
// it cannot place, Place only refuses with a reason. The pod stays pending and
// is placed when queues.yaml, or the pod's labels, allow it.
//
// A rule ends in one of three ways. It gives a usable queue, and that is the
// answer. It does not apply (no value, filtered, missing queue without create,
// a queue that is draining, no leaf, or closed to the user), and the next rule
// is asked. Or its result can never be right (an illegal name, a leaf as
// parent), and the search ends with a refusal, because the next rule would hide
// the mistake. A pod that already runs is never refused: mistakes are passed
// over, access lists ignored, and [queues.RecoveryPath] is the last resort.
//
// Everything here is a pure function of its arguments. Start reading with
// keys.go, then identity.go, place.go, rule.go, refusal.go, quota.go.
package placement
