package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/nodeagent"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
)

// freeRoomQueues has the guarantee of ecosystemGuarantees.
const freeRoomQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: owed
      resources: {guaranteed: {vcore: 20}}
      properties: {preemption.delay: 1s}
    - name: loose
      properties: {preemption.delay: 1s}
`

// TestFreeRoomGoesToJobsBelowTheirGuarantee: pods of Jobs end all the time, and more of them
// wait than the guarantee of their queue covers, beside a Deployment that wants all. Each
// time one ends, the next one gets the room, and no pod of the Deployment that is preempted
// for it later.
func TestFreeRoomGoesToJobsBelowTheirGuarantee(t *testing.T) {
	e := setup(t, freeRoomQueues)
	e.useNodes(6, localcluster.NodeSpec{CPU: "4"})
	c := e.keepHistory()
	for i := range 4 {
		e.runJob(fmt.Sprintf("owed-%d", i), 7, e.template("owed", completesAfter(time.Duration(2+i)*time.Second)))
	}
	eventually(t, patience, "the guarantee is in use", func() (bool, string) {
		running, _ := e.podsOf("owed")
		return len(running) >= 20, fmt.Sprint(len(running))
	})
	e.deploy("loose", 40)
	eventually(t, patience, "100 pods of the Jobs have run", func() (bool, string) {
		n := len(c.bound("owed"))
		return n >= 100, fmt.Sprint(n)
	})
	c.tail.catchUp(t.Context(), e)
	victims := c.preempted("owed", "loose")
	there, anywhere := c.avoidable(victims, "owed", "loose")
	t.Logf("measured: %d victims, avoidable %d by their own node and %d by any node; pods bound: %d of owed, %d of loose",
		len(victims), len(there), len(anywhere), len(c.bound("owed")), len(c.bound("loose")))
	// Each of up to 7 pods of the Deployment that got room before the Jobs had their guarantee
	// may go for it. With the order by shares alone 35 and more go.
	if len(there) > 0 || len(victims) > 20 {
		t.Errorf("%d of %d victims were avoidable, and 20 are allowed at most: %s", len(there), len(victims), strings.Join(there, "; "))
	}
}

// runJob runs a Job of so many pods at a time, until the test ends.
func (e *env) runJob(name string, parallelism int32, of corev1.PodTemplateSpec) {
	e.Helper()
	of.Spec.RestartPolicy = corev1.RestartPolicyNever
	jobs, total := suite.client.BatchV1().Jobs(e.ns), int32(2000)
	expect.Get(jobs.Create(e.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       batchv1.JobSpec{Completions: &total, Parallelism: &parallelism, BackoffLimit: &total, Template: of},
	}, metav1.CreateOptions{}))(e)
	e.Cleanup(func() { e.ok(jobs.Delete(context.Background(), name, inBackground())) })
}

// template is what a controller makes pods of a queue from.
func (e *env) template(queue string, options ...podOption) corev1.PodTemplateSpec {
	pod := e.pod("", queue, append(options, inQueue("root."+queue))...)
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations}, Spec: pod.Spec}
}

// deploy makes a Deployment of a queue, named like the queue.
func (e *env) deploy(queue string, replicas int32, options ...podOption) {
	e.Helper()
	expect.Get(suite.client.AppsV1().Deployments(e.ns).Create(e.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: queue},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: e.selector(queue), Template: e.template(queue, options...)},
	}, metav1.CreateOptions{}))(e)
	e.Cleanup(func() {
		e.ok(suite.client.AppsV1().Deployments(e.ns).Delete(context.Background(), queue, inBackground()))
	})
}

// completesAfter makes a pod end by itself.
func completesAfter(d time.Duration) podOption {
	return func(p *corev1.Pod) { p.Annotations[nodeagent.AnnotationCompleteAfter] = d.String() }
}

// TestNodesAreWantedForAsManyPodsAsMayRun: 40 pods find no node, and the max of their
// queue lets ten of them run. Autoscalers add nodes for pods with reason Unschedulable,
// so exactly ten have it. When the max changes, the number follows, also across a
// restart, and so it does when others start, end or come first in the order.
func TestNodesAreWantedForAsManyPodsAsMayRun(t *testing.T) {
	e := setup(t, oneLeaf("10"))
	e.priorityClass("first", 1000, neverPreempts)
	e.create("p", 40, inQueue("root.a"), findsNoNode)
	e.expectWanted("p", 40, 10)
	e.configure(oneLeaf("3"))
	e.expectWanted("p", 40, 3)
	e.kill()
	e.start()
	e.expectWanted("p", 40, 3)
	e.configure(oneLeaf("12"))
	e.expectWanted("p", 40, 12)
	starts := e.createPod(e.pod("starts", "starts", inQueue("root.a"), requests("cpu", "2")))
	e.expectWanted("p", 40, 10)
	e.endAtOnce(starts)
	e.expectWanted("p", 40, 12)
	first := e.create("first", 3, inQueue("root.a"), ofPriority(e.id+"-first"), findsNoNode)
	e.expectWanted("p", 40, 9)
	for _, p := range first {
		e.endAtOnce(p)
	}
	e.expectWanted("p", 40, 12)
}

const wantedQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: user
      limits: [{limit: each, users: ["*"], maxresources: {vcore: 4}}]
    - {name: apps, maxapplications: 1}
    - name: free
`

