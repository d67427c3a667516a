//go:build perf

package perf

import (
	"fmt"
	"strings"
)

// baseConfiguration is upstream's scheduler under our profile's name, so that
// the pods are the same. It has no use for the file of queues.
const baseConfiguration = `# %s
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: yunikorn
`

// managedPlugins are the plugins of a profile whose pods belong to queues.
const managedPlugins = `    queueSort: {enabled: [{name: QueueSort}], disabled: [{name: "*"}]}
    preEnqueue: {enabled: [{name: QueueSort}]}
    preFilter: {enabled: [{name: QueuePreemption}]}
    filter: {enabled: [{name: NodeReservation}]}
    postFilter: {enabled: [{name: QueuePreemption}, {name: DynamicResources}], disabled: [{name: "*"}]}
    reserve: {enabled: [{name: NodeReservation}]}
    permit: {enabled: [{name: NodeReservation}]}
    postBind: {enabled: [{name: NodeReservation}]}
`

// ourConfiguration is manifests/config/second-scheduler.yaml with queues from a
// file, without REST, and without series for each queue: scheduler_perf reads all
// metrics once a second in the measured part, as no Prometheus does, and that
// would be most of what it measures.
const ourConfiguration = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: yunikorn
  plugins:
` + managedPlugins + `  pluginConfig:
  - name: QueueSort
    args: {managedProfiles: [yunikorn], configFile: "%s", restAddress: "", metricsQueues: 0}
`

// queuesDocument has departments of teams, each with a guarantee and a max, so
// that every rule has something to look at.
func queuesDocument(queues int) string {
	var y strings.Builder
	y.WriteString(`partitions:
- name: default
  placementrules: [{name: provided}]
  queues:
  - name: root
    submitacl: "*"
    queues:
`)
	y.WriteString("    - {name: closed, resources: {max: {vcore: 1m}}}\n")
	y.WriteString("    - {name: borrower, properties: {preemption.delay: 1s}}\n")
	y.WriteString("    - {name: owner, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 100000}}}\n")
	for d := range queues / 50 {
		fmt.Fprintf(&y, "    - name: department-%d\n      resources: {max: {vcore: 100000, memory: 100Ti}}\n      queues:\n", d)
		for t := range 50 {
			fmt.Fprintf(&y, "      - {name: team-%d, resources: {guaranteed: {vcore: 1, memory: 1Gi}, max: {vcore: 1000, memory: 1Ti}}}\n", 50*d+t)
		}
	}
	return y.String()
}

func queueName(i int) string { return fmt.Sprintf("root.department-%d.team-%d", i/50, i) }

// workload is upstream's SchedulingBasic with the pods spread over the queues.
// Upstream's pod-default.yaml and node-default.yaml are written out because a
// pod needs its queue.
func (w writer) workload(scheduler string) string {
	node := w.write("node.yaml", fmt.Sprintf(nodeTemplate, "generateName: node-"))
	var y strings.Builder
	fmt.Fprintf(&y, `
- name: Queues
  schedulerConfigPath: %s
  defaultPodTemplatePath: %s
  workloadTemplate:
  - {opcode: createNodes, count: %d, nodeTemplatePath: %s}
  - {opcode: createPods, count: %d, namespace: warm-up}
  - {opcode: createNamespaces, prefix: perf, count: 1}
  - {opcode: startCollectingMetrics, name: perf, namespaces: [perf-0]}
`, scheduler, w.pod(0), nodes, node, warmUpPods)
	for i := range queues {
		fmt.Fprintf(&y, "  - {opcode: createPods, count: %d, namespace: perf-0, podTemplatePath: %s, skipWaitToCompletion: true}\n",
			podsPerQueue, w.pod(i))
	}
	fmt.Fprint(&y, `
  - {opcode: barrier, namespaces: [perf-0]}
  - {opcode: stopCollectingMetrics}
  workloads:
  - {name: 500Nodes, params: {}}
`)
	return y.String()
}

// pod writes the template of the pods of a queue.
func (w writer) pod(queue int) string {
	return w.write(fmt.Sprintf("pod-%d.yaml", queue), fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  generateName: pod-
  labels: {queue: %s, applicationId: application-%d}
spec:
  schedulerName: yunikorn
  containers:
  - name: pause
    image: registry.k8s.io/pause:3.10.1
    ports: [{containerPort: 80}]
    resources:
      limits: {cpu: 100m, memory: 500Mi}
      requests: {cpu: 100m, memory: 500Mi}
`, queueName(queue), queue))
}
