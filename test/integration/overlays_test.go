package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// asDeployed runs the scheduler with the flags and the environment of an installation's
// Deployment. A kubeconfig replaces the service account files of a pod, and the scheduler
// listens on this machine only.
func (i installation) asDeployed(t *testing.T, pod *corev1.PodSpec) func(*settings) {
	t.Helper()
	access := i.run(t)
	container := pod.Containers[0]
	return func(s *settings) {
		access(s)
		s.launch.Args = nil
		s.launch.Flags = append(slices.Clone(container.Args), "--authentication-kubeconfig=", "--authorization-kubeconfig=", "--bind-address=127.0.0.1")
		for _, v := range container.Env {
			if v.ValueFrom != nil && v.ValueFrom.FieldRef != nil && v.ValueFrom.FieldRef.FieldPath == "metadata.namespace" {
				v.Value = i.namespace
			}
			s.launch.Env = append(s.launch.Env, v.Name+"="+v.Value)
		}
	}
}

// overlayLife is the configuration in which overlays are tested.
const overlayLife = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: capped
      resources: {max: {vcore: 1}}
`

// TestSingle runs overlay single as installed: one scheduler acts without a lease, and
// after an update the next one continues.
func TestSingle(t *testing.T) {
	shipped := newInstallation(t, "single.yaml", "single")
	e := setup(t, "", shipped.asDeployed(t, &deploymentOf(t, "single.yaml").Spec.Template.Spec))
	e.configure(overlayLife)
	e.awaitMetric(reloadSuccess, "1")
	running := e.overCap("p")
	e.create("other", 1, ofProfile(corev1.DefaultSchedulerName))

	// Recreate: the old pod is gone before the new one is created.
	e.checkLog(e.process.Running())
	e.ok(e.process.Stop())
	e.startAnother("")
	e.delete(running)
	e.expect("p", 1, 0, "")
	e.expectStill("other", 0, 1, "") // it belongs to the cluster's own scheduler
	e.expectBooks()
	_, err := suite.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), "paddock-scheduler", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the lease: %v, want none", err)
	}
	checkNothingForbidden(t, asked(t, accountsOf(shipped.namespace)))
}

// overCap makes two pods for a queue that has room for one, and returns the one that runs.
func (e *env) overCap(name string) *corev1.Pod {
	e.Helper()
	e.create(name, 2, inQueue("root.capped"))
	e.expect(name, 1, 1, "")
	running, _ := e.podsOf(name)
	return running[0]
}

// stalls is the factor by which TestHA lengthens the shipped lease: otherwise a leader
// that this machine delays for some seconds would lose the lease and exit, and it is not
// restarted here.
const stalls = 3

// leaseFlags are those of overlay ha.
var leaseFlags = map[string]time.Duration{
	"--leader-elect-lease-duration": 4 * time.Second,
	"--leader-elect-renew-deadline": 3 * time.Second,
	"--leader-elect-retry-period":   500 * time.Millisecond,
}

// stretchLease checks that a container has these flags, and multiplies their times.
func stretchLease(t *testing.T, c *corev1.Container) {
	t.Helper()
	found := 0
	for i, arg := range c.Args {
		flag, value, _ := strings.Cut(arg, "=")
		if want, ok := leaseFlags[flag]; ok {
			found++
			if value != want.String() {
				t.Errorf("%s, want %v", arg, want)
			}
			c.Args[i] = flag + "=" + (want * stalls).String()
		}
	}
	if found != len(leaseFlags) {
		t.Errorf("%d flags of the lease in %q, want %d", found, c.Args, len(leaseFlags))
	}
}

// leads tells whether its process is the active one.
func (e *env) leads() bool {
	e.Helper()
	return e.process.Running() && e.metric(`leader_election_master_status{name="kube-scheduler"}`) == "1"
}

// TestHA runs overlay ha as installed, with two replicas and a lengthened lease: the
// lease has the duration of the flags, and a leader that is stopped in an orderly way
// gives it up, so the other replica continues at once. TestFailoverWhilePreempting has a
// leader that is killed, and a lease that has to run out.
func TestHA(t *testing.T) {
	shipped := newInstallation(t, "ha.yaml", "ha")
	deployment := deploymentOf(t, "ha.yaml")
	if n := *deployment.Spec.Replicas; n != 3 {
		t.Errorf("there are %d replicas, want 3", n)
	}
	stretchLease(t, &deployment.Spec.Template.Spec.Containers[0])
	e := setup(t, "", shipped.asDeployed(t, &deployment.Spec.Template.Spec))
	e.configure(overlayLife)
	e.awaitLeader("")
	if d := e.lease().LeaseDurationSeconds; d == nil || *d != 4*stalls {
		t.Errorf("the lease is for %v, want %d s", d, 4*stalls)
	}
	e.awaitMetric(reloadSuccess, "1")
	running := e.overCap("p")

	standby := *e
	standby.startAnother("b")
	if standby.leads() {
		e.process, standby.process = standby.process, e.process
		e.rest, standby.rest = standby.rest, e.rest
	}
	if !e.leads() {
		t.Error("neither of the two leads")
	}
	first := *e.lease().HolderIdentity
	e.checkLog(e.process.Running())
	e.ok(e.process.Stop())
	if holder := e.lease().HolderIdentity; holder != nil && *holder == first {
		t.Errorf("%s has ended and keeps the lease", first)
	}
	e.process, e.rest = standby.process, standby.rest
	second := e.awaitLeader(first)
	e.delete(running)
	e.expect("p", 1, 0, "")
	e.expectBooks()
	t.Logf("led by %s, then by %s", first, second)
	checkNothingForbidden(t, asked(t, accountsOf(shipped.namespace)))
}

// TestMigrate runs overlay migrate-from-yunikorn as installed, in place of YuniKorn's
// chart: with its two ConfigMaps, and for pods that were made for it.
func TestMigrate(t *testing.T) {
	const file = "migrate-from-yunikorn.yaml"
	shipped := newInstallation(t, file, "migrate")
	e := setup(t, "", shipped.asDeployed(t, &deploymentOf(t, file).Spec.Template.Spec))
	e.yuniKornWas()
	e.awaitMetric(reloadSuccess, "1")

	// With labels as spark-submit writes them; the user's limit is in yunikorn-configs.
	spark := func(p *corev1.Pod) {
		p.Labels["queue"], p.Labels["applicationId"] = "root.spark.etl", "nightly-wordcount"
	}
	driver := e.createPod(e.pod("driver", "spark", spark, ofUser("ada", "analysts")))
	e.awaitRunning(driver)
	executor := e.createPod(e.pod("executor", "spark", spark, ofUser("ada", "analysts")))
	e.awaitRefused(executor, reasons.OverUserLimit)
	e.delete(driver)
	e.awaitRunning(executor)
	e.awaitQueue("root.spark.etl", "uses one core", uses(1))
	checkNothingForbidden(t, asked(t, accountsOf(shipped.namespace)))
}

// yuniKornWas makes the ConfigMap of YuniKorn's chart, and the one that is made by hand
// beside it: the chart's ConfigMap names the key of the other one that has the queues.
func (e *env) yuniKornWas() {
	e.Helper()
	for name, data := range map[string]map[string]string{
		config.DefaultsConfigMap: {"service.policyGroup": "batch", "batch.yaml": "partitions: [{name: default, queues: [{name: root}]}]"},
		config.QueuesConfigMap: {"batch.yaml": `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: spark
      queues:
      - name: etl
        limits:
        - limit: one core each
          users: [ada]
          maxresources: {vcore: 1}
`},
	} {
		expect.Get(suite.client.CoreV1().ConfigMaps(e.configNamespace()).Create(e.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{}))(e)
	}
}
