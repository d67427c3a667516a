package framework_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// TestPodsThatOtherPluginsHoldBackTakeNoSlots: pods name claims of devices that do not
// exist, so plugin DynamicResources does not let them into the scheduling queue. There are
// more of them than slots, and a pod of another queue is placed all the same. So is the
// first of them when its claim is there.
func TestPodsThatOtherPluginsHoldBackTakeNoSlots(t *testing.T) {
	c := start(t, options{queues: twoQueues, window: 4})
	c.addNodes(1, 10)
	var held []*corev1.Pod
	for i := range 12 {
		p := inQueue(pod(managed, fmt.Sprintf("held-%02d", i), i), "large", fmt.Sprint("app-", i))
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: &p.Name}}
		held = append(held, p)
	}
	c.api.create(t, held...)
	c.eventually("the pods are known", func() bool { return c.pending() == len(held) })
	c.eventually("no pod has a slot", func() bool { return c.slots(held[0]) == 0 })
	other := inQueue(pod(managed, "other", 20), "small", "app")
	c.api.create(t, other)
	c.eventually("the other pod has a node", func() bool { return c.bound(other) })

	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: held[0].Namespace, Name: held[0].Name, UID: "claim"}}
	expect.Get(c.client.ResourceV1().ResourceClaims(claim.Namespace).Create(t.Context(), claim, metav1.CreateOptions{}))(t)
	c.eventually("the pod whose claim exists has a node", func() bool { return c.bound(held[0]) })
	if why := c.why(held[1]); why.Code != reasons.SchedulingGated {
		t.Errorf("a pod without its claim waits for %v", why)
	}
}

// slots counts the slots of the window that are taken.
func (c *cluster) slots(of *corev1.Pod) int {
	c.t.Helper()
	x, known := c.store.Explanation(of.UID, time.Now())
	if !known {
		c.t.Fatalf("pod %s is not known", of.Name)
	}
	return x.Taken
}

func (c *cluster) why(p *corev1.Pod) reasons.Reason {
	x, _ := c.store.Explanation(p.UID, time.Now())
	return x.Why
}

// TestDaemonSetPodsThatDynamicResourcesRefuses: the claim of a DaemonSet pod of the other
// profile names a DeviceClass that does not exist, so no cycle of the pod passes PreFilter.
// Its full node is not held, and no pod there is preempted. When the class exists, the pod
// gets its node. All cases are in preemption.TestAnotherPluginRefusesTheDaemonSetPod.
func TestDaemonSetPodsThatDynamicResourcesRefuses(t *testing.T) {
	inBubble(t, refusedWithItsClaim)
}

func refusedWithItsClaim(t *testing.T) {
	t.Helper()
	const node, class, fills = "node-000", "gpus", 4
	c := start(t, options{queues: fullQueues, backoff: 1, daemonsInDefault: true, before: func(c *cluster) {
		c.addNodes(1, 4)
		c.addDevice(node, class)
	}})
	defer c.end()
	time.Sleep(20 * time.Second) // of virtual time: it no longer counts then that the node came
	for i := range fills {
		c.api.create(t, onNode(inQueue(pod(managed, fmt.Sprint("fill-", i), i), "root.fills", "fill"), node))
	}
	daemon := plugintest.Daemon(inQueue(pod(other, "daemon", 100), "root.daemons", "daemon"), node)
	daemon.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: new("device")}}
	c.api.create(t, daemon)
	time.Sleep(time.Minute)
	synctest.Wait()
	running := func() (n int) {
		for i := range fills {
			if p := c.api.pod("default", fmt.Sprint("fill-", i)); p != nil && p.DeletionTimestamp == nil {
				n++
			}
		}
		return n
	}
	if c.store.Holds().Held() || c.store.AnyNodeBound() {
		t.Errorf("node %s is kept free: %v", node, c.store.Explain(daemon.UID))
	}
	expect.Same(t, "pods that still run", fills, running())
	expect.Get(c.client.ResourceV1().DeviceClasses().Create(t.Context(), &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: class}}, metav1.CreateOptions{}))(t)
	time.Sleep(time.Minute)
	synctest.Wait()
	if !c.bound(daemon) {
		t.Errorf("the pod does not run: %v", c.store.Explain(daemon.UID))
	}
	expect.Same(t, "pods that still run", fills-1, running())
	expect.OK(t, c.store.Check())
}

// addDevice adds a device on a node, and a claim for one of a class.
func (c *cluster) addDevice(node, class string) {
	c.t.Helper()
	api := c.client.ResourceV1()
	expect.Get(api.ResourceSlices().Create(c.t.Context(), &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "slice"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: "driver.example.com", NodeName: &node,
			Pool:    resourcev1.ResourcePool{Name: "pool", Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "device"}},
		},
	}, metav1.CreateOptions{}))(c.t)
	expect.Get(api.ResourceClaims("default").Create(c.t.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "device", UID: "claim"},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "device", Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
			},
		}}}},
	}, metav1.CreateOptions{}))(c.t)
}

// TestMessageOfAPodWithoutANode: the message of QueuePreemption is the whole message of
// PostFilter for a pod without claims. DynamicResources comes after it, has nothing to
// add for such a pod, and returns an error if its PreFilter did not run.
func TestMessageOfAPodWithoutANode(t *testing.T) {
	lost := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "missing"},
		}}}
	}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"the node is full":       {func(*corev1.Pod) {}, "0/1 nodes are available: 1 Insufficient cpu. PreemptionRefused: neither queue root.borrows nor one above it is below its guarantee in what the pod requests (law 4)"},
		"its claim is not there": {lost, `0/1 nodes are available: persistentvolumeclaim "missing" not found. PreemptionRefused: neither queue root.borrows nor one above it is below its guarantee in what the pod requests (law 4)`},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c2 := start(t, options{queues: lentQueues, backoff: 1, before: func(c *cluster) { c.addNodes(1, 1) }})
				defer c2.end()
				c2.api.create(t, onNode(inQueue(pod(managed, "first", 0), "root.borrows", "first"), "node-000"))
				time.Sleep(time.Second)
				late := inQueue(pod(managed, "late", 1), "root.borrows", "late")
				c.change(late)
				c2.api.create(t, late)
				time.Sleep(time.Second)
				synctest.Wait()
				told := condition(c2.api.pod("default", "late"), corev1.PodScheduled)
				if told == nil || strings.TrimSuffix(told.Message, ".") != c.want {
					t.Errorf("told %+v\nwant %s", told, c.want)
				}
			})
		})
	}
}
