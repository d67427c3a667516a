package integration

import (
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/nodeagent"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest"
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

// TestJob checks that the quota of completed pods is free for the next ones of the job,
// although the finished pods still exist.
func TestJob(t *testing.T) {
	e := setup(t, workloadQueues)
	n := int32(6)
	template := e.template("job", annotated(nodeagent.AnnotationCompleteAfter, "300ms"))
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	jobs := suite.client.BatchV1().Jobs(e.ns)
	_, err := jobs.Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec:       batchv1.JobSpec{Completions: &n, Parallelism: &n, Template: template},
	}, metav1.CreateOptions{})
	e.ok(err)
	eventually(t, patience, "the job completes, at most two pods at a time", func() (bool, string) {
		running, _ := e.podsOf("job")
		if len(running) > 2 {
			t.Fatalf("%d pods run, the max is 2", len(running))
		}
		job, err := jobs.Get(t.Context(), "job", metav1.GetOptions{})
		e.ok(err)
		return job.Status.Succeeded == n && job.Status.CompletionTime != nil, job.Status.String()
	})
	e.awaitQueue("root.job", "is empty", func(q *rest.Queue) bool { return used(q) == 0 && q.RunningApps == 0 })
	e.ok(jobs.Delete(t.Context(), "job", inBackground()))
}

// used is the sum of all usage and pending requests of a queue, for comparison with 0.
func used(q *rest.Queue) int64 {
	var sum int64
	for _, m := range []map[string]int64{q.AllocatedResource, q.PendingResource} {
		for amount := range maps.Values(m) {
			sum += amount
		}
	}
	return sum
}

// TestDaemonSet checks that a DaemonSet of the managed profile has a pod on each
// node, and one on a node that is added later.
func TestDaemonSet(t *testing.T) {
	e := setup(t, workloadQueues)
	nodes := e.useNodes(3, localcluster.NodeSpec{CPU: "4"})
	daemonSets := suite.client.AppsV1().DaemonSets(e.ns)
	_, err := daemonSets.Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec:       appsv1.DaemonSetSpec{Selector: e.selector("daemonset"), Template: e.template("daemonset", requests("cpu", "500m"))},
	}, metav1.CreateOptions{})
	e.ok(err)
	e.expect("daemonset", 3, 0, "")
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	e.expect("daemonset", 4, 0, "")
	running, _ := e.podsOf("daemonset")
	on := map[string]int{}
	for _, p := range running {
		on[p.Spec.NodeName]++
	}
	for _, node := range nodes {
		if on[node] != 1 {
			t.Errorf("node %s has %d pods of the DaemonSet: %v", node, on[node], on)
		}
	}
	e.awaitQueue("root.daemonset", "has four pods", func(q *rest.Queue) bool {
		return q.AllocatedResource["vcore"] == 2000 && q.AllocatedResource["pods"] == 4
	})
	e.ok(daemonSets.Delete(t.Context(), "agent", inBackground()))
	e.expectNone("daemonset")
}

// container makes a container; always makes it a sidecar where it is an init container.
func container(name string, always bool, list ...string) corev1.Container {
	c := corev1.Container{Name: name, Image: "none", Resources: corev1.ResourceRequirements{Requests: amounts(list...)}}
	if always {
		policy := corev1.ContainerRestartPolicyAlways
		c.RestartPolicy = &policy
	}
	return c
}

// TestRequests checks the charged requests of pods of all shapes, against numbers that
// were added up by hand.
func TestRequests(t *testing.T) {
	e := setup(t, workloadQueues)
	overhead := &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: e.id + "-sandbox", Labels: map[string]string{label: e.id}},
		Handler:    "none", Overhead: &nodev1.Overhead{PodFixed: amounts("cpu", "250m", "memory", "64Mi")},
	}
	_, err := suite.client.NodeV1().RuntimeClasses().Create(t.Context(), overhead, metav1.CreateOptions{})
	e.ok(err)
	const mi = 1 << 20
	for _, c := range []struct {
		name  string
		shape podOption
		want  map[string]int64
	}{
		{"bare", requests("cpu", "1500m", "memory", "100Mi"), map[string]int64{"vcore": 1500, "memory": 100 * mi, "pods": 1}},
		{"nothing", requests(), map[string]int64{"pods": 1}},
		{"two-containers", func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, container("more", false, "cpu", "1m", "ephemeral-storage", "1Gi"))
		}, map[string]int64{"vcore": 1001, "ephemeral-storage": 1024 * mi, "pods": 1}},
		{"init", func(p *corev1.Pod) { // the larger of start and run, for each type
			p.Spec.InitContainers = []corev1.Container{container("init", false, "cpu", "3", "memory", "10Mi")}
			p.Spec.Containers[0].Resources.Requests = amounts("cpu", "1", "memory", "30Mi")
		}, map[string]int64{"vcore": 3000, "memory": 30 * mi, "pods": 1}},
		{"sidecar", func(p *corev1.Pod) { // runs beside the init container that follows, and beside the main one
			p.Spec.InitContainers = []corev1.Container{container("sidecar", true, "cpu", "500m"), container("init", false, "cpu", "2")}
		}, map[string]int64{"vcore": 2500, "pods": 1}},
		{"overhead", func(p *corev1.Pod) {
			p.Spec.RuntimeClassName = &overhead.Name
			p.Spec.InitContainers = []corev1.Container{container("sidecar", true, "cpu", "500m"), container("init", false, "cpu", "2")}
		}, map[string]int64{"vcore": 2750, "memory": 64 * mi, "pods": 1}},
		{"pod-level", func(p *corev1.Pod) { // the pod's own requests count, not the sum of its containers
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: amounts("cpu", "4", "memory", "1Gi")}
		}, map[string]int64{"vcore": 4000, "memory": 1024 * mi, "pods": 1}},
	} {
		e.run(c.name, func(e *env) {
			p := e.createPod(e.pod(c.name, c.name, inQueue("root.pods"), c.shape))
			e.awaitRunning(p)
			e.awaitQueue("root.pods", "is charged what the pod requests", func(q *rest.Queue) bool {
				maps.DeleteFunc(q.AllocatedResource, func(_ string, amount int64) bool { return amount == 0 })
				return maps.Equal(q.AllocatedResource, c.want)
			})
			e.expectBooks()
			e.delete(p)
			e.awaitQueue("root.pods", "is empty", func(q *rest.Queue) bool { return used(q) == 0 })
		})
	}
	e.ok(suite.client.NodeV1().RuntimeClasses().Delete(t.Context(), overhead.Name, metav1.DeleteOptions{}))
}
