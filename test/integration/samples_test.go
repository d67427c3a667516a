package integration

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/nodeagent"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
)

// controllerSamples has the samples of docs/from-elsewhere.md.
const controllerSamples = "../../manifests/samples/controllers/"

// sample returns the object of a kind in a file of controllerSamples.
func (e *env) sample(file, kind string) map[string]any {
	e.Helper()
	text := expect.Get(os.ReadFile(controllerSamples + file))(e)
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var object map[string]any
		e.ok(yaml.UnmarshalStrict(document, &object))
		if object["kind"] == kind {
			return object
		}
	}
	e.Fatalf("%s has no %s", file, kind)
	return nil
}

// part decodes the part of a sample at a path of keys and indexes. A field that the type
// does not have is an error.
func part[T any](e *env, object any, path ...any) T {
	e.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			fields, _ := object.(map[string]any)
			object = fields[step]
		case int:
			list, _ := object.([]any)
			if object = nil; step < len(list) {
				object = list[step]
			}
		}
	}
	if object == nil {
		e.Fatalf("the sample has nothing at %v", path)
	}
	text := expect.Get(yaml.Marshal(object))(e)
	var out T
	e.ok(yaml.UnmarshalStrict(text, &out))
	return out
}

// fit adds the labels that a controller adds to its pods, and what keeps the pods on the
// nodes of the test and makes them stop soon.
func (e *env) fit(t *corev1.PodTemplateSpec, of string, added map[string]string) {
	labels := map[string]string{label: e.id, group: of}
	maps.Copy(labels, t.Labels)
	maps.Copy(labels, added)
	t.Labels = labels
	t.Annotations = map[string]string{nodeagent.AnnotationStopAfter: "200ms"}
	t.Spec.NodeSelector = map[string]string{pool: e.nodePool}
}

// createFrom makes a pod of a template, as a controller does.
func (e *env) createFrom(t corev1.PodTemplateSpec, name, of string, added map[string]string) *corev1.Pod {
	e.Helper()
	e.fit(&t, of, added)
	return e.createPod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: name, Labels: t.Labels, Annotations: t.Annotations}, Spec: t.Spec,
	})
}

func (e *env) createJob(job *batchv1.Job, of string, added map[string]string) {
	e.Helper()
	e.fit(&job.Spec.Template, of, added)
	expect.Get(suite.client.BatchV1().Jobs(e.ns).Create(e.Context(), job, metav1.CreateOptions{}))(e)
}

func (e *env) job(name string) *batchv1.Job {
	e.Helper()
	return expect.Get(suite.client.BatchV1().Jobs(e.ns).Get(e.Context(), name, metav1.GetOptions{}))(e)
}

// why is the reason of a condition that a Job has; empty if it has none of the kind.
func why(job *batchv1.Job, kind batchv1.JobConditionType) string {
	for _, c := range job.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}

// awaitMembers waits until REST shows an application in root.batch with so many pods, and these as its
// originators; a name that ends in "-" is a prefix. Without names any originators are accepted.
func (e *env) awaitMembers(app string, pods int, originators ...string) {
	e.Helper()
	what := fmt.Sprintf("application %s in root.batch has %d pods, originators %v", app, pods, originators)
	const path = "/ws/v1/partition/default/queue/root.batch/applications"
	eventually(e, patience, what, func() (bool, string) {
		var list []struct {
			ApplicationID string
			Allocations   []struct {
				Originator     bool
				AllocationTags map[string]string
			}
		}
		if err := e.read(e.Context(), path, &list); err != nil {
			return false, err.Error()
		}
		var names []string
		here := 0
		for _, a := range list {
			for _, allocation := range a.Allocations {
				if a.ApplicationID == app {
					here++
				}
				if a.ApplicationID == app && allocation.Originator {
					names = append(names, allocation.AllocationTags["kubernetes.io/meta/podName"])
				}
			}
		}
		slices.Sort(names)
		same := len(originators) == 0 || slices.EqualFunc(names, originators, func(name, want string) bool {
			return name == want || strings.HasSuffix(want, "-") && strings.HasPrefix(name, want)
		})
		return here == pods && same, fmt.Sprintf("%d pods, originators %v; all: %+v", here, names, list)
	})
}

