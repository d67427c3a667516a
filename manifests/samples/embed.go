// Package samples holds a small multi-tenant example: the queues of two tenants and workloads that use them. "make
// run" applies it; "kubectl apply -f manifests/samples" does the same.
package samples

import "embed"

// Placed is how many of their pods get a node: all but one, for which its queue has no room.
const Placed = 16

// Files are the manifests; they are applied in the order of their names.
//
//go:embed *.yaml
var Files embed.FS
