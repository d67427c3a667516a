package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

// loopQueues are independent subtrees: each has nodes of its own. The delays are short,
// so that a pod that is created again asks again at once.
const loopQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: flow1
      queues:
      - name: prod
        resources: {guaranteed: {vcore: 5}}
        properties: {preemption.delay: 1s}
      - name: test
        resources: {guaranteed: {vcore: 6}}
        properties: {preemption.delay: 1s}
    - name: flow2
      queues:
      - name: prod
        resources: {guaranteed: {vcore: 5}}
        properties: {preemption.delay: 1s}
      - name: test
        resources: {guaranteed: {vcore: 5}}
        properties: {preemption.delay: 1s}
    - name: flow3
      queues:
      - name: prod
        resources: {guaranteed: {vcore: 10}}
        properties: {preemption.delay: 1s}
      - name: test
        resources: {guaranteed: {vcore: 4}}
        properties: {preemption.delay: 1s}
    - name: storm
      queues:
      - name: parent
        resources: {guaranteed: {vcore: 10}}
        queues:
        - name: one
          properties: {preemption.delay: 1s}
        - name: two
          properties: {preemption.delay: 1s}
      - name: test
        properties: {preemption.delay: 1s}
`

// replicas is a ReplicaSet of a loop test, and its expected outcome.
type replicas struct {
	queue string // below the subtree; also the name of the set
	// before run at first; then the set is scaled to want.
	before, want int32
	run          int // how many run in the end; the others wait
	evicted      int
}

// TestLoops checks, with sets that recreate evicted pods, that preemption does what it
// has to do and ends: the three flows of the design of YuniKorn's preemption, and the
// storm that its user guide warns of.
func TestLoops(t *testing.T) {
	e := setup(t, loopQueues, preemption("retryInterval", "1s"))
	c := e.keepChronicle()
	cases := []struct {
		name, cpu string // subtree, and size of its one node
		request   string
		sets      []replicas
	}{
		// prod gets over its guarantee by one pod, and may not ask again.
		{"flow1", "14", "2", []replicas{{"prod", 2, 4, 3, 0}, {"test", 5, 5, 4, 1}}},
		// test would end below its guarantee.
		{"flow2", "10", "2", []replicas{{"prod", 2, 4, 2, 0}, {"test", 3, 3, 3, 0}}},
		// prod stays below its guarantee, and asks again until test is at its own.
		{"flow3", "10", "2", []replicas{{"prod", 1, 4, 3, 0}, {"test", 4, 4, 2, 2}}},
		// Both siblings rely on their parent's guarantee: they take from test until the
		// parent has it, and nothing from each other.
		{"storm", "12", "1", []replicas{{"parent.one", 4, 9, 6, 0}, {"parent.two", 4, 4, 4, 0}, {"test", 4, 4, 2, 2}}},
	}
	for _, k := range cases {
		part := e.apart(k.name, 1, localcluster.NodeSpec{CPU: k.cpu})
		for _, s := range k.sets {
			part.createSet(k.name+"."+s.queue, s.before, requests("cpu", k.request))
		}
	}
	for _, k := range cases {
		for _, s := range k.sets {
			e.expect(k.name+"."+s.queue, int(s.before), 0, "")
		}
	}
	for _, k := range cases {
		for _, s := range k.sets {
			e.scaleSet(k.name+"."+s.queue, s.want)
		}
	}
	settled := func() (bool, string) {
		pods, err := e.listPods(t.Context())
		e.ok(err)
		run, wait := map[string]int{}, map[string]int{}
		for i := range pods {
			if pods[i].Spec.NodeName != "" {
				run[pods[i].Labels[group]]++
			} else {
				wait[pods[i].Labels[group]]++
			}
		}
		var unlike []string
		for _, k := range cases {
			for _, s := range k.sets {
				of := k.name + "." + s.queue
				got := replicas{s.queue, s.before, int32(run[of] + wait[of]), run[of], len(c.evicted(of))}
				if got.evicted > s.evicted {
					t.Fatalf("%s: %d pods are evicted, want %d", of, got.evicted, s.evicted)
				}
				if got != s {
					unlike = append(unlike, fmt.Sprintf("%s: %+v, want %+v", of, got, s))
				}
			}
		}
		return len(unlike) == 0, strings.Join(unlike, "; ")
	}
	eventually(t, patience, "preemption has done its work", settled)
	t.Logf("settled; from now on nothing may happen for %v", stillness)
	throughout(t, stillness, "preemption has ended", settled)
	c.tail.catchUp(t.Context(), t)
	if still, state := settled(); !still {
		t.Errorf("preemption went on: %s", state)
	}
	e.expectBooks()
}

// createSet makes a ReplicaSet with pods in the queue root.NAME.
func (e *env) createSet(name string, n int32, options ...podOption) {
	e.Helper()
	_, err := suite.client.AppsV1().ReplicaSets(e.ns).Create(e.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.ReplicaSetSpec{Replicas: &n, Selector: e.selector(name), Template: e.template(name, options...)},
	}, metav1.CreateOptions{})
	e.ok(err)
	e.Cleanup(func() { // or it would recreate the pods that the test removes in the end
		if err := suite.client.AppsV1().ReplicaSets(e.ns).Delete(context.Background(), name, inBackground()); err != nil {
			e.Error(err)
		}
	})
}

func (e *env) scaleSet(name string, n int32) {
	e.Helper()
	sets := suite.client.AppsV1().ReplicaSets(e.ns)
	scale, err := sets.GetScale(e.Context(), name, metav1.GetOptions{})
	e.ok(err)
	scale.Spec.Replicas = n
	_, err = sets.UpdateScale(e.Context(), name, scale, metav1.UpdateOptions{})
	e.ok(err)
}
