// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/paddock-scheduler/paddock/apis/config
// +k8s:defaulter-gen=TypeMeta
// +groupName=kubescheduler.config.k8s.io

// Package v1 holds the plugin arguments as users write them, in the group and
// version kubescheduler.config.k8s.io/v1. The comment of each field is its
// reference: what it is, its unit, default and bounds. A field left out gets
// its default; every field is optional.
//
// Lists have no omitempty: an empty list is a mistake to report, and would turn
// into the default if it were dropped when a configuration is written out.
//
// types.go is the format, defaults.go the defaults; bounds are checked in
// package validation on the internal types.
package v1
