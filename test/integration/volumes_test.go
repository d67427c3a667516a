package integration

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// never is the name of a program that would make volumes, and does not run.
const never = "example.com/never"

// storageClass makes a class for which no program makes volumes, and returns its name.
func (e *env) storageClass(mode, provisioner string) string {
	e.Helper()
	binding := storagev1.VolumeBindingMode(mode)
	class := expect.Get(suite.client.StorageV1().StorageClasses().Create(e.Context(), &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{GenerateName: e.id + "-", Labels: map[string]string{label: e.id}},
		Provisioner: provisioner, VolumeBindingMode: &binding,
	}, metav1.CreateOptions{}))(e)
	e.Cleanup(func() {
		e.ok(suite.client.StorageV1().StorageClasses().Delete(context.Background(), class.Name, metav1.DeleteOptions{}))
	})
	return class.Name
}

// withClaim makes a claim of a class for a pod, and returns the option that mounts it.
func (e *env) withClaim(name, class string) podOption {
	e.Helper()
	expect.Get(suite.client.CoreV1().PersistentVolumeClaims(e.ns).Create(e.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: amounts("storage", "1Gi")},
		},
	}, metav1.CreateOptions{}))(e)
	return mounts(name)
}

// mounts gives a pod a claim, which need not exist.
func mounts(claim string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
}

// TestVolumesThatNeverCome: a pod with a claim that has no volume or does not exist preempts
// nothing and holds nothing, although its queue is below its guarantee. Pods that have a
// node and wait for volumes that are never made are charged to their queue, and lose the
// node when the time for binding is over: then the pods of a queue below its guarantee go
// first.
func TestVolumesThatNeverCome(t *testing.T) {
	e := setup(t, teamQueues, preemption("retryInterval", "1s"), arg("VolumeBinding", "bindTimeoutSeconds", 2))
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	c := e.keepHistory()
	e.create("lent", 4, inQueue("root.evil"))
	e.expect("lent", 4, 0, "")
	var volumeless []*corev1.Pod
	for name, option := range map[string]podOption{
		"missing": mounts("there-is-none"), "unbound": e.withClaim("unbound", e.storageClass("Immediate", never)),
	} {
		p := e.createPod(e.pod(name, name, inQueue("root.team"), option))
		e.awaitPod(p, "was tried", func(p *corev1.Pod) bool { return conditionIs(p, corev1.PodScheduled, corev1.ConditionFalse) })
		volumeless = append(volumeless, p)
	}
	c.expectNoMore(2*calm, 0, "lent")
	for _, p := range volumeless {
		if claim, _ := c.claim(p.UID); claim.Node != "" {
			t.Errorf("pod %s held node %s, and cannot get its volume", p.Name, claim.Node)
		}
	}
	e.removePods(e.Context())

	later := e.storageClass("WaitForFirstConsumer", never)
	e.createPod(e.pod("never", "never", inQueue("root.evil"), requests("cpu", "4"), e.withClaim("never", later)))
	e.awaitQueue("root.evil", "is charged for the pod", func(q *documents.Queue) bool { return q.AllocatedResource["vcore"] == 4000 })
	e.awaitRunning(e.create("asker", 1, inQueue("root.team"), requests("cpu", "4"))[0])
	running, _ := e.podsOf("never")
	if len(running) > 0 {
		t.Errorf("%d pods run without their volumes", len(running))
	}
}
