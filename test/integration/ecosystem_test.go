//go:build ecosystem

package integration

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	certutil "k8s.io/client-go/util/cert"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/localcluster/demo"
	"github.com/paddock-scheduler/paddock/internal/nodeagent"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
)

// Other projects' programs run here as their authors release them, beside two queues that
// fight for the same nodes. The part "ecosystem" of the nightly run builds them.
var (
	ecosystemDir = flag.String("ecosystem", "", "the directory with the programs and their CRDs (hack/ecosystem.sh)")
	ecosystemFor = flag.Duration("ecosystem-for", 10*time.Minute, "how long each program runs")
)

const ecosystemQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: red
      resources: {guaranteed: {vcore: 12}}
      properties: {preemption.delay: 5s}
    - name: blue
      resources: {guaranteed: {vcore: 8}}
      properties: {preemption.delay: 5s}
    - name: owed
      resources: {guaranteed: {vcore: 20}}
      properties: {preemption.delay: 5s}
    - name: capped
      resources: {max: {vcore: 9}}
    - name: user
      limits: [{limit: each, users: ["*"], maxresources: {vcore: 4}}]
    - {name: apps, maxapplications: 1}
    - name: daemons
    - name: batch
    - name: loose
`

// runs starts a program of the ecosystem; it ends with the test. Its output is a log
// beside those of the cluster.
func (e *env) runs(name string, environment []string, args ...string) {
	e.Helper()
	log := expect.Get(os.Create(filepath.Join(filepath.Dir(e.process.Log()), name+".log")))(e)
	command := exec.Command(filepath.Join(*ecosystemDir, name), args...)
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), append(environment, "KUBECONFIG="+suite.cluster.KubeconfigPath(localcluster.UserAdmin))...)
	e.ok(command.Start())
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	e.Cleanup(func() {
		defer func() { _ = log.Close() }()
		select {
		case err := <-ended:
			text, _ := os.ReadFile(log.Name())
			e.Errorf("%s has ended: %v\n%s", name, err, text[max(0, len(text)-2000):])
			return
		default:
		}
		_ = command.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = command.Process.Kill()
			<-ended
		}
	})
}

// applyText applies the objects of a text in YAML, each until the API server knows its kind.
func (e *env) applyText(text string) {
	e.Helper()
	objects := expect.Get(demo.Read(fstest.MapFS{"objects.yaml": {Data: []byte(text)}}))(e)
	for _, o := range objects {
		e.applyOne(o)
	}
}

func (e *env) applyOne(o *unstructured.Unstructured) {
	e.Helper()
	eventually(e, patience, o.GetKind()+" "+o.GetName()+" is applied", func() (bool, string) {
		_, err := newApplier(e.T).apply(e.Context(), o, false)
		return err == nil, fmt.Sprint(err)
	})
}

// applyUntilTheEnd is applyOne for an object that is deleted when the test ends.
func (e *env) applyUntilTheEnd(o *unstructured.Unstructured) {
	e.Helper()
	e.applyOne(o)
	e.Cleanup(func() { e.ok(newApplier(e.T).delete(context.Background(), o)) })
}

// definitions installs the CRDs of a program.
func (e *env) definitions(of string) {
	e.Helper()
	files := expect.Get(filepath.Glob(filepath.Join(*ecosystemDir, "crds", of, "*.yaml")))(e)
	if len(files) == 0 {
		e.Fatalf("no CRDs of %s in %s: run hack/ecosystem.sh", of, *ecosystemDir)
	}
	for _, file := range files {
		text := expect.Get(os.ReadFile(file))(e)
		e.applyText(string(text))
	}
}

// lasts lets a load run for a time, and fails at once if the scheduler ends.
func (e *env) lasts(d time.Duration) {
	e.Helper()
	throughout(e.T, d, "the scheduler runs", func() (bool, string) { return e.process.Running(), "it has ended" })
}

func (e *env) scale(queue string, replicas int32) {
	e.Helper()
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	expect.Get(suite.client.AppsV1().Deployments(e.ns).Patch(e.Context(), queue, types.MergePatchType, []byte(patch), metav1.PatchOptions{}))(e)
}

// tellVictims logs the victims of the groups of a test, fails if some were avoidable, and
// returns how many there were. Beside Karpenter only those count that were avoidable on their
// own node: it adds nodes and takes them away, and on each a DaemonSet pod comes first.
func (c *history) tellVictims(part string, groups ...string) int {
	c.env.Helper()
	c.tail.catchUp(c.env.Context(), c.env)
	victims := c.preempted(groups...)
	there, anywhere := c.avoidable(victims, groups...)
	c.env.Logf("ecosystem: %s: %v: %d victims, avoidable %d by their own node and %d by any node",
		part, *ecosystemFor, len(victims), len(there), len(anywhere))
	for _, g := range groups {
		c.env.Logf("ecosystem: %s: %s: %d victims, %d pods bound", part, g, len(c.preempted(g)), len(c.boundByNow(g)))
	}
	if wrong := len(there); wrong > 0 || part != "karpenter" && len(anywhere) > 0 {
		c.env.Errorf("%d victims were avoidable: %s; by any node: %s", wrong, strings.Join(there, "; "), strings.Join(anywhere, ", "))
	}
	return len(victims)
}

// TestEcosystemJobSet: the Jobs of two JobSets, in queues with guarantees, end one pod
// after another for as long as the test runs, beside a Deployment that would take all. If it
// comes last, there are at most 15 victims. If it comes first, it has all 24 cores, and 20 more
// of its pods have to go for the guarantees.
func TestEcosystemJobSet(t *testing.T) {
	for _, c := range []struct {
		part       string
		looseFirst bool
		victims    int
	}{
		{"jobset", false, 15},
		{"jobset-loose-first", true, 20 + 15},
	} {
		t.Run(c.part, func(t *testing.T) { runJobSets(t, c.part, c.looseFirst, c.victims) })
	}
}

func runJobSets(t *testing.T, part string, looseFirst bool, most int) {
	e := setup(t, ecosystemQueues)
	e.useNodes(6, localcluster.NodeSpec{CPU: "4"})
	c := e.keepHistory()
	e.runJobSet()
	if looseFirst {
		e.deploy("loose", 24)
		e.expect("loose", 24, 0, "")
	}
	for queue, parallelism := range map[string]int64{"red": 20, "blue": 16} {
		e.applyUntilTheEnd(e.jobSet(queue, parallelism))
	}
	if !looseFirst {
		eventually(e, patience, "the guarantees are in use", func() (bool, string) {
			red, _ := e.podsOf("red")
			blue, _ := e.podsOf("blue")
			return len(red) >= 12 && len(blue) >= 8, fmt.Sprintf("%d of red, %d of blue run", len(red), len(blue))
		})
		e.deploy("loose", 24)
	}
	e.lasts(*ecosystemFor)
	if n := c.tellVictims(part, "red", "blue", "loose"); n > most {
		t.Errorf("%d victims, want at most %d", n, most)
	}
	if ended := len(c.boundByNow("red")); ended < 12+int(ecosystemFor.Seconds()/40)*6 {
		t.Errorf("only %d pods of red were bound", ended)
	}
}

// runJobSet starts the JobSet controller. Its webhooks are not installed, because the API
// server does not reach them.
func (e *env) runJobSet() {
	e.Helper()
	e.definitions("jobset")
	dir := e.TempDir()
	config := filepath.Join(dir, "config.yaml")
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	e.ok(err)
	e.ok(os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600))
	e.ok(os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	_, port, err := net.SplitHostPort(expect.Get(localcluster.FreeAddress())(e))
	e.ok(err)
	e.ok(os.WriteFile(config, fmt.Appendf(nil, `
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
webhook: {host: 127.0.0.1, port: %s, certDir: %s}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "0"}
`, port, dir), 0o600))
	e.runs("jobset", nil, "--config="+config, "--metrics-bind-address=0", "--health-probe-bind-address=0")
}

// TestEcosystemJobSetSample: the sample of docs/from-elsewhere.md runs on the JobSet controller. When
// one of its pods is preempted, the JobSet starts again as a whole and counts no restart.
func TestEcosystemJobSetSample(t *testing.T) {
	e := setup(t, ecosystemQueues)
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	e.runJobSet()
	set := &unstructured.Unstructured{Object: e.sample("jobset.yaml", "JobSet")}
	set.SetNamespace(e.ns)
	setField := func(value any, path ...string) { e.ok(unstructured.SetNestedField(set.Object, value, path...)) }
	// The webhook would set these.
	setField("All", "spec", "successPolicy", "operator")
	setField("AnyOrder", "spec", "startupPolicy", "startupPolicyOrder")
	setField(map[string]any{"enableDNSHostnames": true, "publishNotReadyAddresses": true}, "spec", "network")
	for _, job := range set.Object["spec"].(map[string]any)["replicatedJobs"].([]any) {
		e.refit("train", job.(map[string]any), "template", "spec", "template")
	}
	first := e.loseAWorker(set, "train", 4, "train-driver-0-0-")
	eventually(e, patience, "all pods of the JobSet are new", func() (bool, string) {
		pods, _ := e.podsOf("train")
		old := slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			return slices.ContainsFunc(first, func(f *corev1.Pod) bool { return f.UID == p.UID })
		})
		return len(pods) == 4 && !old, fmt.Sprint(len(pods))
	})
	sets := expect.Get(newApplier(t).of(set))(e)
	now := expect.Get(sets.Get(e.Context(), set.GetName(), metav1.GetOptions{}))(e)
	restarts, _, err := unstructured.NestedInt64(now.Object, "status", "restarts")
	e.ok(err)
	counted, _, err := unstructured.NestedInt64(now.Object, "status", "restartsCountTowardsMax")
	e.ok(err)
	t.Logf("ecosystem: jobset-sample: %d restarts, %d of them count", restarts, counted)
	if restarts != 1 || counted != 0 {
		t.Errorf("%d restarts, %d of them count; want one that does not", restarts, counted)
	}
}

// refit fits the template at a path of a sample to the test.
func (e *env) refit(of string, object map[string]any, path ...string) {
	e.Helper()
	fields, _, err := unstructured.NestedMap(object, path...)
	e.ok(err)
	template := part[corev1.PodTemplateSpec](e, fields)
	e.fit(&template, of, nil)
	e.ok(unstructured.SetNestedField(object, fieldsOf(e, &template), path...))
}

func fieldsOf(e *env, template *corev1.PodTemplateSpec) map[string]any {
	e.Helper()
	return expect.Get(runtime.DefaultUnstructuredConverter.ToUnstructured(template))(e)
}

// loseAWorker runs a sample with so many pods in a group, and has one of them preempted, which
// is not the originator. Its controller makes it again. The pods of the begin are returned.
func (e *env) loseAWorker(sample *unstructured.Unstructured, of string, pods int, originator string) []*corev1.Pod {
	e.Helper()
	c := e.keepHistory()
	e.applyUntilTheEnd(sample)
	e.expect(of, pods, 0, "")
	e.awaitMembers(of, pods, originator)
	first, _ := e.podsOf(of)
	asker := e.createPod(e.pod("asker", "asker", inQueue("root.owed")))
	e.awaitRunning(asker)
	if victims := c.preempted(of); len(victims) != 1 || strings.HasPrefix(victims[0].pod.Name, originator) {
		e.Errorf("preempted %s, want one worker", names(victims))
	}
	e.endAtOnce(asker)
	e.expect(of, pods, 0, "")
	return first
}

// TestEcosystemKubeRay: the sample of docs/from-elsewhere.md runs on KubeRay's operator, which
// gives its pods scheduler, queue and application. The head is the originator, so a worker
// goes for a pod of another queue, and the operator makes a new one.
func TestEcosystemKubeRay(t *testing.T) {
	e := setup(t, ecosystemQueues)
	e.useNodes(1, localcluster.NodeSpec{CPU: "3"})
	e.definitions("kuberay")
	e.runs("kuberay", nil, "--batch-scheduler=yunikorn", "--enable-leader-election=false", "--metrics-addr=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0")
	cluster := &unstructured.Unstructured{Object: e.sample("raycluster.yaml", "RayCluster")}
	cluster.SetNamespace(e.ns)
	e.refit("ray", cluster.Object, "spec", "headGroupSpec", "template")
	workers := cluster.Object["spec"].(map[string]any)["workerGroupSpecs"].([]any)[0]
	e.refit("ray", workers.(map[string]any), "template")
	e.loseAWorker(cluster, "ray", 3, "ray-head-")
	e.awaitMembers("ray", 3, "ray-head-")
	t.Log("ecosystem: kuberay-sample: a worker was preempted and made again")
}

// TestEcosystemSamplesFollowTheirDefinitions: the CRDs of the other projects know every
// field of the samples, and have no rule against a value. Their webhooks are not asked.
func TestEcosystemSamplesFollowTheirDefinitions(t *testing.T) {
	e := setup(t, ecosystemQueues)
	for _, program := range []string{"lws", "kuberay", "kueue", "argo"} {
		e.definitions(program)
	}
	ofCluster := []string{"ResourceFlavor", "ClusterQueue"}
	for _, o := range expect.Get(demo.Read(os.DirFS(controllerSamples)))(e) {
		if o.GetKind() == "JobSet" {
			continue // its webhook sets fields that must be there; TestEcosystemJobSetSample runs it
		}
		if !slices.Contains(ofCluster, o.GetKind()) {
			o.SetNamespace(e.ns)
		}
		eventually(e, patience, o.GetKind()+" "+o.GetName()+" follows its definition", func() (bool, string) {
			_, err := newApplier(t).apply(e.Context(), o, true)
			return err == nil, fmt.Sprint(err)
		})
	}
}

// jobSet makes a JobSet with one Job. Its pods run for 40 s each. It has the defaults
// that JobSet's webhook would set: the API server does not reach that.
func (e *env) jobSet(queue string, parallelism int64) *unstructured.Unstructured {
	e.Helper()
	completes := func(p *corev1.Pod) { p.Annotations[nodeagent.AnnotationCompleteAfter] = "40s" }
	template := e.template(queue, inQueue("root."+queue), completes)
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": map[string]any{"name": queue, "namespace": e.ns},
		"spec": map[string]any{
			"successPolicy": map[string]any{"operator": "All"}, "startupPolicy": map[string]any{"startupPolicyOrder": "AnyOrder"},
			"network": map[string]any{"enableDNSHostnames": false, "publishNotReadyAddresses": true},
			"replicatedJobs": []any{map[string]any{
				"name": "work", "replicas": int64(1),
				"template": map[string]any{"spec": map[string]any{
					"completionMode": "Indexed", "completions": int64(2000), "parallelism": parallelism, "backoffLimit": int64(1000), "template": fieldsOf(e, &template),
				}},
			}},
		},
	}}
}

// TestEcosystemDescheduler: the descheduler evicts pods of two queues from full nodes
// every 15 s. The room of an evicted pod goes to the pod that replaces it where its queue
// is below its guarantee: no pod is preempted.
func TestEcosystemDescheduler(t *testing.T) {
	e := setup(t, ecosystemQueues)
	e.useNodes(8, localcluster.NodeSpec{CPU: "4"})
	c := e.keepHistory()
	stops := stopsAfter(2 * time.Second)
	e.deploy("owed", 12, stops)
	e.expect("owed", 12, 0, "")
	e.deploy("loose", 40, stops)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	e.ok(os.WriteFile(policy, fmt.Appendf(nil, `
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
nodeSelector: %s=%s
profiles:
- name: all
  pluginConfig:
  - name: DefaultEvictor
    args: {nodeFit: false}
  - name: PodLifeTime
    args: {maxPodLifeTimeSeconds: 60}
  - name: RemoveDuplicates
  - name: LowNodeUtilization
    args:
      thresholds: {cpu: 60}
      targetThresholds: {cpu: 80}
  plugins:
    deschedule: {enabled: [PodLifeTime]}
    balance: {enabled: [RemoveDuplicates, LowNodeUtilization]}
