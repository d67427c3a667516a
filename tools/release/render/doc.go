// Package render makes the objects that users apply out of manifests/, from the
// kustomizations with kustomize's library (kustomize.go).
//
// install.go writes manifests/install, which is the output of the kustomizations, so
// that kubectl is enough to install and that reviewers see what a change means. The
// tests render the chart with helm's library, and show that chart and kustomizations
// agree.
package render
