package documents

import (
	"cmp"
	"encoding/json"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// Config is the configuration in force as YuniKorn's interface shows it: what
// the document says, not what follows from it. Its names are in lower case as YAML,
// and as they are here as JSON.
type Config struct {
	Partitions []ConfigPartition
	Checksum   string `yaml:",omitempty" json:",omitempty"`
}

// ConfigPartition is a partition of the document.
type ConfigPartition struct {
	Name              string
	Queues            []ConfigQueue
	PlacementRules    []ConfigRule      `yaml:",omitempty" json:",omitempty"`
	Limits            []ConfigLimit     `yaml:",omitempty" json:",omitempty"`
	Preemption        ConfigPreemption  `yaml:",omitempty" json:",omitempty"`
	NodeSortPolicy    ConfigNodeSort    `yaml:",omitempty" json:",omitempty"`
	UserGroupResolver map[string]string `yaml:",omitempty" json:",omitempty"`
}

// ConfigQueue is a queue of the document. Amounts are written as they are there.
type ConfigQueue struct {
	Name            string
	Parent          bool              `yaml:",omitempty" json:",omitempty"`
	Resources       ConfigResources   `yaml:",omitempty" json:",omitempty"`
	MaxApplications uint64            `yaml:",omitempty" json:",omitempty"`
	Properties      map[string]string `yaml:",omitempty" json:",omitempty"`
	AdminACL        string            `yaml:",omitempty" json:",omitempty"`
	SubmitACL       string            `yaml:",omitempty" json:",omitempty"`
	ChildTemplate   ConfigTemplate    `yaml:",omitempty" json:",omitempty"`
	Queues          []ConfigQueue     `yaml:",omitempty" json:",omitempty"`
	Limits          []ConfigLimit     `yaml:",omitempty" json:",omitempty"`
}

// ConfigResources are the quotas of a queue.
type ConfigResources struct {
	Guaranteed map[string]string `yaml:",omitempty" json:",omitempty"`
	Max        map[string]string `yaml:",omitempty" json:",omitempty"`
}

// ConfigTemplate is a child template.
type ConfigTemplate struct {
	MaxApplications uint64            `yaml:",omitempty" json:",omitempty"`
	Properties      map[string]string `yaml:",omitempty" json:",omitempty"`
	Resources       ConfigResources   `yaml:",omitempty" json:",omitempty"`
}

// ConfigLimit is a limit of users and groups.
type ConfigLimit struct {
	Limit           string
	Users           []string          `yaml:",omitempty" json:",omitempty"`
	Groups          []string          `yaml:",omitempty" json:",omitempty"`
	MaxResources    map[string]string `yaml:",omitempty" json:",omitempty"`
	MaxApplications uint64            `yaml:",omitempty" json:",omitempty"`
}

// ConfigRule is a placement rule.
type ConfigRule struct {
	Name   string
	Create bool         `yaml:",omitempty" json:",omitempty"`
	Filter ConfigFilter `yaml:",omitempty" json:",omitempty"`
	Parent *ConfigRule  `yaml:",omitempty" json:",omitempty"`
	Value  string       `yaml:",omitempty" json:",omitempty"`
}

// ConfigFilter is the filter of a rule.
type ConfigFilter struct {
	Type   string
	Users  []string `yaml:",omitempty" json:",omitempty"`
	Groups []string `yaml:",omitempty" json:",omitempty"`
}

// ConfigPreemption switches preemption.
type ConfigPreemption struct {
	Enabled                *bool `yaml:",omitempty" json:",omitempty"`
	QuotaPreemptionEnabled *bool `yaml:",omitempty" json:",omitempty"`
}

// ConfigNodeSort is accepted, and has no effect here.
type ConfigNodeSort struct {
	Type            string
	ResourceWeights map[string]float64 `yaml:",omitempty" json:",omitempty"`
}

// ConfigDocuments is the document in force as people are shown it, kept because reading
// one with thousands of queues takes longer than answering may.
type ConfigDocuments struct {
	mu         locks.Mutex // guards the rest, and has one document read at a time
	spec       *config.Spec
	yaml, json []byte
	err        error
}

// Of returns the document of a configuration in both forms.
func (d *ConfigDocuments) Of(spec *config.Spec) (asYAML, asJSON []byte, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.spec != spec {
		d.spec = spec
		d.yaml, d.json, d.err = render(spec)
	}
	return d.yaml, d.json, d.err
}

func render(spec *config.Spec) (asYAML, asJSON []byte, err error) {
	document, err := documentOf(spec)
	if err != nil {
		return nil, nil, err
	}
	if asYAML, err = yaml.Marshal(document); err != nil {
		return nil, nil, err
	}
	asJSON, err = json.Marshal(document)
	return asYAML, asJSON, err
}

// documentOf reads the document of a configuration, which was found valid before.
func documentOf(spec *config.Spec) (*Config, error) {
	document := cmp.Or(spec.Document, config.DefaultDocument)
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(document), &node); err != nil {
		return nil, err
	}
	writeOut(&node)
	var out Config
	if err := node.Decode(&out); err != nil {
		return nil, err
	}
	out.Checksum = cmp.Or(spec.Checksum, config.Checksum([]byte(document)))
	return &out, nil
}

// writeOut puts what an alias stands for in its place. The library refuses to decode a document
// that has many values by aliases; that of a configuration is bounded, aliases written out.
func writeOut(n *yaml.Node) {
	for i, c := range n.Content {
		if c.Kind == yaml.AliasNode {
			n.Content[i] = c.Alias // which is written out where it is
		} else {
			writeOut(c)
		}
	}
}

// HasConfig tells whether a configuration is in force. A scheduler that has not read one yet
// has none.
func HasConfig(v *inventory.View) bool { return v.Started || v.Spec.Document != "" }

// Validation is the answer to a document that was sent for validation.
type Validation struct {
	Allowed bool `json:"allowed"`
	// Reason has all errors, a line each; empty for none.
	Reason string `json:"reason"`
	// Warnings are what would have no effect.
	Warnings []string `json:"warnings,omitempty"`
}
