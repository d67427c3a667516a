package reference

import (
	"fmt"
	"strings"
)

const head = `# Configuration

<!-- Made from apis/config/types.go and internal/reference: go test ./internal/reference -rewrite -->

There are three places: the [arguments](#arguments) of the plugins, which the scheduler reads when it starts; [queues.yaml](#queuesyaml), which it reads again whenever
it changes; and [labels and annotations](#labels-and-annotations) of pods, PriorityClasses and namespaces.

## Arguments

They are in the KubeSchedulerConfiguration, the file that ` + "`--config`" + ` names, under ` + "`pluginConfig`" + ` of a profile. Every one has a default, an unknown one is an error, and a
configuration with errors ends the scheduler at its start, with all of them. Durations are written as ` + "`500ms`, `30s`, `10m`, `1h30m`" + `.

` + "```yaml" + `
pluginConfig:
- name: QueueSort
  args:
    restAddress: 0.0.0.0:9080
- name: QueuePreemption
  args:
    maxVictimsPerRound: 50
` + "```" + `

All flags of kube-scheduler work. The environment variable ` + "`POD_NAMESPACE`" + ` says where the ConfigMaps of the queues are, unless ` + "`configNamespace`" + ` does.
`

const coscheduling = `
### Coscheduling

It is upstream's, of sigs.k8s.io/scheduler-plugins, and in the configuration only where PodGroups are ([install](install.md#with-podgroups)). Arguments and defaults are its own; what is shipped sets two of them.

| argument | type | default | shipped | meaning |
|---|---|---|---|---|
| ` + "`permitWaitingTimeSeconds`" + ` | whole number | 60 | 60 | How long the places of members are kept for a PodGroup that is not complete, where it does not say so itself (` + "`scheduleTimeoutSeconds`" + `). |
| ` + "`podGroupRejectPercentage`" + ` | whole number | 10 | 0 | If a member finds no node, the others give their places back at once, unless at most so many percent of minMember are missing. With 0 they always do; but not while QueuePreemption makes room for the member. |
| ` + "`podGroupBackoffSeconds`" + ` | whole number | 0 | not set | How long a PodGroup that gave its places back is not tried again. |
`

const queuesHead = `
## queues.yaml

It is the value of key ` + "`queues.yaml`" + ` of ConfigMap ` + "`yunikorn-configs`" + `, or, where that has none, of ` + "`yunikorn-defaults`" + `. Key ` + "`service.policyGroup`" + ` can give it another name, and ` + "`queues.yaml.gz`" + ` under
` + "`binaryData`" + ` is unpacked. Key ` + "`service.clusterId`" + ` is the name of the cluster on YuniKorn's pages. All other keys of the two ConfigMaps are YuniKorn's service options; they have no effect here, and the log says so once. Where neither ConfigMap exists, each namespace gets a queue of its own, without quota. A ConfigMap without the document, or with an empty one, is a mistake, as is a document that goes: the last one stays in force, and none at the start means that no pod of a queue is scheduled. Where the document of ` + "`yunikorn-configs`" + ` goes, that of ` + "`yunikorn-defaults`" + ` does not take its place before a restart: write it to ` + "`yunikorn-configs`" + `, if that is meant. A deliberate configuration without queues is a document, too: ` + "`" + `partitions: [{name: default, placementrules: [{name: tag, value: namespace, create: true}], queues: [{name: root, submitacl: '*'}]}]` + "`" + `.

The format is YuniKorn's. Keys are in lower case; an unknown key, or a key twice, is an error. A document with an error is refused as a whole, with every error and its line, and the one before stays in force. Try it first:

` + "```sh" + `
kubectl-paddock config validate queues.yaml
` + "```" + `

Keys marked † are accepted because YuniKorn knows them, and have no effect; ` + "`config validate`" + ` warns of them.
`

const quantities = `
### Quantities

A whole number without sign, then one of ` + "`k M G T P E`" + ` (powers of 1,000) or ` + "`Ki Mi Gi Ti Pi Ei`" + ` (powers of 1,024), or none. ` + "`vcore`" + ` is CPU: ` + "`2`" + ` is two cores, ` + "`500m`" + ` half a core.
` + "`memory`" + ` and ` + "`ephemeral-storage`" + ` are in bytes, ` + "`pods`" + ` and everything else, such as ` + "`nvidia.com/gpu`" + `, is a count. Pods write ` + "`cpu`" + `, queues write ` + "`vcore`" + `.
`

const propertiesHead = `
### Properties of a queue

All values are text; numbers need no quotes. Queues have those of the queue above them unless noted. A value that cannot be read gives a warning, and the default is used; an unknown property is kept, has no effect, and gives a warning.
`

const marksHead = `
## Labels and annotations

`

// Page is the whole page.
func Page(arguments []Arguments) string {
	var b strings.Builder
	b.WriteString(head)
	for _, a := range arguments {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", a.Plugin, strings.Replace(a.About, a.Plugin+"Args", "They", 1))
		b.WriteString("| argument | type | default | bounds | meaning |\n|---|---|---|---|---|\n")
		for _, f := range a.Fields {
			row(&b, "`"+f.Name+"`", f.Type, f.Default, f.Bounds, f.Meaning)
		}
	}
	b.WriteString(coscheduling)
	b.WriteString(queuesHead)
	for _, s := range Sections() {
		fmt.Fprintf(&b, "\n### %s\n\n", s.Title)
		if s.About != "" {
			b.WriteString(s.About + "\n\n")
		}
		keyTable(&b, "key", s.Keys)
	}
	b.WriteString(quantities)
	b.WriteString(propertiesHead + "\n")
	keyTable(&b, "property", Properties())
	b.WriteString(marksHead)
	markTable(&b, Marks())
	b.WriteString("\nWritten by the scheduler:\n\n")
	markTable(&b, Conditions())
	return b.String()
}

func keyTable(b *strings.Builder, what string, keys []Key) {
	fmt.Fprintf(b, "| %s | type | default | meaning |\n|---|---|---|---|\n", what)
	for _, k := range keys {
		name := "`" + k.Name + "`"
		if k.Ignored {
			name += " †"
		}
		row(b, name, k.Type, k.Default, k.Meaning)
	}
}

func markTable(b *strings.Builder, marks []Mark) {
	b.WriteString("| name | on | as | meaning |\n|---|---|---|---|\n")
	for _, m := range marks {
		row(b, "`"+m.Name+"`", m.On, m.Form, m.Meaning)
	}
}

func row(b *strings.Builder, cells ...string) {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
		if c == "" {
			cells[i] = "-"
		}
	}
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}
