//go:build perf

package perf

import (
	"fmt"
	"strings"

	manifests "github.com/paddock-scheduler/paddock/manifests/config"
)

// baseConfiguration is upstream's scheduler under our profile's name, so that the pods
// are the same. It does not use the file of queues.
const baseConfiguration = `# %s
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: yunikorn
`

// ourConfiguration is manifests/config/second-scheduler.yaml, as shipped gives it.
var ourConfiguration = shipped(manifests.SecondScheduler)

// shipped is a configuration that is shipped, with queues from a file, without REST, and
// without series for each queue: scheduler_perf reads all metrics once a second in the
// measured part, as no Prometheus does, and that would be most of the measured time.
func shipped(configuration []byte) string {
	const args, more = "managedProfiles: [yunikorn]\n", `      configFile: "%[1]s"
      restAddress: ""
      metricsQueues: 0
`
	if !strings.Contains(string(configuration), args) {
		panic("no " + args + "in a shipped configuration")
	}
	return strings.ReplaceAll(string(configuration), args, args+more)
}

// queuesDocument has departments of teams with a max each, so that every rule has something to
// check. Every other team has a guarantee: a pod below one does not wait for other pods.
func queuesDocument(queues int) string {
	var y strings.Builder
	fmt.Fprintf(&y, `partitions:
- name: default
  placementrules: [{name: provided}]
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: full, resources: {max: {vcore: %dm}}}
    - {name: borrower, properties: {preemption.delay: 1s}}
    - {name: owner, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 100000}}}
`, 100*fullPods)
	for d := range queues / 50 {
		fmt.Fprintf(&y, "    - name: department-%d\n      resources: {max: {vcore: 100000, memory: 100Ti}}\n      queues:\n", d)
		for t := range 50 {
			guaranteed := []string{"guaranteed: {vcore: 1, memory: 1Gi}, ", ""}[t%2]
			fmt.Fprintf(&y, "      - {name: team-%d, resources: {%smax: {vcore: 1000, memory: 1Ti}}}\n", 50*d+t, guaranteed)
		}
	}
	return y.String()
}

// measuredPods is the namespace of the pods that are measured.
const measuredPods = "measured"

// Begin and end of the measured part.
const (
	begin = "  - {opcode: startCollectingMetrics, name: perf, namespaces: [" + measuredPods + "]}\n"
	end   = "  - {opcode: barrier, namespaces: [" + measuredPods + "]}\n  - {opcode: stopCollectingMetrics}\n"
)

// numbered is the name of nodes that are made together.
const numbered = "node-{{.Index}}"

// createNodes makes nodes one after the other. The rest of their template is upstream's
// node-default.yaml.
func (w writer) createNodes(count int, name, spec string) string {
	template := w.write("node.yaml", fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata: {name: "%s"}
spec:
%sstatus:
  capacity: {pods: "110", cpu: "4", memory: 32Gi}
  conditions: [{status: "True", type: Ready}]
  phase: Running
`, name, spec))
	return fmt.Sprintf("  - {opcode: createNodes, count: %d, nodeTemplatePath: %s}\n", count, template)
}

// createPods makes all pods and does not wait.
func createPods(count int, namespace, template string) string {
	return fmt.Sprintf("  - {opcode: createPods, count: %d, namespace: %s, podTemplatePath: %s, skipWaitToCompletion: true}\n", count, namespace, template)
}

// await waits until all pods of a namespace have a node.
func await(namespace string) string {
	return fmt.Sprintf("  - {opcode: barrier, namespaces: [%s]}\n", namespace)
}

// podsOfTeams writes a template for pods spread over the queues, so many per queue, an
// application in each. Otherwise it is upstream's pod-default.yaml, which is written out
// because a pod needs its queue.
func (w writer) podsOfTeams(each int) string {
	return w.write("pods.yaml", fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  generateName: pod-
  labels: {queue: "root.department-{{div .Index %d}}.team-{{div .Index %d}}", applicationId: "application-{{div .Index %[2]d}}"}
spec:
  schedulerName: yunikorn
  containers:
  - name: pause
    image: registry.k8s.io/pause:3.10.1
    ports: [{containerPort: 80}]
    resources:
      limits: {cpu: 100m, memory: 500Mi}
      requests: {cpu: 100m, memory: 500Mi}
`, 50*each, each))
}

// podOf writes the template of pods of a queue, all in one application, with further lines
// of the metadata and the spec.
func (w writer) podOf(application, queue, cpu, metadata, spec string) string {
	return w.write("pods.yaml", fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  generateName: pod-
  labels: {queue: %s, applicationId: %s}
%sspec:
  schedulerName: yunikorn
  terminationGracePeriodSeconds: 0
%s  containers:
  - name: pause
    image: registry.k8s.io/pause:3.10.1
    resources:
      requests: {cpu: %s, memory: 100Mi}
`, queue, application, metadata, spec, cpu))
}
