package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/nodeagent"
)

// made makes an object, which is deleted when the test ends, unless the test did that: before
// its pods are removed, which a controller would make again.
func made[T metav1.Object](t testing.TB, api interface {
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}, object T) T {
	t.Helper()
	object = expect.Get(api.Create(t.Context(), object, metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		expect.Holds(t, notFoundIsFine(api.Delete(context.Background(), object.GetName(), inBackground())))
	})
	return object
}

// template is what a controller makes the pods of a group from.
func (e *env) template(of string, options ...podOption) corev1.PodTemplateSpec {
	p := e.pod("", of, options...)
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels, Annotations: p.Annotations}, Spec: p.Spec}
}

func (e *env) createDaemonSet(name string, options ...podOption) {
	e.Helper()
	made(e, suite.client.AppsV1().DaemonSets(e.ns), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DaemonSetSpec{Selector: e.selector(name), Template: e.template(name, options...)},
	})
}

// runJob runs a Job of so many pods at a time, until the test ends.
func (e *env) runJob(name string, parallelism int32, of corev1.PodTemplateSpec) {
	e.Helper()
	of.Spec.RestartPolicy = corev1.RestartPolicyNever
	total := int32(2000)
	made(e, suite.client.BatchV1().Jobs(e.ns), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       batchv1.JobSpec{Completions: &total, Parallelism: &parallelism, BackoffLimit: &total, Template: of},
	})
}

// deploy makes a Deployment of a queue, named like the queue.
func (e *env) deploy(queue string, replicas int32, options ...podOption) {
	e.Helper()
	template := e.template(queue, append(options, inQueue("root."+queue))...)
	made(e, suite.client.AppsV1().Deployments(e.ns), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: queue},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: e.selector(queue), Template: template},
	})
}

func completesAfter(d time.Duration) podOption {
	return func(p *corev1.Pod) { p.Annotations[nodeagent.AnnotationCompleteAfter] = d.String() }
}

// storageClass makes a class for which no program makes volumes, and returns its name.
func (e *env) storageClass(mode, provisioner string) string {
	e.Helper()
	binding := storagev1.VolumeBindingMode(mode)
	return made(e, suite.client.StorageV1().StorageClasses(), &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{GenerateName: e.id + "-", Labels: map[string]string{label: e.id}},
		Provisioner: provisioner, VolumeBindingMode: &binding,
	}).Name
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

// guard makes a PodDisruptionBudget for a group of pods, and waits until the disruption
// controller has counted them and allows so many disruptions.
func (e *env) guard(of string, minAvailable, allowed int32) {
	e.Helper()
	least := intstr.FromInt32(minAvailable)
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: of},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: e.selector(of)},
	}
	budgets := suite.client.PolicyV1().PodDisruptionBudgets(e.ns)
	expect.Get(budgets.Create(e.Context(), b, metav1.CreateOptions{}))(e)
	eventually(e, patience, "budget "+of+" is counted", func() (bool, string) {
		now := expect.Get(budgets.Get(e.Context(), of, metav1.GetOptions{}))(e)
		s := now.Status
		return s.ObservedGeneration == now.Generation && s.ExpectedPods > 0 && s.DesiredHealthy == minAvailable && s.DisruptionsAllowed == allowed, s.String()
	})
}

// priorityClass makes a PriorityClass of pods that never preempt.
func (e *env) priorityClass(name string, value int32) {
	e.Helper()
	made(e, suite.client.SchedulingV1().PriorityClasses(), &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, PreemptionPolicy: new(corev1.PreemptNever),
	})
}

// device makes a node with one device, a class of such devices and claims on one of them
// each, and returns that node; there is no driver, and none is needed.
func (e *env) device(class string, claims ...string) string {
	e.Helper()
	node := e.addNodes(1, localcluster.NodeSpec{CPU: "4"})[0]
	api := suite.client.ResourceV1()
	made(e, api.DeviceClasses(), &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: class},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", class)},
		}}},
	})
	made(e, api.ResourceSlices(), &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: class},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: class, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}, Devices: []resourcev1.Device{{Name: "one"}},
		},
	})
	for _, name := range claims {
		expect.Get(api.ResourceClaims(e.ns).Create(e.Context(), &resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
				Name: "device", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class},
			}}}},
		}, metav1.CreateOptions{}))(e)
	}
	return node
}

// withClaim makes a pod use an existing claim.
func withClaim(name string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: &name}}
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "device"}}
	}
}
