// Package withours puts our plugins into the schedulers that upstream's own test suites
// make: into each profile the queue order and the filter of held nodes, as in the profile
// default-scheduler of manifests/config/two-profiles.yaml. The suites are rewritten to
// call it; see the command in the directory above.
package withours
