package integration

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/localcluster/demo"
	"github.com/paddock-scheduler/paddock/manifests/rbac"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// asDeployed runs the scheduler with the flags and the environment of an installation's
// Deployment. A kubeconfig replaces the service account files of a pod, and the scheduler
// listens on this machine only.
func (i installation) asDeployed(t *testing.T) func(*settings) {
	t.Helper()
	access := i.run(t)
	container := deploymentOf(t, i.objects).Spec.Template.Spec.Containers[0]
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

// TestSingle runs overlay single as installed: one scheduler acts without a lease, and
// after an update the next one continues.
func TestSingle(t *testing.T) {
	shipped := newInstallation(t, "single.yaml", "single")
	e := setup(t, "", shipped.asDeployed(t))
	e.configure(oneLeaf("1"))
	e.awaitMetric(reloadSuccess, "1")
	e.create("p", 2, inQueue("root.a")) // there is room for one
	e.expect("p", 1, 1, "")
	running, _ := e.podsOf("p")
	e.create("other", 1, ofProfile(corev1.DefaultSchedulerName))

	// Recreate: the old pod is gone before the new one is created.
	e.checkLog(e.process.Running())
	e.ok(e.process.Stop())
	e.startAnother("")
	e.delete(running[0])
	e.expect("p", 1, 0, "")
	e.expectStill("other", 0, 1, "") // it belongs to the cluster's own scheduler
	e.expectBooks()
	_, err := suite.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), "paddock-scheduler", metav1.GetOptions{})
	expect.That(t, apierrors.IsNotFound(err), "the lease: %v, want none", err)
	checkNothingForbidden(t, asked(t, accountsOf(shipped.namespace)))
}

// replacedUser is the user of the control plane's static pod.
const replacedUser = "system:kube-scheduler"

// ofOverlay reads a file that is copied to nodes of the control plane.
func ofOverlay(t *testing.T, name string) []byte {
	t.Helper()
	return expect.Get(os.ReadFile(filepath.Join(root, "manifests/overlays", name)))(t)
}

// staticPod is the pod of the control plane.
func staticPod(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	objects := expect.Get(demo.Read(fstest.MapFS{"static-pod.yaml": {Data: ofOverlay(t, "replace-default/static-pod.yaml")}}))(t)
	if len(objects) != 1 {
		t.Fatalf("%d objects, want one pod", len(objects))
	}
	return objects[0]
}

// asStaticPod runs the scheduler as the control plane does: as its user, with a
// certificate, and only with the flags of the static pod.
func asStaticPod(t *testing.T) func(*settings) {
	t.Helper()
	pod := &corev1.Pod{}
	expect.OK(t, runtime.DefaultUnstructuredConverter.FromUnstructured(staticPod(t).Object, pod))
	kubeconfig := expect.Get(suite.cluster.CertificateKubeconfig(replacedUser, audited))(t)
	return func(s *settings) {
		s.shipped, s.configNamespace = ofOverlay(t, "replace-default/scheduler.yaml"), accountNamespace
		s.launch.Kubeconfig, s.launch.Flags = kubeconfig, pod.Spec.Containers[0].Args
	}
}

// withoutBindings removes, until the test ends, all bindings of the control plane's user
// in the shared cluster beyond those that the API server itself creates.
func withoutBindings(t *testing.T, a *applier) {
	objects := expect.Get(demo.Read(rbac.Files))(t)
	for _, o := range objects {
		if _, bound, _ := unstructured.NestedMap(o.Object, "roleRef"); !bound {
			continue
		}
		client := expect.Get(a.of(o))(t)
		was := expect.Get(client.Get(t.Context(), o.GetName(), metav1.GetOptions{}))(t)
		again := o.DeepCopy()
		again.Object["subjects"] = was.Object["subjects"]
		t.Cleanup(func() {
			_, err := a.apply(context.Background(), again, false)
			expect.Holds(t, err)
		})
		expect.OK(t, a.delete(t.Context(), o))
	}
}

