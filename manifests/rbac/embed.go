// Package rbac carries the access rights that are shipped, so that local clusters and tests give the scheduler
// exactly what users give it.
package rbac

import "embed"

// Files has second-scheduler.yaml: all that the scheduler needs beside the cluster's own scheduler.
//
//go:embed second-scheduler.yaml
var Files embed.FS