// TestControllerSamples runs the samples for controllers. Jobs are applied as they are.
// This API server does not know the other kinds: the test makes pods, or the Jobs of a
// JobSet, of their templates and adds the labels that the controllers add.
func TestControllerSamples(t *testing.T) {
	e := setup(t, belowRoot(`{name: batch},
 {name: owed, resources: {guaranteed: {vcore: 8}}, properties: {preemption.delay: 1s}}`))
	e.useNodes(1, localcluster.NodeSpec{CPU: "16", Memory: "32Gi"})
	parts := map[string]func(*env){
		"job.yaml": (*env).runsJobSample, "jobset.yaml": (*env).runsJobSetSample, "kueue.yaml": (*env).runsKueueSample,
		"leaderworkerset.yaml": (*env).runsLeaderWorkerSetSample, "raycluster.yaml": (*env).runsRayClusterSample,
		"workflow.yaml": (*env).runsWorkflowSample,
	}
	files := expect.Get(filepath.Glob(controllerSamples + "*.yaml"))(e)
	expect.That(t, len(files) == len(parts),
		"%d samples, %d of them are tested: %v", len(files), len(parts), files)
	for file, run := range parts { // side by side: the Job controller takes 10 s to replace a pod
		e.run(file, func(e *env) {
			e.Parallel()
			run(e)
		})
	}
}

// runsJobSample: a preempted pod of the Job is recreated. A failure that counts would end
// the Job, because the test sets backoffLimit to 0.
func (e *env) runsJobSample() {
	e = e.apart("job", 1, localcluster.NodeSpec{CPU: "4"})
	job := part[batchv1.Job](e, e.sample("job.yaml", "Job"))
	job.Spec.BackoffLimit = new(int32)
	e.createJob(&job, "job", nil)
	e.expect("job", 4, 0, "")
	e.awaitMembers("report", 4)
	asker := e.createPod(e.pod("job-asker", "job-asker", inQueue("root.owed")))
	e.awaitRunning(asker)
	eventually(e, patience, "the victim is replaced, the Job goes on", func() (bool, string) {
		now := e.job(job.Name)
		if failure := why(now, batchv1.JobFailed); failure != "" || now.Status.Failed != 0 {
			e.Fatalf("the Job counts %d failed pods: %s", now.Status.Failed, failure)
		}
		running, waiting := e.podsOf("job")
		return len(running) == 3 && len(waiting) == 1, fmt.Sprintf("%d run, %d wait", len(running), len(waiting))
	})
	e.endAtOnce(asker)
	e.expect("job", 4, 0, "")
	e.ok(suite.client.BatchV1().Jobs(e.ns).Delete(e.Context(), job.Name, inBackground()))
	e.expectNone("job")
}

// runsJobSetSample: the coordinator is preempted last, and the Job of the victim fails
// with the reason for which the JobSet does not count its restart.
func (e *env) runsJobSetSample() {
	e = e.apart("jobset", 1, localcluster.NodeSpec{CPU: "4"})
	set := e.sample("jobset.yaml", "JobSet")
	coordinator := part[struct {
		ReplicatedJob      string
		JobIndex, PodIndex int
	}](e, set, "spec", "coordinator")
	host := fmt.Sprintf("train-%s-%d-%d", coordinator.ReplicatedJob, coordinator.JobIndex, coordinator.PodIndex)
	for i, replicated := range []string{"driver", "worker"} {
		template := part[batchv1.JobTemplateSpec](e, set, "spec", "replicatedJobs", i, "template")
		e.createJob(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "train-" + replicated + "-0"}, Spec: template.Spec}, "jobset", map[string]string{
			"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/replicatedjob-name": replicated,
			"jobset.sigs.k8s.io/job-index": "0", "jobset.sigs.k8s.io/coordinator": host + ".train",
		})
	}
	e.expect("jobset", 4, 0, "")
	e.awaitMembers("train", 4, "train-driver-0-0-")
	asker := e.createPod(e.pod("jobset-asker", "jobset-asker", inQueue("root.owed")))
	e.awaitRunning(asker)
	eventually(e, patience, "the Job of the victim fails", func() (bool, string) {
		return why(e.job("train-worker-0"), batchv1.JobFailed) != "", "it goes on"
	})
	forgiven := part[[]string](e, set, "spec", "failurePolicy", "rules", 0, "onJobFailureReasons")
	reason := why(e.job("train-worker-0"), batchv1.JobFailed)
	expect.That(e, slices.Contains(forgiven, reason),
		"the Job failed with reason %s, the JobSet forgives %v", reason, forgiven)
	expect.Same(e, "failure of the Job of the coordinator", "", why(e.job("train-driver-0"), batchv1.JobFailed))
	for _, name := range []string{"train-driver-0", "train-worker-0"} {
		e.ok(suite.client.BatchV1().Jobs(e.ns).Delete(e.Context(), name, inBackground()))
	}
	e.expectNone("jobset")
}

