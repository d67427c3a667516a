//go:build perf

package perf

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/ktesting"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

// BenchmarkOurs runs the cases that upstream does not have. If upstream can do the same,
// or the same without the waiting pods, base is that. For Readers, base is ours without
// readers.
func BenchmarkOurs(b *testing.B) {
	for _, c := range []struct {
		name       string
		base, ours side
	}{
		{"Queues", side{configuration: baseConfiguration, operations: writer.backlog}, side{configuration: ourConfiguration, operations: writer.backlog}},
		{"QueuesCreated", side{configuration: baseConfiguration, operations: writer.created}, side{configuration: ourConfiguration, operations: writer.created}},
		{
			"HeldBack",
			side{configuration: baseConfiguration, operations: heldBack(schedulingGates), atEnd: heldHave(0)},
			side{configuration: ourConfiguration, operations: heldBack(""), atEnd: heldHave(fullPods)},
		},
		{
			"Reclaim",
			side{configuration: baseConfiguration, operations: reclaim("  priority: 1\n", "  priority: 10\n")},
			side{configuration: ourConfiguration, operations: reclaim("", "")},
		},
		{"RollOut", side{configuration: baseConfiguration, operations: writer.rollOut}, side{configuration: ourConfiguration, operations: writer.rollOut}},
		{
			"Readers",
			side{configuration: ourConfiguration, operations: writer.read, queues: readQueues},
			side{configuration: ourConfiguration, operations: writer.read, queues: readQueues, readers: 10},
		},
	} {
		for name, s := range map[string]side{"base": c.base, "ours": c.ours} {
			b.Run(c.name+"/"+name, func(b *testing.B) { s.run(b, c.name) })
		}
	}
}

// side is one of the two schedulers that are compared.
type side struct {
	configuration string
	operations    func(writer) string // of the case, in order
	queues        int                 // in the configuration, if not the usual number
	readers       int
	atEnd         func(ktesting.TContext) // checks the cluster at the end, if not nil
}

func (s side) run(b *testing.B, name string) {
	w := writer{b}
	queues := w.write("queues.yaml", queuesDocument(max(s.queues, usualQueues)))
	address := expect.Get(localcluster.FreeAddress())(b)
	configuration := strings.Replace(fmt.Sprintf(s.configuration, queues), `restAddress: ""`, fmt.Sprintf("restAddress: %q", address), 1)
	scheduler := w.write("scheduler.yaml", configuration)
	file := w.write("cases.yaml", fmt.Sprintf(`
- name: %s
  schedulerConfigPath: %s
  workloadTemplate:
%s  workloads:
  - {name: %[1]s, params: {}}
`, name, scheduler, s.operations(w)))
	whileRead(b, s.readers, address, func() { measure(b, file, name, s.atEnd) })
}

// Sizes of our cases.
const (
	usualNodes   = 500
	usualQueues  = 1000
	backlogPods  = 5000
	warmUpPods   = 500
	createdPods  = 3000
	fullPods     = 100 // pods that fill a queue
	endedASecond = 20  // filling pods that end
	heldPods     = 20000
	otherPods    = 5000
	reclaimed    = 1000 // victims
	rollOutNodes = 1000
	rollOuts     = 3 // pods for each of these
	readQueues   = 5000
	readNodes    = 1000
)

// backlog makes all pods wait, each tried in vain on the only node, which is
// unschedulable. Then nodes are added, and the measured part is how the scheduler works
// off the backlog: no pods are created meanwhile.
func (w writer) backlog() string {
	return w.createNodes(1, "closed", "  unschedulable: true\n") +
		createPods(backlogPods, measuredPods, w.podsOfTeams(backlogPods/usualQueues)) +
		"  - {opcode: barrier, namespaces: [" + measuredPods + "], stageRequirement: Attempted}\n" +
		"  - {opcode: sleep, duration: 2s}\n" + // the first back-off is one second
		begin + w.createNodes(usualNodes, numbered, "") + end
}

// created is upstream's SchedulingBasic with the pods spread over the queues: one
// operation creates them while they are scheduled.
func (w writer) created() string {
	return w.createNodes(usualNodes, numbered, "") +
		createPods(warmUpPods, "warm-up", w.podsOfTeams(1)) + await("warm-up") +
		begin + createPods(createdPods, measuredPods, w.podsOfTeams(createdPods/usualQueues)) + end
}

// read schedules 5,000 pods of 100 of the queues that are read over REST.
func (w writer) read() string {
	return w.createNodes(readNodes, numbered, "") +
		begin + createPods(otherPods, measuredPods, w.podsOfTeams(50)) + end
}

// heldBack schedules 5,000 pods of 100 queues while 20,000 pods with this in their spec wait
// for a full queue. The pods that fill it end meanwhile, and each time it admits the next.
func heldBack(spec string) func(writer) string {
	return func(w writer) string {
		return w.createNodes(otherPods/25, numbered, "") +
			createPods(fullPods, "full", w.podOf("filling", "root.full", "100m", "", "")) + await("full") +
			createPods(heldPods, "held", w.podOf("held", "root.full", "100m", "", spec)) +
			begin +
			fmt.Sprintf("  - {opcode: deletePods, namespace: full, deletePodsPerSecond: %d, skipWaitToCompletion: true}\n", endedASecond) +
			createPods(otherPods, measuredPods, w.podsOfTeams(50)) + end
	}
}

// schedulingGates hold pods back in upstream's scheduler. None of them is opened: ours has
// so many more pods to schedule.
const schedulingGates = "  schedulingGates: [{name: example.com/later}]\n"

// heldHave checks that exactly so many of the held-back pods have a node.
func heldHave(want int) func(ktesting.TContext) {
	return func(tCtx ktesting.TContext) {
		pods, err := tCtx.Client().CoreV1().Pods("held").List(tCtx, metav1.ListOptions{})
		tCtx.ExpectNoError(err, "list pods")
		tCtx.ExpectNoError(wrongHeld(pods.Items, heldPods, want))
	}
}

// reclaim fills all nodes with pods of one team and then creates pods of another team
// that has the guarantee: each of these needs the room of one pod. For upstream, which
// takes room by priority, the specs of both have one.
func reclaim(fill, come string) func(writer) string {
	return func(w writer) string {
		return w.createNodes(reclaimed/2, numbered, "") +
			createPods(reclaimed, "occupied", w.podOf("borrower", "root.borrower", "2", "", fill)) + await("occupied") +
			begin + createPods(reclaimed, measuredPods, w.podOf("owner", "root.owner", "2", "", come)) + end
	}
}

// rollOut creates pods of three DaemonSets, one of each for each node, as their
// controller does. The DaemonSets do not exist, and scheduler_perf collects garbage: of
// the kinds that it knows it would delete all objects with a missing owner.
func (w writer) rollOut() string {
	owner := fmt.Sprintf("  ownerReferences: [{apiVersion: paddock.io/v1, kind: DaemonSet, "+
		"name: \"agents-{{div .Index %[1]d}}\", uid: \"agents-{{div .Index %[1]d}}\", controller: true}]\n", rollOutNodes)
	affinity := fmt.Sprintf("  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "+
		"{nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node-{{mod .Index %d}}]}]}]}}}\n", rollOutNodes)
	daemon := w.podOf("daemon", "root.department-0.team-0", "10m", owner, affinity)
	return w.createNodes(rollOutNodes, numbered, "") +
		begin + createPods(rollOuts*rollOutNodes, measuredPods, daemon) + end
}
