package preemption_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
)

// twoQueues: queue a is guaranteed what b uses.
const twoQueues = `
partitions:
- name: default
  placementrules: [{name: provided}]
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: a, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 1000}}}
    - {name: b}
`

const podsOnNode = 30

// crowd returns nodes full of small pods of queue b.
func crowd(nodes int) ([]*corev1.Node, []*corev1.Pod) {
	var objects []*corev1.Node
	var pods []*corev1.Pod
	for n := range nodes {
		name := fmt.Sprintf("node-%05d", n)
		objects = append(objects, node(name, podsOnNode*100))
		for i := range podsOnNode {
			p := running(fmt.Sprintf("p-%05d-%02d", n, i), name, 100)
			p.Labels["applicationId"] = fmt.Sprintf("app-%d", n%100)
			p.CreationTimestamp = metav1.NewTime(time.Unix(int64(n*podsOnNode+i), 0))
			p.Status.StartTime = &p.CreationTimestamp
			pods = append(pods, p)
		}
	}
	return objects, pods
}

// BenchmarkPostFilter compares the whole PostFilter with upstream's DefaultPreemption, in
// one run. Both find victims, because the victims also have a lower priority. Each asker
// needs the capacity of two pods.
func BenchmarkPostFilter(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		objects, pods := crowd(nodes)
		c := newCluster(b, twoQueues, objects, pods)
		asker := plugintest.Pod("asker", 200)
		asker.Spec.Priority = ptr.To[int32](10)
		for _, name := range []string{preemption.Name, "DefaultPreemption"} {
			plugin := c.postFilter(b, name)
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, name), func(b *testing.B) {
				c.measure(b, plugin, asker)
			})
		}
	}
}

// measure makes room for a pod again and again.
func (c *cluster) measure(b *testing.B, plugin fwk.PostFilterPlugin, asker *corev1.Pod) {
	for range b.N {
		b.StopTimer()
		c.store.Delete(asker.UID, c.now)
		c.store.TakeWork()
		asker.UID += "x" // a new one each time
		state, statuses := c.fail(b, asker)
		b.StartTimer()
		result, status := plugin.PostFilter(b.Context(), state, asker, statuses)
		if result == nil || result.NominatedNodeName == "" {
			b.Fatalf("%v: %v", result, status)
		}
	}
}

// BenchmarkPostFilterThere measures the whole PostFilter for a DaemonSet pod on a full
// node. Its cost must not grow with the cluster.
func BenchmarkPostFilterThere(b *testing.B) {
	for _, nodes := range []int{100, 5000} {
		objects, pods := crowd(nodes)
		c := newCluster(b, twoQueues, objects, pods)
		plugin := c.postFilter(b, preemption.Name)
		asker := daemon("asker", objects[nodes/2].Name, 200)
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			b.ReportAllocs()
			c.measure(b, plugin, asker)
		})
	}
}
