package preemption_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/testing/defaults"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/plugins/internal/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/plugins/process"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
	queuesconfig "github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/store"
)

// benchQueues: a is guaranteed what b uses.
const benchQueues = `
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

// full is a cluster whose nodes are full of small pods of queue b, as both
// upstream's preemption and ours see it.
type full struct {
	framework.Framework
	store *store.Store
	asker *corev1.Pod
	now   time.Time
}

const podsOnNode = 30

// newFull makes the cluster. Pods of b have a lower priority than the asker, so
// that upstream's preemption finds victims as well.
func newFull(b *testing.B, nodes int) *full {
	b.Helper()
	metrics.Register()
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	b.Cleanup(stop)
	client := fake.NewClientset(plugintest.Queues(benchQueues))
	factory := informers.NewSharedInformerFactory(client, 0)
	objects, pods := crowd(nodes)
	f := &full{now: time.Now()}
	enabled := func(names ...string) schedulerconfig.PluginSet {
		var set schedulerconfig.PluginSet
		for _, name := range names {
			set.Enabled = append(set.Enabled, schedulerconfig.Plugin{Name: name})
		}
		return set
	}
	upstream := []string{"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity"}
	registry := frameworkplugins.NewInTreeRegistry()
	for name, factory := range map[string]frameworkruntime.PluginFactory{
		queuesort.Name: queuesort.New, preemption.Name: preemption.New, reservation.Name: reservation.New,
	} {
		if err := registry.Register(name, factory); err != nil {
			b.Fatal(err)
		}
	}
	var err error
	f.Framework, err = frameworkruntime.NewFramework(ctx, registry, &schedulerconfig.KubeSchedulerProfile{
		SchedulerName: plugintest.Profile,
		Plugins: &schedulerconfig.Plugins{
			QueueSort: enabled(queuesort.Name), Bind: enabled("DefaultBinder"),
			PreFilter:  enabled("NodeAffinity", "NodePorts", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity", preemption.Name),
			Filter:     enabled(append(upstream, reservation.Name)...),
			PostFilter: enabled(preemption.Name, "DefaultPreemption"),
		},
		PluginConfig: append([]schedulerconfig.PluginConfig{
			{Name: queuesort.Name, Args: plugintest.Args()},
			{Name: preemption.Name, Args: &config.QueuePreemptionArgs{
				PodOptOut: config.PodOptOutHonor, RetryInterval: metav1.Duration{Duration: 15e9}, Round: metav1.Duration{Duration: 1e9},
			}},
			{Name: reservation.Name, Args: &config.NodeReservationArgs{
				ReservationTimeout: metav1.Duration{Duration: 600e9}, ClassOrder: config.ClassOrderSeed,
				VictimSelection: []config.VictimSelection{config.VictimSelectionMultiple},
			}},
		}, defaults.PluginConfigsV1...),
	}, frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(cache.NewSnapshot(pods, objects)),
		frameworkruntime.WithPodNominator(internalqueue.NewSchedulingQueue(nil, factory)),
		frameworkruntime.WithPodActivator(nobody{}), frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithParallelism(parallelize.DefaultParallelism))
	if err != nil {
		b.Fatal(err)
	}
	f.fill(b, objects, pods)
	return f
}

// nobody is a scheduler's queue that nobody takes pods from.
type nobody struct{}

func (nobody) Activate(klog.Logger, map[string]*corev1.Pod) {}

// crowd is nodes full of pods of queue b.
func crowd(nodes int) ([]*corev1.Node, []*corev1.Pod) {
	var objects []*corev1.Node
	var pods []*corev1.Pod
	for n := range nodes {
		name := fmt.Sprintf("node-%05d", n)
		objects = append(objects, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewMilliQuantity(podsOnNode*100, resource.DecimalSI), corev1.ResourcePods: resource.MustParse("110"),
			}},
		})
		for i := range podsOnNode {
			p := plugintest.On(plugintest.Pod(fmt.Sprintf("p-%05d-%02d", n, i), 100), name)
			p.Labels = map[string]string{"queue": "root.b", "applicationId": fmt.Sprintf("app-%d", n%100)}
			p.CreationTimestamp = metav1.NewTime(time.Unix(int64(n*podsOnNode+i), 0))
			p.Status.StartTime = &p.CreationTimestamp
			p.Status.Phase = corev1.PodRunning
			pods = append(pods, p)
		}
	}
	return objects, pods
}

func (f *full) fill(b *testing.B, nodes []*corev1.Node, pods []*corev1.Pod) {
	b.Helper()
	f.store = process.For(context.Background(), f).Store()
	spec, err := queuesconfig.Parse([]byte(benchQueues))
	if err != nil {
		b.Fatal(err)
	}
	f.store.Configure(spec, f.now)
	for _, n := range nodes {
		f.store.UpsertNode(n.Name, informer.Allocatable(n), f.now)
	}
	for _, p := range pods {
		f.store.Upsert(informer.Translate(p, informer.RequestOptions{}), f.now)
	}
	f.store.Start(f.now)
	f.asker = plugintest.Pod("asker", 200)
	priority := int32(10)
	f.asker.Spec.Priority = &priority
}

// cycle is a scheduling cycle of the asker up to PostFilter.
func (f *full) cycle(b *testing.B) (fwk.CycleState, *framework.NodeToStatus) {
	b.Helper()
	f.store.Delete(f.asker.UID, f.now)
	f.asker.UID += "x" // another one each time
	f.store.Upsert(informer.Translate(f.asker, informer.RequestOptions{}), f.now)
	f.store.TakeActivations()
	f.store.TakeWork()
	f.store.Gate(types.UID(f.asker.UID), f.now)
	if err := f.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer().Add(f.asker); err != nil {
		b.Fatal(err)
	}
	state := framework.NewCycleState()
	if _, status, _ := f.RunPreFilterPlugins(b.Context(), state, f.asker); !status.IsSuccess() {
		b.Fatal(status)
	}
	infos, err := f.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		b.Fatal(err)
	}
	statuses := framework.NewDefaultNodeToStatus()
	for _, info := range infos {
		statuses.Set(info.Node().Name, f.RunFilterPlugins(b.Context(), state, f.asker, info))
	}
	return state, statuses
}

// BenchmarkPostFilter compares the whole PostFilter with upstream's
// DefaultPreemption, in one run, where both find victims of lower priority.
func BenchmarkPostFilter(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		f := newFull(b, nodes)
		for _, p := range f.ListPlugins().PostFilter.Enabled {
			plugin := f.postFilter(b, p.Name)
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, p.Name), func(b *testing.B) {
				for range b.N {
					b.StopTimer()
					state, statuses := f.cycle(b)
					b.StartTimer()
					result, status := plugin.PostFilter(b.Context(), state, f.asker, statuses)
					if result == nil || result.NominatedNodeName == "" {
						b.Fatalf("%v: %v", result, status)
					}
				}
			})
		}
	}
}

// postFilter makes another instance of a plugin, on the same framework.
func (f *full) postFilter(b *testing.B, name string) fwk.PostFilterPlugin {
	b.Helper()
	if name == preemption.Name {
		p, err := preemption.New(b.Context(), &config.QueuePreemptionArgs{
			PodOptOut: config.PodOptOutHonor, RetryInterval: metav1.Duration{Duration: 15e9}, Round: metav1.Duration{Duration: 1e9},
		}, f)
		if err != nil {
			b.Fatal(err)
		}
		return p.(fwk.PostFilterPlugin)
	}
	p, err := frameworkplugins.NewInTreeRegistry()[name](b.Context(), &schedulerconfig.DefaultPreemptionArgs{
		MinCandidateNodesPercentage: 10, MinCandidateNodesAbsolute: 100,
	}, f)
	if err != nil {
		b.Fatal(err)
	}
	return p.(fwk.PostFilterPlugin)
}