// TestNodesAreWantedWithinLimits: pods find no node, and a limit of their user or
// maxapplications lets one of them run. Then 200 pods without a quota are wanted. The time
// and the pauses are logged: Karpenter waits until it has seen no new pod for a second.
func TestNodesAreWantedWithinLimits(t *testing.T) {
	e := setup(t, wantedQueues)
	c := e.keepHistory()
	e.create("user", 10, inQueue("root.user"), requests("cpu", "3"), findsNoNode)
	e.create("apps", 5, inQueue("root.apps"), findsNoNode, func(p *corev1.Pod) { p.Labels[placement.KeyApplicationID] = p.Name })
	e.expectWanted("user", 10, 1)
	e.expectWanted("apps", 5, 1)
	expect.OK(t, e.createAtOnce("free", 0, 200, inQueue("root.free"), findsNoNode))
	made := time.Now()
	var seen []time.Time
	eventually(t, patience, "nodes are wanted for 200 pods", func() (bool, string) {
		seen = c.wanted("free")
		return len(seen) == 200, fmt.Sprint(len(seen))
	})
	var pause time.Duration
	for i := 1; i < len(seen); i++ {
		pause = max(pause, seen[i].Sub(seen[i-1]))
	}
	t.Logf("measured: of 200 pods 200 are wanted %v after the last was made, %v after the first was, with pauses of up to %v",
		seen[199].Sub(made).Round(time.Millisecond), seen[199].Sub(seen[0]).Round(time.Millisecond), pause.Round(time.Millisecond))
}

// wanted returns when the pods of a group were first seen with reason Unschedulable, in order.
func (c *history) wanted(of string) (out []time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sights := range c.sights {
		i := slices.IndexFunc(sights, func(s sight) bool {
			why := conditionOf(s.pod, corev1.PodScheduled)
			return s.pod.Labels[group] == of && why != nil && why.Reason == corev1.PodReasonUnschedulable
		})
		if i >= 0 {
			out = append(out, sights[i].at)
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

func findsNoNode(p *corev1.Pod) { p.Spec.NodeSelector["example.com/pool"] = "grows" }

// expectWanted waits until so many of the pods of a group have reason Unschedulable, and
// all others reason SchedulingGated. The bound of 5 s is checked in fake time, by
// TestOnlyPodsWithinQuotasAreUnschedulable and the simulation. Here the time is logged.
func (e *env) expectWanted(of string, all, want int) {
	e.Helper()
	began := time.Now()
	eventually(e.T, patience, fmt.Sprintf("nodes are wanted for %d pods of %s", want, of), func() (bool, string) {
		_, waiting := e.podsOf(of)
		reasons := map[string]int{}
		for _, p := range waiting {
			if c := conditionOf(p, corev1.PodScheduled); c != nil {
				reasons[c.Reason]++
			}
		}
		return reasons[corev1.PodReasonUnschedulable] == want && reasons[corev1.PodReasonSchedulingGated] == all-want, fmt.Sprint(reasons)
	})
	e.Logf("measured: of %d pods of %s %d are wanted after %v", all, of, want, time.Since(began).Round(10*time.Millisecond))
}
