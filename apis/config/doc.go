// +k8s:deepcopy-gen=package
// +groupName=kubescheduler.config.k8s.io

// Package config holds the plugin arguments: what a KubeSchedulerConfiguration says
// under pluginConfig.
//
//	pluginConfig:
//	- name: QueueSort          # decoded as QueueSortArgs
//	  args: {window: 128}
//
// types.go is the format. The comment of each field is its reference: what it is, its
// unit, default and bounds. Every field is optional. A field is a pointer if its default is
// not the zero value; it is set once the arguments are decoded. Lists have no
// omitempty: an empty list is a mistake to report, and would turn into the default if it
// were dropped when a configuration is written out.
//
// Package validation returns every mistake at once, each with its field. Package scheme
// makes the strict codecs; import it (blank) in a binary.
//
// The kinds are in upstream's group, because the scheduler decodes the arguments of
// plugin X as kind XArgs of that group. Registration therefore adds to upstream's own
// scheme builders in init: a scheme of our own would never be asked. An argument of an
// unknown name is then a start-up error that names it, not a setting that silently does
// nothing. There is one version, so the same types are the internal ones.
//
// Settings of the queue store, which all profiles share, are in QueueSortArgs
// only: upstream demands that these are equal in all profiles of a process.
package config