// TestReplaceDefault runs the scheduler in place of kube-scheduler: as its user, with the
// flags and the configuration of the control plane, and with only the rights that this
// user has in every cluster and those of the overlay. Without the latter the log says
// what is forbidden; with them nothing is forbidden, and each right is used. The
// configuration of overlay replace-default-daemonsets needs no others.
func TestReplaceDefault(t *testing.T) {
	a := newApplier(t)
	overlay := installed(t, "replace-default.yaml")
	ours, upstream := boundRoles(t, overlay)
	if len(ours) != 3 || len(upstream) != 0 {
		t.Fatalf("the overlay binds %v and %q, want three roles of ours", ours, upstream)
	}
	t.Cleanup(func() { forgetLease(t) })
	withoutBindings(t, a)
	awaitOurs(t, replacedUser, ours, false)

	forgetLease(t)
	e := setup(t, "", asStaticPod(t), func(s *settings) { s.refused = true })
	t.Cleanup(func() { // its namespace stays
		maps := suite.client.CoreV1().ConfigMaps(accountNamespace)
		expect.Holds(e, notFoundIsFine(maps.Delete(context.Background(), config.QueuesConfigMap, metav1.DeleteOptions{})))
	})
	e.configure(installLife)
	for _, what := range []string{"configmaps", "priorityclasses", "daemonsets"} {
		eventually(t, patience, "the log says that "+what+" are forbidden", func() (bool, string) {
			return len(e.logLines("forbidden", what)) > 0, strings.Join(e.logLines("forbidden"), "\n")
		})
	}
	e.checkLog(e.process.Running())
	e.kill()

	began := time.Now()
	for _, o := range overlay {
		expect.Get(a.apply(t.Context(), o, false))(e)
	}
	awaitOurs(t, replacedUser, ours, true)
	forgetLease(t)
	e.settings.refused = false
	e.startAnother("")
	first := e.awaitLeader("")
	e.awaitMetric(reloadSuccess, "1")
	e.lifeOfQuota()
	e.lifeOfDefault("default")
	e.lifeOfPreemption()
	e.lifeOfVolume()
	e.lifeOfConfiguration()

	serveDaemonSet := e.lifeOfPlainDaemonSet()

	// The next node of the control plane takes over, with room for ordinary DaemonSets.
	e.settings.shipped = ofOverlay(t, "replace-default-daemonsets/scheduler.yaml")
	e.checkLog(e.process.Running())
	e.kill()
	forgetLease(t)
	e.listsFirst()
	e.startAnother("b")
	e.awaitLeader(first)
	e.create("after", 1, inQueue("root.owed"), requests("cpu", "100m"))
	e.expect("after", 1, 0, "")
	e.lifeOfDefault("default-after")
	serveDaemonSet()
	e.expectBooks()

	events := slices.DeleteFunc(asked(t, replacedUser), func(event auditv1.Event) bool {
		return event.RequestReceivedTimestamp.Time.Before(began)
	})
	checkNothingForbidden(t, events)
	checkNeeded(t, events, ours, []string{
		"system:kube-scheduler", "system:volume-scheduler", "extension-apiserver-authentication-reader", "system::leader-locking-kube-scheduler",
	})
}

// startAnother starts the successor of a killed scheduler, with an address and a log of its own.
func (e *env) startAnother(suffix string) {
	e.Helper()
	e.settings.launch.Name = "scheduler-" + e.id + "-again" + suffix
	e.rest = expect.Get(localcluster.FreeAddress())(e.T)
	e.start()
}

// lifeOfDefault: pods of no queue, beside those of queues.
func (e *env) lifeOfDefault(name string) {
	e.Helper()
	e.create(name, 2, ofProfile(corev1.DefaultSchedulerName), inQueue("root.capped"), requests("cpu", "100m"))
	e.expect(name, 2, 0, "")
}

// lifeOfPlainDaemonSet: a DaemonSet of no queue finds its node full, and preempts
// nothing. The returned function expects that it has preempted one pod by now, and runs.
func (e *env) lifeOfPlainDaemonSet() (served func()) {
	part := e.apart("daemon", 1, localcluster.NodeSpec{CPU: "1"})
	c := part.keepHistory()
	plain := ofProfile(corev1.DefaultSchedulerName)
	part.fill("resident", 1, plain)
	part.createDaemonSet("plain-agent", plain)
	part.expect("plain-agent", 0, 1, "")
	_, waiting := part.podsOf("plain-agent")
	part.awaitEvent(waiting[0], "FailedScheduling", "Insufficient cpu")
	c.expectNoMore(calm, 0, "resident")
	return func() {
		part.Helper()
		c.expectEvicted("resident", 1)
		part.expect("plain-agent", 1, 0, "")
	}
}
