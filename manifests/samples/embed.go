// Package samples holds a small multi-tenant example: the queues of two tenants and workloads that use them. "make
// run" applies it; "kubectl apply -f manifests/samples" does the same.
//
// An object that makes pods may say, in the annotation local.paddock.io/expect-placed, how many of them are to be placed
// when the queues allow no more; without it all are.
package samples

import "embed"

// Files are the manifests; they are applied in the order of their names.
//
//go:embed *.yaml
var Files embed.FS
