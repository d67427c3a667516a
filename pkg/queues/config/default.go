package config

// Default returns the configuration that applies where there is no document: every
// namespace gets a queue of its own below root when its first pod comes, and all users
// may submit.
func Default() *Spec {
	return &Spec{
		Root: &Queue{
			Name:       RootName,
			Path:       RootName,
			Properties: map[string]string{},
			Policies:   DefaultPolicies(),
			SubmitACL:  ACL{Everybody: true},
		},
		Rules:             []Rule{{Kind: RuleTag, Value: "namespace", Create: true}},
		PreemptionEnabled: true,
	}
}

// IsDefault tells whether the specification is [Default]: no document has been read.
func (s *Spec) IsDefault() bool { return s.Document == "" }

// DefaultDocument says the same as [Default] in a document.
const DefaultDocument = `partitions: [{name: default, placementrules: [{name: tag, value: namespace, create: true}], queues: [{name: root, submitacl: '*'}]}]`
