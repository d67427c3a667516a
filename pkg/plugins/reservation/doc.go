// Package reservation adapts the holds of nodes to the scheduling cycle: is this
// node held for somebody else (Filter), and commit or give back what a pod takes
// (Reserve, Permit, PostBind, Unreserve).
package reservation
