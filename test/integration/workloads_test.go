package integration

import (
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

const workloadQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: deployment
      resources: {max: {vcore: 3}}
    - name: job
      resources: {max: {vcore: 2}}
    - name: daemonset
    - name: pods
`

// template makes the pod template of a controller: a pod of a group.
func (e *env) template(of string, options ...podOption) corev1.PodTemplateSpec {
	p := e.pod("", of, append(options, inQueue("root."+of))...)
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels, Annotations: p.Annotations}, Spec: p.Spec}
}

func (e *env) selector(of string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{label: e.id, group: of}}
}

// inBackground deletes a controller's object, and its pods with it.
func inBackground() metav1.DeleteOptions {
	background := metav1.DeletePropagationBackground
	return metav1.DeleteOptions{PropagationPolicy: &background}
}

// TestDeployment checks that a Deployment grows to the max of its queue, that deleted
// pods are replaced, and that no usage is left at its end.
func TestDeployment(t *testing.T) {
	e := setup(t, workloadQueues)
	replicas := int32(5)
	deployments := suite.client.AppsV1().Deployments(e.ns)
	_, err := deployments.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: e.selector("deployment"), Template: e.template("deployment")},
	}, metav1.CreateOptions{})
	e.ok(err)
	e.expect("deployment", 3, 2, reasons.OverMax)
	running, _ := e.podsOf("deployment")
	for _, p := range running[:2] {
		e.delete(p)
	}
	e.expectStill("deployment", 3, 2, reasons.OverMax)
	e.expectBooks()
	e.ok(deployments.Delete(t.Context(), "web", inBackground()))
	e.expectNone("deployment")
	e.expectBooks()
}

// used is the sum of all usage and pending requests of a queue, for comparison with 0.
func used(q *documents.Queue) int64 {
	var sum int64
	for _, m := range []map[string]int64{q.AllocatedResource, q.PendingResource} {
		for amount := range maps.Values(m) {
			sum += amount
		}
	}
	return sum
}
