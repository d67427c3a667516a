package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

var podGroupQueues = belowRoot(`{name: gangs, resources: {max: {vcore: 4}}}, {name: others},
 {name: owed, resources: {guaranteed: {vcore: 3}}, properties: {preemption.delay: 1s}}`)

func inPodGroup(name string) podOption {
	return func(p *corev1.Pod) { p.Labels["scheduling.x-k8s.io/pod-group"] = name }
}

// definePodGroups installs the CRD of PodGroups, which an installation requires, and
// removes it at the end.
func definePodGroups(t *testing.T) {
	a := newApplier(t)
	definition := installed(t, "podgroups-crd.yaml")[0]
	eventually(t, patience, "PodGroups can be made", func() (bool, string) {
		o, err := a.apply(t.Context(), definition, false)
		if err != nil {
			return false, err.Error() // the previous one may still be terminating
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		established := slices.ContainsFunc(conditions, func(c any) bool {
			return c.(map[string]any)["type"] == "Established" && c.(map[string]any)["status"] == "True"
		})
		return established && o.GetDeletionTimestamp() == nil, fmt.Sprint(conditions)
	})
	t.Cleanup(func() { expect.Holds(t, a.delete(context.Background(), definition)) })
}

// createPodGroup makes a PodGroup; the API server may have just got the CRD.
func (e *env) createPodGroup(name string, minMember int64) {
	e.Helper()
	a := newApplier(e.T)
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": map[string]any{"name": name, "namespace": e.ns},
		"spec":     map[string]any{"minMember": minMember},
	}}
	succeeds(e, "PodGroup "+name+" is made", func() error {
		_, err := a.apply(e.Context(), o, false)
		return err
	})
}

// TestPodGroups installs overlay with-podgroups and runs it under its service account: a
// PodGroup starts as a whole or not at all, whatever resource is too small for it; it
// keeps nothing from others meanwhile, and starts once there is room.
func TestPodGroups(t *testing.T) {
	definePodGroups(t)
	shipped := newInstallation(t, "with-podgroups.yaml", "groups")
	e := setup(t, "", shipped.run(t))
	e.configure(podGroupQueues)
	e.awaitLeader("")
	e.run("nodes", (*env).podGroupOnNodes)
	e.podGroupOutlivesScheduler()
	checkRights(t, shipped, "paddock-scheduler-podgroups")
}

// podGroupOnNodes: three pods, and nodes with room for two of them.
func (e *env) podGroupOnNodes() {
	part := e.apart("nodes", 1, localcluster.NodeSpec{CPU: "2"})
	part.createPodGroup("three", 3)
	c := part.keepHistory()
	gang := part.create("three", 3, inQueue("root.gangs"), inPodGroup("three"))
	for _, p := range gang {
		part.awaitEvent(p, "FailedScheduling")
	}
	part.expectStill("three", 0, 3, "")
	part.awaitQueue("root.gangs", "has its quota back", uses(0))
	for _, p := range gang {
		nominated := c.first(p.UID, func(s sight) bool { return s.pod.Status.NominatedNodeName != "" })
		expect.That(part, nominated == nil,
			"%s was nominated to a node, which keeps the room there from others", p.Name)
	}

	// Other pods come and go on the same nodes.
	part.create("other", 2, inQueue("root.others"))
	part.expect("other", 2, 0, "")
	part.expectStill("three", 0, 3, "")
	part.addNodes(1, localcluster.NodeSpec{CPU: "3"})
	part.expect("three", 3, 0, "")
	part.expectBooks()
	part.clear("three", "other")
}

// podGroupOutlivesScheduler: the scheduler is killed while two of three pods have their places and wait
// for the third, for which a pod is being preempted. The next scheduler preempts no other pod, and
// starts all three when that pod is gone, which the test decides.
func (e *env) podGroupOutlivesScheduler() {
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	e.create("victim", 2, inQueue("root.others"), stopsAfter(5*time.Minute))
	e.expect("victim", 2, 0, "")
	c := e.keepHistory()
	e.createPodGroup("outlives", 3)
	e.create("outlives", 3, inQueue("root.owed"), inPodGroup("outlives"))
	leaving := c.expectEvicted("victim", 1)[0]
	const two = "two wait for the third with their places"
	e.awaitQueue("root.owed", two, uses(2))
	e.expectStill("outlives", 0, 3, "")
	e.kill()
	forgetLease(e.T)
	e.listsFirst()
	e.start()
	e.awaitLeader("")
	e.awaitQueue("root.owed", two, uses(2))
	e.endAtOnce(leaving.pod)
	e.expect("outlives", 3, 0, "")
	c.expectNoMore(calm, 1, "victim")
	e.expectBooks()
}

func uses(cores int64) func(*documents.Queue) bool {
	return func(q *documents.Queue) bool { return q.AllocatedResource["vcore"] == resources.Amount(1000*cores) }
}

func (e *env) clear(names ...string) {
	e.Helper()
	for _, name := range names {
		running, waiting := e.podsOf(name)
		for _, p := range append(running, waiting...) {
			e.delete(p)
		}
	}
	for _, name := range names {
		e.expectNone(name)
	}
}
