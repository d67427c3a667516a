//go:build perf

package perf

import (
	"fmt"
	"strings"
	"testing"

	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
)

// BenchmarkOurs runs what upstream has no case for. Where upstream can do the same,
// or the same without what waits, base is that.
func BenchmarkOurs(b *testing.B) {
	for _, c := range []struct {
		name        string
		base, ours  func(w writer, scheduler string) string
		baseProfile string
	}{
		{"Queues", writer.workload, writer.workload, baseConfiguration},
		{"HeldBack", writer.others, writer.heldBack, baseConfiguration},
		{"Reclaim", writer.upstreamReclaim, writer.reclaim, baseConfiguration},
		{"RollOut", writer.rollOut, writer.rollOut, baseConfiguration},
	} {
		for side, workload := range map[string]func(writer, string) string{"base": c.base, "ours": c.ours} {
			configuration := c.baseProfile
			if side == "ours" {
				configuration = ourConfiguration
			}
			b.Run(c.name+"/"+side, func(b *testing.B) {
				w := writer{b, b.TempDir()}
				queues := w.write("queues.yaml", queuesDocument())
				scheduler := w.write("scheduler.yaml", fmt.Sprintf(configuration, queues))
				perf.RunBenchmarkPerfScheduling(b, w.write("cases.yaml", workload(w, scheduler)), c.name, registry())
			})
		}
	}
}

// Sizes of our cases.
const (
	heldPods     = 20000 // over the max of their queue
	otherPods    = 5000
	reclaimed    = 1000 // pods that make room
	rollOutNodes = 1000
)

// others schedules 5,000 pods of many queues.
func (w writer) others(scheduler string) string {
	return w.story("Others", scheduler, otherPods/50, nil, w.spread(otherPods))
}

// heldBack does the same after 20,000 pods came whose queue may run none of them.
func (w writer) heldBack(scheduler string) string {
	held := fmt.Sprintf("  - {opcode: createPods, count: %d, namespace: held, podTemplatePath: %s, skipWaitToCompletion: true}\n",
		heldPods, w.podOf("held", "root.closed", "100m", ""))
	return w.story("HeldBack", scheduler, otherPods/50, []string{held}, w.spread(otherPods))
}

// reclaim fills all nodes with pods of one team and lets another come that has the
// guarantee: each of its pods needs the room of one.
func (w writer) reclaim(scheduler string) string {
	fill := fmt.Sprintf("  - {opcode: createPods, count: %d, namespace: full, podTemplatePath: %s}\n",
		reclaimed, w.podOf("borrower", "root.borrower", "2", ""))
	come := fmt.Sprintf("  - {opcode: createPods, count: %d, namespace: perf-0, podTemplatePath: %s, skipWaitToCompletion: true}\n",
		reclaimed, w.podOf("owner", "root.owner", "2", ""))
	return w.story("Reclaim", scheduler, reclaimed/2, []string{fill}, []string{come})
}

// upstreamReclaim is the same for upstream, whose pods take room by priority.
func (w writer) upstreamReclaim(scheduler string) string {
	fill := fmt.Sprintf("  - {opcode: createPods, count: %d, namespace: full, podTemplatePath: %s}\n",
		reclaimed, w.podOf("low", "root.borrower", "2", "  priority: 1\n"))
	come := fmt.Sprintf("  - {opcode: createPods, count: %d, namespace: perf-0, podTemplatePath: %s, skipWaitToCompletion: true}\n",
		reclaimed, w.podOf("high", "root.owner", "2", "  priority: 10\n"))
	return w.story("Reclaim", scheduler, reclaimed/2, []string{fill}, []string{come})
}

// rollOut brings one pod for each node, as the controller of DaemonSets makes them.
func (w writer) rollOut(scheduler string) string {
	var pods []string
	for i := range rollOutNodes {
		affinity := fmt.Sprintf("  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "+
			"{nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [%s]}]}]}}}\n", nodeName(i))
		pods = append(pods, fmt.Sprintf("  - {opcode: createPods, count: 1, namespace: perf-0, podTemplatePath: %s, skipWaitToCompletion: true}\n",
			w.podOf(fmt.Sprintf("daemon-%d", i), "root.department-0.team-0", "10m", affinity)))
	}
	return w.named("RollOut", scheduler, rollOutNodes, pods)
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// spread is so many pods in portions of 50 to a queue.
func (w writer) spread(pods int) []string {
	var ops []string
	for i := range pods / 50 {
		ops = append(ops, fmt.Sprintf("  - {opcode: createPods, count: 50, namespace: perf-0, podTemplatePath: %s, skipWaitToCompletion: true}\n", w.pod(i)))
	}
	return ops
}

// story is a case: so many equal nodes, what is there before, and what is measured.
func (w writer) story(name, scheduler string, nodes int, before, measured []string) string {
	node := w.write("node.yaml", fmt.Sprintf(nodeTemplate, "generateName: node-"))
	return w.assemble(name, scheduler, fmt.Sprintf("  - {opcode: createNodes, count: %d, nodeTemplatePath: %s}\n", nodes, node), before, measured)
}

// named is a case whose nodes have names of their own.
func (w writer) named(name, scheduler string, nodes int, measured []string) string {
	var all strings.Builder
	for i := range nodes {
		node := w.write(fmt.Sprintf("node-%d.yaml", i), fmt.Sprintf(nodeTemplate, "name: "+nodeName(i)))
		fmt.Fprintf(&all, "  - {opcode: createNodes, count: 1, nodeTemplatePath: %s}\n", node)
	}
	return w.assemble(name, scheduler, all.String(), nil, measured)
}

const nodeTemplate = `
apiVersion: v1
kind: Node
metadata: {%s}
status:
  capacity: {pods: "110", cpu: "4", memory: 32Gi}
  conditions: [{status: "True", type: Ready}]
  phase: Running
`

func (w writer) assemble(name, scheduler, nodes string, before, measured []string) string {
	return fmt.Sprintf(`
- name: %s
  schedulerConfigPath: %s
  defaultPodTemplatePath: %s
  workloadTemplate:
%s  - {opcode: createNamespaces, prefix: perf, count: 1}
%s  - {opcode: startCollectingMetrics, name: perf, namespaces: [perf-0]}
%s  - {opcode: barrier, namespaces: [perf-0]}
  - {opcode: stopCollectingMetrics}
  workloads:
  - {name: %s, params: {}}
`, name, scheduler, w.pod(0), nodes, strings.Join(before, ""), strings.Join(measured, ""), name)
}

// podOf writes the template of pods of a queue; more is further lines of the spec.
func (w writer) podOf(file, queue, cpu, more string) string {
	return w.write(file+".yaml", fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  generateName: pod-
  labels: {queue: %s, applicationId: %s}
spec:
  schedulerName: yunikorn
  terminationGracePeriodSeconds: 0
%s  containers:
  - name: pause
    image: registry.k8s.io/pause:3.10.1
    resources:
      requests: {cpu: %s, memory: 100Mi}
`, queue, file, more, cpu))
}