// runsKueueSample: the Job has no pods until Kueue, here the test, resumes it.
func (e *env) runsKueueSample() {
	job := part[batchv1.Job](e, e.sample("kueue.yaml", "Job"))
	e.createJob(&job, "kueue", nil)
	eventually(e, patience, "the Job is suspended", func() (bool, string) {
		return why(e.job(job.Name), batchv1.JobSuspended) != "", "not yet"
	})
	e.expect("kueue", 0, 0, "")
	jobs := suite.client.BatchV1().Jobs(e.ns)
	expect.Get(jobs.Patch(e.Context(), job.Name, types.MergePatchType, []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{}))(e)
	e.expect("kueue", 3, 0, "")
	e.awaitMembers("admitted", 3)
	e.ok(jobs.Delete(e.Context(), job.Name, inBackground()))
	e.expectNone("kueue")
}

// runsLeaderWorkerSetSample creates the leader last: its role counts, not its age.
func (e *env) runsLeaderWorkerSetSample() {
	set := e.sample("leaderworkerset.yaml", "LeaderWorkerSet")
	for i, name := range slices.Backward([]string{"serve-0", "serve-0-1", "serve-0-2"}) {
		template := "workerTemplate"
		if i == 0 {
			template = "leaderTemplate"
		}
		e.awaitRunning(e.createFrom(part[corev1.PodTemplateSpec](e, set, "spec", "leaderWorkerTemplate", template), name, "lws", map[string]string{
			"leaderworkerset.sigs.k8s.io/name": "serve", "leaderworkerset.sigs.k8s.io/group-index": "0",
			"leaderworkerset.sigs.k8s.io/worker-index": fmt.Sprint(i),
		}))
	}
	e.awaitMembers("serve", 3, "serve-0")
}

// runsRayClusterSample creates all pods in one second, the head last, so all are the oldest:
// the role of the head counts.
func (e *env) runsRayClusterSample() {
	cluster := e.sample("raycluster.yaml", "RayCluster")
	create := func(name, kind string, path ...any) *corev1.Pod {
		template := part[corev1.PodTemplateSpec](e, cluster, path...)
		template.Spec.SchedulerName = profile
		return e.createFrom(template, name, "ray", map[string]string{
			"ray.io/cluster": "ray", "ray.io/node-type": kind, "ray.io/is-ray-node": "yes",
			placement.KeyLegacyApplicationID: part[string](e, cluster, "metadata", "labels", placement.KeyApplicationID),
			placement.KeyLegacyQueue:         part[string](e, cluster, "metadata", "labels", placement.KeyQueue),
		})
	}
	eventually(e, patience, "all pods are made in one second", func() (bool, string) {
		first := create("ray-workers-worker-a", "worker", "spec", "workerGroupSpecs", 0, "template")
		create("ray-workers-worker-b", "worker", "spec", "workerGroupSpecs", 0, "template")
		last := create("ray-head", "head", "spec", "headGroupSpec", "template")
		if first.CreationTimestamp.Equal(&last.CreationTimestamp) {
			return true, ""
		}
		e.clear("ray")
		return false, "they are made again"
	})
	e.expect("ray", 3, 0, "")
	e.awaitMembers("ray", 3, "ray-head")
}

func (e *env) runsWorkflowSample() {
	workflow := e.sample("workflow.yaml", "Workflow")
	labels := part[map[string]string](e, workflow, "spec", "podMetadata", "labels")
	for key, value := range labels {
		labels[key] = strings.ReplaceAll(value, "{{workflow.uid}}", "9e6f1c52-7a47-4f0e-a0a5-0d8c5f6a3b11")
	}
	for i, item := range part[[]string](e, workflow, "spec", "templates", 0, "steps", 0, 0, "withItems") {
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
		template.Spec.SchedulerName = part[string](e, workflow, "spec", "schedulerName")
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		template.Spec.Containers = []corev1.Container{part[corev1.Container](e, workflow, "spec", "templates", 1, "container")}
		template.Spec.Containers[0].Name = "main"
		e.awaitRunning(e.createFrom(template, fmt.Sprintf("etl-transform-%d-%s", i, item), "workflow", nil))
	}
	e.awaitMembers("9e6f1c52-7a47-4f0e-a0a5-0d8c5f6a3b11", 3)
}
