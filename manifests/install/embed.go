// Package install holds what users apply: the output of the kustomizations. "make
// render" makes it; a test in tools/release shows that it is up to date. Tests
// against a real API server take it from here.
package install

import "embed"

// Files are second-scheduler.yaml, which is manifests/base, and a file for each of
// the overlays that has objects of its own and for the policies in manifests/admission.
//
//go:embed *.yaml
var Files embed.FS
