// +k8s:deepcopy-gen=package
// +groupName=kubescheduler.config.k8s.io

// Package config holds the internal types of the plugin arguments: what a
// KubeSchedulerConfiguration says under pluginConfig, decoded, defaulted and
// ready for a plugin factory.
//
//	pluginConfig:
//	- name: QueueSort          # decoded as QueueSortArgs
//	  args: {window: 128}
//
// Start reading at types.go. The packages below:
//
//   - v1 is what users write: pointers, JSON names, defaults.
//   - validation returns every mistake at once, each with its field.
//   - scheme makes the strict codecs; import it (blank) in a binary.
//
// The kinds live in upstream's group, because the scheduler decodes the
// arguments of plugin X as kind XArgs of that group. Registration therefore
// adds to upstream's own scheme builders in init: a scheme of our own would
// never be asked. An argument of an unknown name is then a start-up error that
// names it, not a setting that silently does nothing.
//
// Settings of the queue store, which all profiles share, are in QueueSortArgs
// only: upstream demands that these are equal in all profiles of a process.
package config
