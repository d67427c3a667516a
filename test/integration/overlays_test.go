package integration

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// overlayLife is the configuration of TestSingle.
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
	e := setup(t, "", shipped.asDeployed(t))
	e.configure(overlayLife)
	e.awaitMetric(reloadSuccess, "1")
	e.create("p", 2, inQueue("root.capped")) // there is room for one
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
	if !apierrors.IsNotFound(err) {
		t.Errorf("the lease: %v, want none", err)
	}
	checkNothingForbidden(t, asked(t, accountsOf(shipped.namespace)))
}
