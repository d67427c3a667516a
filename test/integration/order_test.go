package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

const orderQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: narrow
      resources: {max: {vcore: 1}}
    - name: shared
      resources: {max: {vcore: 4}}
      queues:
      - name: large
        resources: {guaranteed: {vcore: 3}}
      - name: small
        resources: {guaranteed: {vcore: 1}}
    - name: pair
      resources: {max: {vcore: 1}}
      queues:
      - name: low
      - name: high
        properties: {priority.offset: "100"}
`

// TestFairShare checks that two queues below a full parent share it by their guarantees,
// 3 to 1, while it is refilled pod by pod.
func TestFairShare(t *testing.T) {
	e := setup(t, orderQueues)
	holder := e.create("holder", 1, inQueue("root.shared.large"), requests("cpu", "4"))[0]
	e.awaitRunning(holder)
	e.create("large", 16, inQueue("root.shared.large"))
	e.create("small", 16, inQueue("root.shared.small"))
	e.expect("large", 0, 16, reasons.OverMax)
	e.expect("small", 0, 16, reasons.OverMax)
	m := e.watchPods()
	e.delete(holder)
	e.refill(m, 12)
}

// refill deletes one of four running pods again and again, and checks that queues with
// guarantees of 3 and 1 run 3 and 1 pods each time.
func (e *env) refill(m *moments, rounds int) {
	e.Helper()
	began := len(m.boundInOrder())
	for round := range rounds {
		eventually(e, patience, fmt.Sprintf("round %d: four pods run again", round), func() (bool, string) {
			n := len(m.boundInOrder())
			return n == began+4+round, fmt.Sprint(n)
		})
		large, _ := e.podsOf("large")
		small, _ := e.podsOf("small")
		if len(large) != 3 || len(small) != 1 {
			e.Errorf("round %d: queues with guarantees of 3 and 1 run %d and %d pods", round, len(large), len(small))
		}
		if round%3 == 2 {
			large = small
		}
		e.delete(large[0])
	}
	e.Log("bound in this order:", strings.Join(m.boundInOrder(), " "))
}

// TestOrderInQueue checks which pod is next in one queue: the highest priority, then the
// oldest.
func TestOrderInQueue(t *testing.T) {
	e := setup(t, orderQueues)
	e.priorityClass("high", 1000)
	e.priorityClass("low", -1000)
	m := e.watchPods()
	holder := e.create("holder", 1, inQueue("root.narrow"))[0]
	e.awaitRunning(holder)
	// Each pod is an application of its own; within one application the rule is the same.
	for _, p := range []struct{ name, class string }{
		{"low", "low"}, {"first", ""}, {"second", ""}, {"high", "high"}, {"third", ""},
	} {
		options := []podOption{inQueue("root.narrow")}
		if p.class != "" {
			options = append(options, ofPriority(e.id+"-"+p.class))
		}
		e.createLater(e.pod(p.name, p.name, options...))
	}
	e.awaitRefused(e.pod("third", ""), reasons.OverMax)
	e.drainOneByOne(m, 6)
	want := []string{"holder-0", "high", "first", "second", "third", "low"}
	if diff := cmp.Diff(want, m.boundInOrder()); diff != "" {
		t.Errorf("order of pods (-want +got)\n%s", diff)
	}
}

// TestOrderOfQueues checks that a priority offset puts a queue before its sibling.
func TestOrderOfQueues(t *testing.T) {
	e := setup(t, orderQueues)
	m := e.watchPods()
	holder := e.create("holder", 1, inQueue("root.pair.low"))[0]
	e.awaitRunning(holder)
	e.create("low", 2, inQueue("root.pair.low"))
	e.create("high", 2, inQueue("root.pair.high"))
	e.expect("high", 0, 2, reasons.OverMax)
	e.drainOneByOne(m, 5)
	var groups []string
	for _, name := range m.boundInOrder() {
		groups = append(groups, strings.Split(name, "-")[0])
	}
	if diff := cmp.Diff([]string{"holder", "high", "high", "low", "low"}, groups); diff != "" {
		t.Errorf("order of pods (-want +got)\n%s", diff)
	}
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

// drainOneByOne removes the one running pod whenever there is one, until so many pods
// have been bound.
func (e *env) drainOneByOne(m *moments, pods int) {
	e.Helper()
	for n := 1; n < pods; n++ {
		names := m.boundInOrder()
		if len(names) != n {
			e.Fatalf("want %d pods bound, have %v", n, names)
		}
		p := e.get(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: names[n-1]}})
		e.delete(p)
		eventually(e, patience, fmt.Sprintf("pod number %d is bound", n+1), func() (bool, string) {
			names := m.boundInOrder()
			return len(names) > n, strings.Join(names, " ")
		})
	}
}
