package reference

// mapping is a mapping of queues.yaml, whose keys a section of the page lists.
type mapping struct {
	// title is that of the section.
	title string
	// frame is a document with "%s" in place of the content of the mapping, and needs are
	// keys, as YAML, without which it is invalid.
	frame string
	needs []string
	// examples have each key with a value, as YAML in one line, maybe followed by other
	// keys that it needs.
	examples []string
}

const (
	queueFrame = "partitions: [{queues: [{%s}]}]"
	rootFrame  = "partitions: [{%s}]"
)

// mappings are all mappings of queues.yaml from the outside to the inside.
func mappings() []mapping {
	return []mapping{
		{"Document", "{%s}", nil, []string{"partitions: [{queues: [{name: a}]}]"}},
		{"Partition", rootFrame, []string{"queues: [{name: a}]"}, []string{
			"name: default", "queues: [{name: a}]", "placementrules: [{name: provided}]", "limits: [{users: [ann], maxapplications: 1}]",
			"preemption: {enabled: false}", "nodesortpolicy: {type: fair}", "usergroupresolver: {type: os}",
		}},
		{"Queue", queueFrame, []string{"name: a"}, []string{
			"name: a", "parent: true", "resources: {max: {vcore: 2}}", "maxapplications: 3", "properties: {preemption.policy: fence}",
			"submitacl: \"ann,bob dev\"", "adminacl: ann", "childtemplate: {maxapplications: 2}, parent: true",
			"limits: [{users: [ann], maxapplications: 1}]", "queues: [{name: b}]",
		}},
		{"Resources of a queue", "partitions: [{queues: [{name: a, resources: {%s}}]}]", nil, []string{
			"guaranteed: {vcore: 4, memory: 16Gi}", "max: {vcore: 8, nvidia.com/gpu: 2}",
		}},
		{"Child template", "partitions: [{queues: [{name: a, parent: true, childtemplate: {%s}}]}]", nil, []string{
			"maxapplications: 3", "properties: {preemption.delay: 5s}", "resources: {max: {vcore: 2}}",
		}},
		{"Limit of users and groups", "partitions: [{queues: [{name: a, limits: [{%s}]}]}]", []string{"users: [ann]", "maxapplications: 2"}, []string{
			"limit: what ann may use", "users: [ann]", "groups: [dev]", "maxresources: {vcore: 2}", "maxapplications: 2",
		}},
		{"Placement rule", "partitions: [{queues: [{name: a}], placementrules: [{%s}]}]", []string{"name: user", "create: true"}, []string{
			"name: user", "create: true", "value: root.a, name: fixed", "filter: {users: [ann]}", "parent: {name: user, create: true}",
		}},
		{
			"Filter of a placement rule", "partitions: [{queues: [{name: a}], placementrules: [{name: user, create: true, filter: {%s}}]}]", []string{"groups: [dev]"},
			[]string{"type: deny", "users: [ann]", "groups: [dev]"},
		},
		{"Preemption of a partition", "partitions: [{queues: [{name: a}], preemption: {%s}}]", nil, []string{"enabled: false", "quotapreemptionenabled: true"}},
		{"Node sort policy", "partitions: [{queues: [{name: a}], nodesortpolicy: {%s}}]", nil, []string{"type: fair", "resourceweights: {vcore: 1.5}"}},
		{"User and group resolver", "partitions: [{queues: [{name: a}], usergroupresolver: {%s}}]", nil, []string{"type: os"}},
	}
}

// otherValues are, by property of a queue, values other than the default.
var otherValues = map[string]string{
	"application.sort.policy": "fair", "application.sort.priority": "disabled",
	"priority.policy": "fence", "priority.offset": "10",
	"preemption.policy": "fence", "preemption.delay": "5s",
	"application.unschedasks.backoff": "3", "application.unschedasks.backoff.delay": "10s", "quota.preemption.delay": "10s",
}
