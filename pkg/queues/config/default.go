package config

// DefaultDocument says the same as [Default].
const DefaultDocument = `partitions: [{name: default, placementrules: [{name: tag, value: namespace, create: true}], queues: [{name: root, submitacl: '*'}]}]`

// Default returns the configuration that applies where there is no document: every
// namespace gets a queue of its own below root when its first pod comes, and all users
// may submit.
func Default() *Spec {
	spec, _ := Parse([]byte(DefaultDocument)) // it has no problems
	spec.Checksum, spec.Document = "", ""
	return spec
}

// IsDefault tells whether the specification is [Default]: no document has been read.
func (s *Spec) IsDefault() bool { return s.Document == "" }
