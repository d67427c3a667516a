//go:build perf

package perf

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
)

// BenchmarkOurs runs what upstream has no case for. Where upstream can do the same,
// or the same without what waits, base is that. Of Readers, base is ours without
// them.
func BenchmarkOurs(b *testing.B) {
	for _, c := range []struct {
		name       string
		base, ours side
	}{
		{"Queues", side{baseConfiguration, writer.workload, queues, 0}, side{ourConfiguration, writer.workload, queues, 0}},
		{"HeldBack", side{baseConfiguration, writer.gated, queues, 0}, side{ourConfiguration, writer.heldBack, queues, 0}},
		{"Reclaim", side{baseConfiguration, writer.upstreamReclaim, queues, 0}, side{ourConfiguration, writer.reclaim, queues, 0}},
		{"RollOut", side{baseConfiguration, writer.rollOut, queues, 0}, side{ourConfiguration, writer.rollOut, queues, 0}},
		{"Readers", side{ourConfiguration, writer.read, readQueues, 0}, side{ourConfiguration, writer.read, readQueues, 10}},
	} {
		for name, s := range map[string]side{"base": c.base, "ours": c.ours} {
			b.Run(c.name+"/"+name, func(b *testing.B) { s.run(b, c.name) })
		}
	}
}

// side is one of the two schedulers that are compared.
type side struct {
	configuration string
	workload      func(w writer, scheduler string) string
	queues        int // in the configuration
	readers       int
}

func (s side) run(b *testing.B, name string) {
	w := writer{b, b.TempDir()}
	queues := w.write("queues.yaml", queuesDocument(s.queues))
	address := freeAddress(b)
	configuration := strings.Replace(fmt.Sprintf(s.configuration, queues), `restAddress: ""`, fmt.Sprintf("restAddress: %q", address), 1)
	ctx, stop := context.WithCancel(b.Context())
	var readers sync.WaitGroup
	answers := make([]int, s.readers)
	for i := range s.readers {
		readers.Go(func() { answers[i] = poll(ctx, "http://"+address, i) })
	}
	file := w.write("cases.yaml", s.workload(w, w.write("scheduler.yaml", configuration)))
	cpu.measure(b, func() { perf.RunBenchmarkPerfScheduling(b, file, name, registry()) })
	stop()
	readers.Wait()
	for i, n := range answers {
		if n == 0 {
			b.Errorf("reader %d got no answer", i)
		}
	}
}

// polled are what readers ask for, by turns: what yunikorn-web shows, and our own.
var polled = []string{
	"/ws/v1/partition/default/queues", "/ws/v1/partition/default/nodes", "/ws/v1/partition/default/applications/active",
	"/ws/v1/partitions", "/ws/v1/scheduler/healthcheck", "/ws/v1/metrics", "/ws/v1/events/batch", "/api/v1/decisions", "/api/v1/holds", "/", "/waiting",
	"/ws/v1/fullstatedump", "/ws/v1/partition/default/queue/root?subtree", "/nodes", "/ws/v1/partition/default/usage/users",
}

// poll asks for a page a second until the end, and returns how many it got.
func poll(ctx context.Context, url string, reader int) (answers int) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for i := reader; ; i++ {
		select {
		case <-ctx.Done():
			return answers
		case <-tick.C:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+polled[i%len(polled)], nil)
		if err != nil {
			return 0
		}
		// Said here it is left to us to unpack, which is a reader's work and not that
		// of the machine that schedules.
		request.Header.Set("Accept-Encoding", "gzip")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			continue // it has not begun, or has ended
		}
		if _, err := io.Copy(io.Discard, answer.Body); err == nil && answer.StatusCode == http.StatusOK {
			answers++
		}
		_ = answer.Body.Close()
	}
}

func freeAddress(b *testing.B) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// Sizes of our cases.
const (
	heldPods     = 20000 // over the max of their queue
	otherPods    = 5000
	reclaimed    = 1000 // pods that make room
	rollOutNodes = 1000
	readQueues   = 5000
	readNodes    = 1000
)

// read schedules 5,000 pods of 100 of the queues that people read about.
func (w writer) read(scheduler string) string {
	return w.story("Readers", scheduler, readNodes, nil, w.spread(otherPods))
}

// heldBack schedules 5,000 pods of many queues after 20,000 came whose queue may run
// none of them.
func (w writer) heldBack(scheduler string) string { return w.behind(scheduler, "") }

// gated is the same with what upstream has to hold pods back.
func (w writer) gated(scheduler string) string {
	return w.behind(scheduler, "  schedulingGates: [{name: example.com/later}]\n")
}

func (w writer) behind(scheduler, more string) string {
	held := fmt.Sprintf("  - {opcode: createPods, count: %d, namespace: held, podTemplatePath: %s, skipWaitToCompletion: true}\n",
		heldPods, w.podOf("held", "root.closed", "100m", more))
	return w.story("HeldBack", scheduler, otherPods/25, []string{held}, w.spread(otherPods))
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
			w.template(fmt.Sprintf("daemon-%d", i), "root.department-0.team-0", "10m", daemonSet, affinity)))
	}
	return w.named("RollOut", scheduler, rollOutNodes, pods)
}

// daemonSet makes a pod that of a DaemonSet: metadata of its template. There is none, and
// scheduler_perf collects garbage: of the kinds it knows it would delete all that have an
// owner who is not there.
const daemonSet = "  ownerReferences: [{apiVersion: paddock.io/v1, kind: DaemonSet, name: agents, uid: agents, controller: true}]\n"

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
	return w.template(file, queue, cpu, "", more)
}

// template is podOf with further lines of the metadata, too.
func (w writer) template(file, queue, cpu, metadata, more string) string {
	return w.write(file+".yaml", fmt.Sprintf(`
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
`, queue, file, metadata, more, cpu))
}
