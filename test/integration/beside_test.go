package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// startKubeScheduler builds upstream's scheduler and runs it beside the one of the test,
// for pods of default-scheduler.
func (e *env) startKubeScheduler() {
	e.ok(compile(e.Context(), "k8s.io/kubernetes/cmd/kube-scheduler"))
	p := expect.Get(suite.cluster.StartScheduler(e.Context(), localcluster.SchedulerOptions{
		Name: "kube-scheduler-" + e.id, Binary: root + "/bin/kube-scheduler", Args: []string{"--v=2"},
	}))(e)
	e.Cleanup(func() {
		if e.Failed() {
			e.Logf("the log of upstream's scheduler is %s", p.Log())
		}
		expect.Holds(e, p.Stop())
	})
}

// plainPods keeps pods of default-scheduler waiting, and makes new ones all the time,
// until it is stopped. It returns how many it made.
func (e *env) plainPods(waiting int, every time.Duration) (stop func() int) {
	ctx, cancel := context.WithCancel(e.Context())
	done := make(chan error, 1)
	made := 0
	ticker := time.NewTicker(every)
	go func() {
		defer ticker.Stop()
		var errs []error
		for ctx.Err() == nil {
			errs = append(errs, e.createAtOnce("plain", made, 1, ofProfile(corev1.DefaultSchedulerName)))
			if made++; made > waiting {
				name := fmt.Sprintf("plain-%d", made-waiting-1)
				errs = append(errs, suite.client.CoreV1().Pods(e.ns).Delete(e.Context(), name, metav1.DeleteOptions{}))
			}
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
		done <- errors.Join(errs...)
	}()
	return func() int {
		e.Helper()
		cancel()
		e.ok(<-done)
		return made
	}
}

func (e *env) expectNoTaint() {
	its := metav1.ListOptions{LabelSelector: label + "=" + e.id}
	eventually(e, patience, "no node is tainted", func() (bool, string) {
		for _, n := range expect.Get(suite.client.CoreV1().Nodes().List(e.Context(), its))(e).Items {
			for _, t := range n.Spec.Taints {
				if t.Key == reservations.HeldTaint {
					return false, n.Name + " " + t.Value
				}
			}
		}
		return true, ""
	})
}

// TestBesideKubeScheduler makes room again and again beside upstream's scheduler, which has waiting
// pods and gets new ones all the time. The nodes are full, and each victim frees exactly the request of
// its asker. One pod is preempted for each asker, the asker runs on the node that it held, and the
// other scheduler never gets a pod onto any of these nodes.
func TestBesideKubeScheduler(t *testing.T) {
	const perNode, extra = 25, 10
	shipped := newInstallation(t, "second-scheduler.yaml", "beside")
	queues := owedQueues(10_000, 10*time.Millisecond) // more than the test uses
	e := setup(t, queues, shipped.run(t))
	e.awaitLeader("")
	nodes := beside/perNode + 2
	e.useNodes(nodes, localcluster.NodeSpec{CPU: fmt.Sprint(perNode)})
	c := e.keepHistory()
	e.fill("victim", nodes*perNode, inQueue("root.borrows"), stopsAfter(200*time.Millisecond))
	e.ok(e.createAtOnce("waits", 0, extra, inQueue("root.borrows")))
	e.startKubeScheduler()
	stop := e.plainPods(12, 50*time.Millisecond)
	began := time.Now()
	var askers []*corev1.Pod
	for batch := 1; len(askers) < beside; batch = batch%5 + 1 {
		first := len(askers)
		for i := first; i < min(first+batch, beside); i++ {
			askers = append(askers, e.createPod(e.pod(fmt.Sprintf("asker-%d", i), "asker", inQueue("root.owed"))))
		}
		for _, asker := range askers[first:] {
			c.awaitPlaced(asker)
		}
		if len(c.evicted("victim")) != len(askers) {
			t.Fatalf("%d askers, and evicted are %s", len(askers), names(c.evicted("victim")))
		}
	}
	took := time.Since(began)
	c.expectNoMore(calm/2, beside, "victim")
	plain := stop()
	t.Logf("%d preemptions in %v, beside %d pods of the other scheduler", beside, took.Round(time.Millisecond), plain)
	for _, asker := range askers {
		claim, _ := c.claim(asker.UID)
		now := e.awaitRunning(asker).Spec.NodeName
		expect.That(t, now == claim.Node, "%s runs on %s, and held %s", asker.Name, now, claim.Node)
	}
	expect.Same(t, "pods that upstream's scheduler placed", "", names(c.boundByNow("plain")))
	e.expectNoTaint()
	e.othersTakeRoom()
	bound := c.boundByNow("plain")
	expect.That(t, len(bound) == 1, "then %d pods of upstream's scheduler were bound, not one: %s",
		len(bound), names(bound))
	checkRights(t, shipped, "holds")
}

// othersTakeRoom shows that the other scheduler would have used free room.
func (e *env) othersTakeRoom() {
	_, waiting := e.podsOf("waits")
	for _, p := range waiting {
		e.delete(p)
	}
	eventually(e, patience, "no pod of a queue waits", func() (bool, string) {
		_, left := e.podsOf("waits")
		return len(left) == 0, fmt.Sprint(len(left))
	})
	running, _ := e.podsOf("victim")
	running = slices.DeleteFunc(running, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	e.endAtOnce(running[0])
	eventually(e, patience, "a pod of the other scheduler runs", func() (bool, string) {
		plain, _ := e.podsOf("plain")
		return len(plain) == 1, fmt.Sprint(len(plain))
	})
}
