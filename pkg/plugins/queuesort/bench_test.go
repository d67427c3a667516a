package queuesort_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/backend/heap"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"

	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
)

// BenchmarkPop takes the pods of a full window out of the scheduler's own heap, and as
// many pods of another profile, with the caches warm and with all that the cycles of
// other pods push out of them. It says what a pod costs with our order, and with
// upstream's.
func BenchmarkPop(b *testing.B) {
	const window = 1024
	h := plugintest.New(b, plugintest.Queues(plugintest.Document("{vcore: 100000}")))
	args := plugintest.Args()
	args.Window, args.MaxWindow = window, window
	plugin := newPlugin(b, h, args)
	h.Start(b)
	s := app.For(h.Context(), h).Store()
	plugintest.Eventually(b, func() error {
		if !s.Started() {
			return fmt.Errorf("the store has not started")
		}
		return nil
	})
	infos, foreign := make([]*framework.QueuedPodInfo, window), make([]*framework.QueuedPodInfo, window)
	for i := range infos {
		pod := plugintest.Pod(fmt.Sprint("pod-", i), 1)
		pod.UID = types.UID(fmt.Sprintf("%08x-6a5b-4c3d-8e7f-%012x", i*2654435761%(1<<32), i))
		s.Upsert(informer.Translate(pod, informer.RequestOptions{}), time.Now())
		infos[i] = queued(pod, time.Now())
		if _, keyed := s.Key(pod.UID); !keyed {
			b.Fatal("a pod was not let through")
		}
		other := plugintest.Foreign(pod.DeepCopy())
		other.Spec.SchedulerName = strings.Clone(other.Spec.SchedulerName) // of its own, as of a pod that was decoded
		other.UID = types.UID(fmt.Sprintf("%08x-1b2c-4c3d-8e7f-%012x", i*2654435761%(1<<32), i))
		foreign[i] = queued(other, time.Now())
	}
	others := make([]byte, 4<<20) // more than a core has to itself
	upstream := &queuesort.PrioritySort{}
	for name, side := range map[string]struct {
		less func(p, q *framework.QueuedPodInfo) bool
		pods []*framework.QueuedPodInfo
	}{
		"ours":          {func(p, q *framework.QueuedPodInfo) bool { return plugin.Less(p, q) }, infos},
		"ours, foreign": {func(p, q *framework.QueuedPodInfo) bool { return plugin.Less(p, q) }, foreign},
		"upstream":      {func(p, q *framework.QueuedPodInfo) bool { return upstream.Less(p, q) }, infos},
	} {
		for _, cold := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/cold=%t", name, cold), func(b *testing.B) {
				x := heap.New(func(q *framework.QueuedPodInfo) string { return q.Pod.Name }, side.less)
				var spent time.Duration
				for i := range b.N {
					if i%window == 0 {
						for _, q := range side.pods {
							x.AddOrUpdate(q)
						}
					}
					for at := 0; cold && at < len(others); at += 64 {
						others[at]++
					}
					begin := time.Now()
					if _, err := x.Pop(); err != nil {
						b.Fatal(err)
					}
					spent += time.Since(begin)
				}
				b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "ns/pop")
			})
		}
	}
}
