// Package build compiles the programs of a local cluster with the go command and reports
// its progress. The go command decides what is missing or stale; when nothing is, a build
// takes about a second.
package build
