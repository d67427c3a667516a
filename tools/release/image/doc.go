// Package image makes the container image of the scheduler without a container
// engine: an OCI image layout in a tar file, the same bytes for the same source,
// wherever and whenever it is made.
package image
