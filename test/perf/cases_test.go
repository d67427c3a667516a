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
		{"Queues", side{configuration: baseConfiguration, workload: writer.backlog}, side{configuration: ourConfiguration, workload: writer.backlog}},
		{"QueuesCreated", side{configuration: baseConfiguration, workload: writer.created}, side{configuration: ourConfiguration, workload: writer.created}},
		{
			"HeldBack",
			side{configuration: baseConfiguration, workload: writer.gated, atEnd: heldHave(0)},
			side{configuration: ourConfiguration, workload: writer.heldBack, atEnd: heldHave(fullPods)},
		},
		{"Reclaim", side{configuration: baseConfiguration, workload: writer.upstreamReclaim}, side{configuration: ourConfiguration, workload: writer.reclaim}},
		{"RollOut", side{configuration: baseConfiguration, workload: writer.rollOut}, side{configuration: ourConfiguration, workload: writer.rollOut}},
		{
			"Readers",
			side{configuration: ourConfiguration, workload: writer.read, queues: readQueues},
			side{configuration: ourConfiguration, workload: writer.read, queues: readQueues, readers: 10},
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
	workload      func(w writer, name, scheduler string) string
	queues        int // in the configuration, if not the usual number
	readers       int
	atEnd         func(ktesting.TContext) // checks the cluster at the end, if not nil
}

func (s side) run(b *testing.B, name string) {
	w := writer{b, b.TempDir()}
	queues := w.write("queues.yaml", queuesDocument(max(s.queues, usualQueues)))
	address := expect.Get(localcluster.FreeAddress())(b)
	configuration := strings.Replace(fmt.Sprintf(s.configuration, queues), `restAddress: ""`, fmt.Sprintf("restAddress: %q", address), 1)
	file := w.write("cases.yaml", s.workload(w, name, w.write("scheduler.yaml", configuration)))
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
func (w writer) backlog(name, scheduler string) string {
	return w.story(name, scheduler,
		createNodes(1, w.closedNode()),
		createPods(backlogPods, measuredPods, w.podsOfTeams(backlogPods/usualQueues)),
		"  - {opcode: barrier, namespaces: ["+measuredPods+"], stageRequirement: Attempted}\n",
		"  - {opcode: sleep, duration: 2s}\n", // the first back-off is one second
		begin, createNodes(usualNodes, w.equalNodes()), end)
}

// created is upstream's SchedulingBasic with the pods spread over the queues: one
// operation creates them while they are scheduled.
func (w writer) created(name, scheduler string) string {
	return w.story(name, scheduler,
		createNodes(usualNodes, w.equalNodes()),
		createPods(warmUpPods, "warm-up", w.podsOfTeams(1)), await("warm-up"),
		begin, createPods(createdPods, measuredPods, w.podsOfTeams(createdPods/usualQueues)), end)
}

// read schedules 5,000 pods of 100 of the queues that are read over REST.
func (w writer) read(name, scheduler string) string {
	return w.story(name, scheduler, createNodes(readNodes, w.equalNodes()),
		begin, createPods(otherPods, measuredPods, w.podsOfTeams(50)), end)
}

// heldBack schedules 5,000 pods of 100 queues while 20,000 pods of a full queue wait. The
// pods that fill it end meanwhile, and each time it admits the next.
func (w writer) heldBack(name, scheduler string) string { return w.behind(name, scheduler, "") }

// gated is the same with upstream's scheduling gates. It opens none of them: ours has so
// many more pods to schedule.
func (w writer) gated(name, scheduler string) string {
	return w.behind(name, scheduler, "  schedulingGates: [{name: example.com/later}]\n")
}

func (w writer) behind(name, scheduler, more string) string {
	return w.story(name, scheduler, createNodes(otherPods/25, w.equalNodes()),
		createPods(fullPods, "full", w.podOf("filling", "root.full", "100m", "")), await("full"),
		createPods(heldPods, "held", w.podOf("held", "root.full", "100m", more)),
		begin,
		fmt.Sprintf("  - {opcode: deletePods, namespace: full, deletePodsPerSecond: %d, skipWaitToCompletion: true}\n", endedASecond),
		createPods(otherPods, measuredPods, w.podsOfTeams(50)), end)
}

// heldHave returns an error if not exactly so many of the held-back pods have a node.
func heldHave(want int) func(ktesting.TContext) {
	return func(tCtx ktesting.TContext) {
		pods, err := tCtx.Client().CoreV1().Pods("held").List(tCtx, metav1.ListOptions{})
		if err != nil {
			tCtx.Errorf("list pods: %v", err)
		} else if err := wrongHeld(pods.Items, heldPods, want); err != nil {
			tCtx.Error(err)
		}
	}
}

// reclaim fills all nodes with pods of one team and then creates pods of another team
// that has the guarantee: each of these needs the room of one pod.
func (w writer) reclaim(name, scheduler string) string {
	return w.takeRoom(name, scheduler, w.podOf("borrower", "root.borrower", "2", ""), w.podOf("owner", "root.owner", "2", ""))
}

// upstreamReclaim is the same for upstream, where pods take room by priority.
func (w writer) upstreamReclaim(name, scheduler string) string {
	return w.takeRoom(name, scheduler, w.podOf("low", "root.borrower", "2", "  priority: 1\n"), w.podOf("high", "root.owner", "2", "  priority: 10\n"))
}

func (w writer) takeRoom(name, scheduler, fill, come string) string {
	return w.story(name, scheduler, createNodes(reclaimed/2, w.equalNodes()),
		createPods(reclaimed, "occupied", fill), await("occupied"),
		begin, createPods(reclaimed, measuredPods, come), end)
}

// rollOut creates pods of three DaemonSets, one of each for each node, as their
// controller does.
func (w writer) rollOut(name, scheduler string) string {
	metadata := fmt.Sprintf(daemonSet, rollOutNodes)
	affinity := fmt.Sprintf("  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "+
		"{nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node-{{mod .Index %d}}]}]}]}}}\n", rollOutNodes)
	daemon := w.template("daemon", "root.department-0.team-0", "10m", metadata, affinity)
	return w.story(name, scheduler, createNodes(rollOutNodes, w.equalNodes()),
		begin, createPods(rollOuts*rollOutNodes, measuredPods, daemon), end)
}

// daemonSet is the metadata of a pod template that makes so many pods those of one
// DaemonSet, and the next ones those of another. The DaemonSet does not exist, and
// scheduler_perf collects garbage: of the kinds that it knows it would delete all objects
// with a missing owner.
const daemonSet = "  ownerReferences: [{apiVersion: paddock.io/v1, kind: DaemonSet, name: \"agents-{{div .Index %[1]d}}\", uid: \"agents-{{div .Index %[1]d}}\", controller: true}]\n"
