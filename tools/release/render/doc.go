// Package render makes the objects that users apply out of manifests/: from the
// kustomizations with kustomize's library, from the chart with helm's.
//
// kustomize.go and chart.go are these two. install.go writes manifests/install,
// which is the output of the kustomizations, so that kubectl is enough to install
// and that reviewers see what a change means. objects.go reads objects back; the
// tests use it to show that chart and kustomizations agree.
package render
