// Package build compiles the programs of a local cluster with the go command and reports
// its progress. The go command decides what is missing or stale; when nothing is, a build
// takes about a second.
//
// Guided tour: build.go runs the go command, progress.go turns its output into counts, version.go makes the
// linker flags that stamp the version.
package build
