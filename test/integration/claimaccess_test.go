package integration

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

// device makes a node with one device, a class of such devices and claims on one of them
// each, and returns that node; there is no driver, and none is needed.
func (e *env) device(class string, claims ...string) string {
	e.Helper()
	node := e.addNodes(1, localcluster.NodeSpec{CPU: "4"})[0]
	api := suite.client.ResourceV1()
	expect.Get(api.DeviceClasses().Create(e.Context(), &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: class},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", class)},
		}}},
	}, metav1.CreateOptions{}))(e)
	expect.Get(api.ResourceSlices().Create(e.Context(), &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: class},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: class, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}, Devices: []resourcev1.Device{{Name: "one"}},
		},
	}, metav1.CreateOptions{}))(e)
	e.Cleanup(func() {
		expect.Holds(e, api.ResourceSlices().Delete(context.Background(), class, metav1.DeleteOptions{}))
		expect.Holds(e, api.DeviceClasses().Delete(context.Background(), class, metav1.DeleteOptions{}))
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

// lifeOfClaim: the scheduler gives a device to the claim of a pod and writes that on the
// claim. The second pod waits until the first is gone.
func (e *env) lifeOfClaim() {
	e.Helper()
	part := *e
	part.nodePool = e.id + "-device"
	node := part.device(e.id+"-device.example.com", "first", "second")
	first := part.createPod(part.pod("first", "first", inQueue("root.owed"), requests("cpu", "100m"), withClaim("first")))
	part.expect("first", 1, 0, "")
	claim := expect.Get(suite.client.ResourceV1().ResourceClaims(e.ns).Get(e.Context(), "first", metav1.GetOptions{}))(e)
	if a := claim.Status.Allocation; a == nil || len(a.Devices.Results) != 1 || a.Devices.Results[0].Pool != node {
		e.Errorf("the claim has %+v, want the device of node %s", claim.Status.Allocation, node)
	}
	if of := claim.Status.ReservedFor; len(of) != 1 || of[0].UID != first.UID {
		e.Errorf("the claim is reserved for %+v, want pod %s", of, first.UID)
	}
	second := part.createPod(part.pod("second", "second", inQueue("root.owed"), requests("cpu", "100m"), withClaim("second")))
	part.awaitEvent(second, "FailedScheduling")
	part.expectStill("second", 0, 1, "")
	part.delete(first)
	part.expect("second", 1, 0, "")
}
