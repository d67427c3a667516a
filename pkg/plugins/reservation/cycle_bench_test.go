package reservation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
	queuesconfig "github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

const (
	benchQueues = 1000
	benchNodes  = 500  // all of them run Filter
	benchBatch  = 1000 // pods in the scheduler's queue
)

// benchDocument has parents of 50 leaves each; every level has quotas.
func benchDocument() string {
	var y strings.Builder
	y.WriteString("partitions:\n- name: default\n  placementrules: [{name: provided}]\n  queues:\n  - name: root\n    submitacl: '*'\n    queues:\n")
	for d := range benchQueues / 50 {
		fmt.Fprintf(&y, "    - name: d%d\n      resources: {max: {vcore: 100000}}\n      queues:\n", d)
		for t := range 50 {
			fmt.Fprintf(&y, "      - {name: t%d, resources: {guaranteed: {vcore: 1}, max: {vcore: 10000}}}\n", t)
		}
	}
	return y.String()
}

func benchPod(i int) *corev1.Pod {
	p := plugintest.Pod(fmt.Sprintf("pod-%d", i), 100)
	p.Labels = map[string]string{
		"queue": fmt.Sprintf("root.d%d.t%d", i/50%(benchQueues/50), i%50), "applicationId": fmt.Sprintf("app-%d", i%benchQueues),
	}
	p.CreationTimestamp = metav1.NewTime(time.Unix(int64(i), 0))
	return p
}

// BenchmarkCycle measures what our plugins add to one successful scheduling cycle:
// PreFilter, Filter on every node, Reserve, Permit, and the comparisons of one push to
// and one pop from a queue of 1,000 pods.
func BenchmarkCycle(b *testing.B) {
	h := plugintest.New(b)
	args := plugintest.Args()
	args.Window, args.MaxWindow = new(int32(benchBatch)), new(int32(benchBatch))
	preempts, holds := &config.QueuePreemptionArgs{}, &config.NodeReservationArgs{}
	preempts.SetDefaults()
	holds.SetDefaults()
	sorter := expect.Get(queuesort.New(h.Context(), args, h))(b).(*queuesort.Plugin)
	quota := expect.Get(preemption.New(h.Context(), preempts, h))(b).(*preemption.Plugin)
	hold := expect.Get(reservation.New(h.Context(), holds, h))(b).(*reservation.Plugin)
	s := app.For(h.Context(), h).Store()
	h.Start(b)
	plugintest.Until(b, "the store starts", s.Ready)
	spec := expect.Get(queuesconfig.Parse([]byte(benchDocument())))(b)
	s.Configure(spec, time.Now())

	pods := make([]*corev1.Pod, benchBatch)
	infos := make([]fwk.QueuedPodInfo, benchBatch)
	for i := range pods {
		pods[i] = benchPod(i)
		info := expect.Get(framework.NewPodInfo(pods[i]))(b)
		infos[i] = &framework.QueuedPodInfo{PodInfo: info, Timestamp: pods[i].CreationTimestamp.Time}
	}
	node := framework.NewNodeInfo()
	node.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	ctx := h.Context()
	b.ReportAllocs()
	b.StopTimer()
	for done := 0; done < b.N; done += benchBatch {
		fill(b, s, pods)
		n := min(benchBatch, b.N-done)
		b.StartTimer()
		for i := range n {
			pod, state := pods[i], framework.NewCycleState()
			for k := 1; k <= 20; k++ { // about twice the logarithm of the number of pods
				sorter.Less(infos[i], infos[(i+k*37)%benchBatch])
			}
			if _, status := quota.PreFilter(ctx, state, pod, nil); !status.IsSuccess() {
				b.Fatal(status)
			}
			for range benchNodes {
				if status := hold.Filter(ctx, state, pod, node); !status.IsSuccess() {
					b.Fatal(status)
				}
			}
			if status := hold.Reserve(ctx, state, pod, "n1"); !status.IsSuccess() {
				b.Fatal(status)
			}
			if status, _ := hold.Permit(ctx, state, pod, "n1"); !status.IsSuccess() {
				b.Fatal(status)
			}
		}
		b.StopTimer()
		for _, pod := range pods {
			s.Delete(pod.UID, time.Now())
		}
	}
}

// fill admits the pods.
func fill(b *testing.B, s *store.Store, pods []*corev1.Pod) {
	b.Helper()
	for _, pod := range pods {
		s.Upsert(informer.Translate(pod, informer.RequestOptions{}), time.Now())
	}
	s.TakeActivations()
	for _, pod := range pods {
		if why := s.Gate(pod.UID, time.Now()); !why.None() {
			b.Fatalf("%s is held: %s", pod.Name, why)
		}
	}
}
