package integration

import (
	"context"
	"fmt"
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
		e.runJob(fmt.Sprintf("owed-%d", i), 7, e.template("owed", inQueue("root.owed"), completesAfter(time.Duration(2+i)*time.Second)))
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

// deploy makes a Deployment of a queue, named like the queue.
func (e *env) deploy(queue string, replicas int32, options ...podOption) {
	e.Helper()
	deployments, template := suite.client.AppsV1().Deployments(e.ns), e.template(queue, append(options, inQueue("root."+queue))...)
	expect.Get(deployments.Create(e.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: queue},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: e.selector(queue), Template: template},
	}, metav1.CreateOptions{}))(e)
	e.Cleanup(func() { e.ok(deployments.Delete(context.Background(), queue, inBackground())) })
}

// completesAfter makes a pod end by itself.
func completesAfter(d time.Duration) podOption {
	return func(p *corev1.Pod) { p.Annotations[nodeagent.AnnotationCompleteAfter] = d.String() }
}
