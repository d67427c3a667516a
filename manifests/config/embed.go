// Package manifests carries the scheduler configurations that are shipped, so
// that the binary and the tests read the very files that users read.
package manifests

import _ "embed"

// SecondScheduler is second-scheduler.yaml: the profile yunikorn only. The
// binary runs it without --config.
//
//go:embed second-scheduler.yaml
var SecondScheduler []byte

// TwoProfiles is two-profiles.yaml: default-scheduler and yunikorn.
//
//go:embed two-profiles.yaml
var TwoProfiles []byte

// TwoProfilesDaemonSets is two-profiles-daemonsets.yaml: the same, with the DaemonSet
// rules for the pods of default-scheduler, too.
//
//go:embed two-profiles-daemonsets.yaml
var TwoProfilesDaemonSets []byte

// WithPodGroups is with-podgroups.yaml: the profile yunikorn with Coscheduling.
//
//go:embed with-podgroups.yaml
var WithPodGroups []byte
