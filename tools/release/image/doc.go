// Package image makes the container image of the scheduler without a container
// engine: an OCI image layout in a tar file, the same bytes for the same source,
// wherever and whenever it is made.
//
// build.go compiles, so that nothing of the machine gets into the binary. image.go
// puts binaries into images, one for each architecture, and these into an index:
// one layer with one static file, run by a user that is not root. archive.go
// writes the layout, push.go sends it to a registry. sbom.go says, as SPDX, what
// modules a binary is made of.
package image
