// Package reservation is the plugin that commits: it takes the quota when a node
// is chosen (Reserve), gives it back when the pod is not bound after all
// (Unreserve), and has a last look before the bind (Permit).
//
// Its Filter keeps pods off nodes that are held for others, while room is made
// there. It has to be enabled in every profile, because a pod of any profile
// could take the room.
//
// It has Filter and no PreFilter: what Filter needs is a pointer that it loads
// itself, and a PreFilter that skipped a pod would switch its Filter off.
package reservation