`, pool, e.nodePool), 0o600))
	e.runs("descheduler", nil, "--policy-config-file="+policy, "--descheduling-interval=15s", "--secure-port=0", "--v=1",
		"--client-connection-kubeconfig="+suite.cluster.KubeconfigPath(localcluster.UserAdmin))
	e.lasts(*ecosystemFor)
	owed, loose := len(c.evicted("owed")), len(c.evicted("loose"))
	t.Logf("ecosystem: descheduler: %d pods of owed and %d of loose went", owed, loose)
	if owed == 0 || loose == 0 {
		t.Error("the descheduler evicts nothing")
	}
	if n := c.tellVictims("descheduler", "owed", "loose"); n > 0 {
		t.Errorf("%d victims, want none", n)
	}
}

const karpenterPool = `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: four}
spec:
  limits: {cpu: "48"} # a kwok node counts with what its first pods request
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 5s, budgets: [{nodes: "100%%"}]}
  template:
    metadata:
      labels: {local.paddock.io/node: simulated, %s: %s}
    spec:
      expireAfter: Never
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: karpenter.kwok.sh/instance-cpu, operator: In, values: ["4"]}
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
`

// TestEcosystemKarpenter: Karpenter adds nodes of four cores, each for a DaemonSet pod of half a
// core and three pods of 0.9, up to a limit. A fourth pod fits there only if it takes the room
// of the DaemonSet pod. Karpenter adds as many as the pods need that max, the
// limit of a user and maxapplications let run, and removes nodes that a lowered max leaves
// empty while other pods wait. No pod is bound to a new node while a DaemonSet pod is there that
// needs the room, no node stays empty, and all of them go in the end.
func TestEcosystemKarpenter(t *testing.T) {
	e := setup(t, ecosystemQueues)
	e.nodePool = e.id
	c := e.keepHistory()
	lowered := strings.Replace(ecosystemQueues, "max: {vcore: 9}", "max: {vcore: 3}", 1)
	small, large := requests("cpu", "900m"), requests("cpu", "3")
	e.createDaemonSet("agent", inQueue("root.daemons"), requests("cpu", "500m"))
	e.deploy("capped", 40, small)
	e.expectWanted("capped", 40, 10)
	e.configure(lowered)
	e.expectWanted("capped", 40, 3)
	nodes := e.runKarpenter()
	nodes.expect(1, 1, "the max of 9 cores was lowered to 3, which is three pods of 0.9")
	e.configure(ecosystemQueues)
	nodes.expect(4, 4, "a max of 9 cores is ten pods of 0.9")
	e.configure(lowered)
	e.keepOneNode("capped")
	nodes.expect(1, 4, "three pods of 0.9 run, and 37 wait for the max of 3 cores")
	e.configure(ecosystemQueues)
	nodes.expect(4, 7, "the max is 9 cores again")
	e.create("user", 10, inQueue("root.user"), large)
	nodes.expect(5, 8, "a limit of 4 cores for each user is one pod of 3")
	e.create("apps", 5, inQueue("root.apps"), large, func(p *corev1.Pod) { p.Labels[placement.KeyApplicationID] = p.Name })
	nodes.expect(6, 9, "a pod of one application may run")
	e.deploy("loose", 14, small)
	nodes.expect(10, 13, "14 more pods may run, two of them beside the others")
	e.expect("loose", 14, 0, "")
	e.scale("loose", 40)
	e.deploy("owed", 0, small)
	for began, round := time.Now(), 0; time.Since(began) < *ecosystemFor; round++ {
		e.scale("owed", int32([]int{8, 2, 16, 0}[round%4]))
		e.lasts(30 * time.Second)
	}
	groups := []string{"owed", "loose", "capped", "user", "apps"}
	c.tellVictims("karpenter", groups...)
	c.expectAgentsFirst(groups...)
	for _, queue := range groups[:3] {
		e.scale(queue, 0)
	}
	for _, of := range groups[3:] {
		running, waiting := e.podsOf(of)
		for _, p := range slices.Concat(waiting, running) {
			e.endAtOnce(p)
		}
	}
	nodes.await(0, "nothing is wanted")
	nodes.expectUsed(c, groups...)
}

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

// expectAgentsFirst fails if a pod of the groups was bound while a DaemonSet pod was there for
// which it was preempted. No room is kept for one that its controller has not made yet, and
// the scheduler hears of it a moment later.
func (c *history) expectAgentsFirst(groups ...string) {
	c.env.Helper()
	const heard = 250 * time.Millisecond
	made := map[string]time.Time{}
	for _, a := range c.bound("agent") {
		made[a.pod.Name] = c.of(a.pod.UID)[0].at
	}
	early := 0
	for _, v := range c.preempted(groups...) {
		why := conditionOf(v.pod, corev1.DisruptionTarget)
		for name, at := range made {
			if why == nil || !strings.Contains(why.Message, "/"+name+",") {
				continue
			}
			early++
			if _, bound := c.boundAt(v.pod.UID); bound.Sub(at) > heard {
				c.env.Errorf("%s got its node %v after DaemonSet pod %s was made, and was preempted for it", v.pod.Name, bound.Sub(at), name)
			}
		}
	}
	c.env.Logf("ecosystem: karpenter: %d victims got their nodes before a DaemonSet pod of these was made", early)
}

// keepOneNode ends the pods of a Deployment on all nodes but one that has most of them; others
// wait in their place.
func (e *env) keepOneNode(of string) {
	e.Helper()
	running, _ := e.podsOf(of)
	on := map[string]int{}
	for _, p := range running {
		on[p.Spec.NodeName]++
	}
	most := slices.MaxFunc(slices.Sorted(maps.Keys(on)), func(a, b string) int { return cmp.Compare(on[a], on[b]) })
	for _, p := range running {
		if p.Spec.NodeName != most {
			e.endAtOnce(p)
		}
	}
}

// runKarpenter starts Karpenter with a NodePool of the test, and records its nodes.
func (e *env) runKarpenter() *seenNodes {
	e.Helper()
	e.definitions("karpenter")
	e.applyText(fmt.Sprintf(karpenterPool, pool, e.nodePool))
	nodes := e.watchNodes()
	e.runs("karpenter", []string{"DISABLE_LEADER_ELECTION=true", "SYSTEM_NAMESPACE=kube-system", "METRICS_PORT=0", "HEALTH_PROBE_PORT=0"})
	return nodes
}

// seenNodes are the nodes of a test by a watch, which sees also those that go at once.
type seenNodes struct {
	env  *env
	mu   sync.Mutex
	here map[string]bool // false: gone
}

// watchNodes records the nodes of the test's pool from now on, until the test ends.
func (e *env) watchNodes() *seenNodes {
	e.Helper()
	seen := &seenNodes{env: e, here: map[string]bool{}}
	factory := informers.NewSharedInformerFactoryWithOptions(suite.client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = pool + "=" + e.nodePool
	}))
	nodes := factory.Core().V1().Nodes().Informer()
	e.ok(nodes.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			e.Errorf("the watch of nodes cannot be continued: %v", err)
		}
	}))
	e.Cleanup(factory.Shutdown) // the context of the test has ended then
	expect.Get(nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { seen.note(o, true) }, DeleteFunc: func(o any) { seen.note(o, false) },
	}))(e)
	factory.Start(e.Context().Done())
	factory.WaitForCacheSync(e.Context().Done())
	return seen
}

func (s *seenNodes) note(node any, here bool) {
	name, err := cache.DeletionHandlingObjectToName(node)
	expect.Holds(s.env, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.here[name.Name] = here
}

// now counts the nodes that are there.
func (s *seenNodes) now() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, here := range s.here {
		if here {
			n++
		}
	}
	return n
}

// ever returns the names of all nodes that were there.
func (s *seenNodes) ever() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.here))
}

// await waits until there are so many nodes.
func (s *seenNodes) await(n int, why string) {
	s.env.Helper()
	eventually(s.env, 3*time.Minute, fmt.Sprintf("there are %d nodes: %s", n, why), func() (bool, string) {
		got := s.now()
		return got == n, fmt.Sprint(got)
	})
}

// expect waits until there are so many nodes, and fails if that changes soon after or another
// number was bought by then, those that are gone included.
func (s *seenNodes) expect(n, bought int, why string) {
	s.env.Helper()
	s.await(n, why)
	s.env.lasts(15 * time.Second)
	if now, ever := s.now(), len(s.ever()); now != n || ever != bought {
		s.env.Errorf("%d nodes are there and %d were bought, want %d and %d: %s", now, ever, n, bought, why)
	}
}

// expectUsed fails if a node never had a pod of the groups.
func (s *seenNodes) expectUsed(c *history, groups ...string) {
	s.env.Helper()
	used := map[string]bool{}
	for _, of := range groups {
		for _, b := range c.boundByNow(of) {
			used[b.pod.Spec.NodeName] = true
		}
	}
	bought := s.ever()
	needless := slices.DeleteFunc(slices.Clone(bought), func(name string) bool { return used[name] })
	s.env.Logf("ecosystem: karpenter: %d nodes bought, %d needless", len(bought), len(needless))
	if len(needless) > 0 {
		s.env.Errorf("%d of %d nodes never had a pod: %s", len(needless), len(bought), strings.Join(needless, " "))
	}
}
