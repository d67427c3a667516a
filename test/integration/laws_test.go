package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

const lawQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: owed
      resources: {guaranteed: {vcore: 40}}
      properties: {preemption.delay: 1s}
    - name: served
      resources: {guaranteed: {vcore: 1}}
      properties: {preemption.delay: 1s}
    - name: wall
      properties: {preemption.policy: fence}
      queues:
      - name: inside
        resources: {guaranteed: {vcore: 40}}
        properties: {preemption.delay: 1s}
    - name: borrows
    - name: exact
      resources: {guaranteed: {vcore: 4}}
    - name: close
      resources: {guaranteed: {vcore: 3}}
    - name: safe
      properties: {preemption.policy: disabled}
    - name: capped
      resources: {max: {vcore: 4}}
      queues:
      - name: owed
        resources: {guaranteed: {vcore: 2}}
        properties: {preemption.delay: 1s}
      - name: borrows
`

// allowPreemption is the annotation by which a priority class opts its pods out.
const allowPreemption = "yunikorn.apache.org/allow-preemption"

func neverPreempts(c *schedulingv1.PriorityClass) {
	never := corev1.PreemptNever
	c.PreemptionPolicy = &never
}

// awaitTold waits until the condition PodScheduled of a pod, or an event about it,
// contains a text, in upper or lower case.
func (e *env) awaitTold(p *corev1.Pod, text string) {
	e.Helper()
	says := func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(text)) }
	eventually(e, patience, fmt.Sprintf("pod %s is told of %q", p.Name, text), func() (bool, string) {
		now := e.get(p)
		if c := conditionOf(now, corev1.PodScheduled); c != nil && says(c.Message) {
			return true, ""
		}
		list, err := eventsOf(e.Context(), p)
		e.ok(err)
		for i := range list {
			if says(list[i].Message) {
				return true, ""
			}
		}
		return false, describe(e.Context(), now)
	})
}

// TestPreemptionRefused checks that no pod is preempted where a law or a gate forbids it,
// and that the condition or an event of the asker names it. Each case has a full node of
// its own.
func TestPreemptionRefused(t *testing.T) {
	e := setup(t, lawQueues, preemption("retryInterval", "1s"))
	e.priorityClass("high", 1000)
	e.priorityClass("polite", 1000, neverPreempts)
	c := e.keepChronicle()
	cases := []struct {
		name, victims, asks string // groups and queues
		pods                int
		victim, asker       []podOption
		says                string
	}{
		{name: "law2", victims: "root.close", asks: "root.owed", pods: 2, victim: []podOption{requests("cpu", "2")}, says: "law 2"},
		{name: "law4", victims: "root.borrows", asks: "root.served", pods: 3, says: "law 4"},
		{name: "law5", victims: "root.exact", asks: "root.owed", pods: 4, says: "law 5"},
		{name: "law6", victims: "root.borrows", asks: "root.owed", pods: 4, victim: []podOption{ofPriority(e.id + "-high")}, says: "law 6"},
		{name: "law7", victims: "root.borrows", asks: "root.wall.inside", pods: 4, says: "law 7"},
		{name: "disabled", victims: "root.safe", asks: "root.owed", pods: 4, says: "disabled"},
		{name: "never", victims: "root.borrows", asks: "root.owed", pods: 4, asker: []podOption{ofPriority(e.id + "-polite")}, says: "preemptionPolicy"},
	}
	parts := make([]*env, len(cases))
	for i, k := range cases {
		parts[i] = e.apart(k.name, 1, localcluster.NodeSpec{CPU: "4"})
		e.ok(parts[i].createAtOnce(k.name, 0, k.pods, append(k.victim, inQueue(k.victims))...))
	}
	// Its queue has its whole guarantee.
	e.awaitRunning(parts[1].create("served", 1, inQueue("root.served"))[0])
	for _, k := range cases {
		e.expect(k.name, k.pods, 0, "")
	}
	askers := make([]*corev1.Pod, len(cases))
	for i, k := range cases {
		askers[i] = parts[i].createPod(parts[i].pod("asker-"+k.name, "asker-"+k.name, append(k.asker, inQueue(k.asks))...))
	}
	for i, k := range cases {
		e.awaitTold(askers[i], k.says)
	}
	var groups []string
	for _, k := range cases {
		groups = append(groups, k.name)
	}
	c.expectNoMore(2*calm, 0, groups...)
	e.expectBooks()
}

// TestPreemptionSwitchedOff checks that a partition works without preemption, and that
// switching it on again is enough for the pods that wait.
func TestPreemptionSwitchedOff(t *testing.T) {
	off := strings.Replace(lawQueues, "- name: default\n", "- name: default\n  preemption: {enabled: false}\n", 1)
	e := setup(t, off, preemption("retryInterval", "1s"))
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	c := e.keepChronicle()
	e.fill("victim", 4, inQueue("root.borrows"))
	asker := e.createPod(e.pod("asker", "asker", inQueue("root.owed")))
	e.awaitTold(asker, "partition")
	c.expectNoMore(2*calm, 0, "victim")
	e.configure(lawQueues)
	c.expectEvicted("victim", 1)
	c.awaitPlaced(asker)
}

// priorityClass makes a priority class ID-NAME.
func (e *env) priorityClass(name string, value int32, options ...func(*schedulingv1.PriorityClass)) {
	e.Helper()
	classes := suite.client.SchedulingV1().PriorityClasses()
	full := e.id + "-" + name
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: full}, Value: value}
	for _, o := range options {
		o(class)
	}
	_, err := classes.Create(e.Context(), class, metav1.CreateOptions{})
	e.ok(err)
	e.Cleanup(func() {
		if err := classes.Delete(context.Background(), full, metav1.DeleteOptions{}); err != nil {
			e.Error(err)
		}
	})
}
