// Package reservation is the plugin that charges quota. Reserve takes quota when a node
// is chosen, Unreserve gives it back if the pod is not bound, and Permit checks once more
// that the node is not held for other pods.
//
// Its Filter keeps pods off nodes that are held for other pods while capacity is freed
// there. The plugin must be enabled in every profile, because a pod of any profile could
// take that capacity.
//
// It has Filter and no PreFilter. Filter reads what it needs itself (the holds, and the DaemonSet pods
// that go first), and a PreFilter that returns Skip would disable Filter for the pod.
package reservation
