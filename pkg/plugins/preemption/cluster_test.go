package preemption_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/testing/defaults"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
	queuesconfig "github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// cluster is a profile with upstream's filters and our plugins, at one moment: nodes and
// pods as the scheduler's snapshot and our store have them. Nothing runs except what a
// test calls.
type cluster struct {
	framework.Framework
	queue   *queue
	store   *store.Store
	now     time.Time
	told    map[string]bool // decisions seen so far
	assumed assumed
	spec    *queuesconfig.Spec // the queues of the test
}

// filters are upstream's filters that depend on pods and nodes only.
var filters = []string{
	"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "PodTopologySpread", "InterPodAffinity",
}

func pluginArgs() map[string]runtime.Object {
	preempts, holds := &config.QueuePreemptionArgs{}, &config.NodeReservationArgs{}
	preempts.SetDefaults()
	holds.SetDefaults()
	return map[string]runtime.Object{queuesort.Name: plugintest.Args(), preemption.Name: preempts, reservation.Name: holds, patient: nil, choosy: nil}
}

// patient is a Permit plugin that lets every pod wait.
const patient = "Patient"

type patience struct{}

func (patience) Name() string { return patient }

func (patience) Permit(context.Context, fwk.CycleState, *corev1.Pod, string) (*fwk.Status, time.Duration) {
	return fwk.NewStatus(fwk.Wait), time.Minute
}

// choosy is the last PreFilter plugin before ours. It refuses pods with the label refused.
// Like DynamicResources, it has a Filter that then passes.
const choosy = "Choosy"

type choice struct{}

func (choice) Name() string { return choosy }

func (choice) PreFilter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if _, refused := pod.Labels["refused"]; refused {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the pod is refused everywhere")
	}
	return nil, nil
}

func (choice) SignPod(context.Context, *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return nil, nil
}

func (choice) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (choice) Filter(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) *fwk.Status {
	return nil
}

func registry(tb testing.TB) frameworkruntime.Registry {
	tb.Helper()
	r := frameworkplugins.NewInTreeRegistry()
	for name, factory := range map[string]frameworkruntime.PluginFactory{
		queuesort.Name: queuesort.New, preemption.Name: preemption.New, reservation.Name: reservation.New,
		patient: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return patience{}, nil },
		choosy:  func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return choice{}, nil },
	} {
		expect.OK(tb, r.Register(name, factory))
	}
	return r
}

func enabled(names ...string) schedulerconfig.PluginSet {
	var set schedulerconfig.PluginSet
	for _, name := range names {
		set.Enabled = append(set.Enabled, schedulerconfig.Plugin{Name: name})
	}
	return set
}

// newCluster makes the cluster with a queues.yaml.
func newCluster(tb testing.TB, queues string, nodes []*corev1.Node, pods []*corev1.Pod, more ...frameworkruntime.Option) *cluster {
	tb.Helper()
	metrics.Register()
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	tb.Cleanup(stop)
	client := fake.NewClientset(plugintest.Queues(queues)) // the process also reads it, at some time
	factory := informers.NewSharedInformerFactory(client, 0)
	profile := &schedulerconfig.KubeSchedulerProfile{
		SchedulerName: plugintest.Profile,
		Plugins: &schedulerconfig.Plugins{
			QueueSort: enabled(queuesort.Name), Bind: enabled("DefaultBinder"), Permit: enabled(patient),
			PreFilter:  enabled("NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "PodTopologySpread", "InterPodAffinity", choosy, preemption.Name),
			Filter:     enabled(append(append([]string(nil), filters...), choosy, reservation.Name)...),
			PostFilter: enabled(preemption.Name, "DefaultPreemption"),
		},
		PluginConfig: append([]schedulerconfig.PluginConfig(nil), defaults.PluginConfigsV1...),
	}
	for name, args := range pluginArgs() {
		profile.PluginConfig = append(profile.PluginConfig, schedulerconfig.PluginConfig{Name: name, Args: args})
	}
	q := &queue{}
	f := expect.Get(frameworkruntime.NewFramework(ctx, registry(tb), profile, append([]frameworkruntime.Option{
		frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(cache.NewSnapshot(pods, nodes)),
		frameworkruntime.WithPodNominator(internalqueue.NewSchedulingQueue(nil, factory)),
		frameworkruntime.WithPodActivator(q), frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
	}, more...)...))(tb)
	c := &cluster{Framework: f, queue: q, store: app.For(ctx, f).Store(), now: time.Now(), told: map[string]bool{}, assumed: assumed{}}
	c.spec = expect.Get(queuesconfig.Parse([]byte(queues)))(tb)
	c.store.Configure(c.spec, c.now)
	for _, n := range nodes {
		c.store.UpsertNode(n.Name, informer.Allocatable(n), c.now)
	}
	for _, p := range pods {
		c.known(tb, p)
		c.store.Upsert(c.translate(p), c.now)
	}
	c.store.Start(c.now)
	return c
}

// known adds the pod to the informer.
func (c *cluster) known(tb testing.TB, pod *corev1.Pod) {
	tb.Helper()
	expect.OK(tb, c.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer().Add(pod))
}

// queue is a scheduler's queue from which no pods are taken. The process's pump, which
// also runs here, adds the pods that it took from the store before the test did.
type queue struct{ handed atomic.Int32 }

func (q *queue) Activate(_ klog.Logger, pods map[string]*corev1.Pod) { q.handed.Add(int32(len(pods))) }

// cameBack reports whether the store requeued any pod since the last call.
func (c *cluster) cameBack() bool {
	return len(c.store.TakeActivations())+int(c.queue.handed.Swap(0)) > 0
}

// owners translates pods. DaemonSets are not looked up in these tests.
var owners = informer.Options{ManagedProfiles: []string{plugintest.Profile}, ClaimedOwners: true}

func (c *cluster) translate(p *corev1.Pod) objects.Pod {
	t := owners.Translate(p)
	t.Foreign = p.Spec.SchedulerName != plugintest.Profile
	t.Peer = p.Spec.SchedulerName == corev1.DefaultSchedulerName
	return t
}

// fail runs a cycle, up to PostFilter, of a pod that no node takes or that its quota
// rejects.
func (c *cluster) fail(tb testing.TB, pod *corev1.Pod) (fwk.CycleState, *framework.NodeToStatus) {
	tb.Helper()
	c.known(tb, pod)
	c.store.Upsert(c.translate(pod), c.now)
	c.store.TakeActivations()
	c.store.Gate(pod.UID, c.now)
	state := framework.NewCycleState()
	if _, status, _ := c.RunPreFilterPlugins(tb.Context(), state, pod); !status.IsSuccess() {
		return state, framework.NewNodeToStatus(nil, status)
	}
	infos := expect.Get(c.SnapshotSharedLister().NodeInfos().List())(tb)
	if node := owners.RequiredNode(pod); node != "" { // upstream checks no other node
		infos = slices.DeleteFunc(slices.Clone(infos), func(n fwk.NodeInfo) bool { return n.Node().Name != node })
	}
	statuses := framework.NewDefaultNodeToStatus()
	for _, info := range infos {
		status := c.RunFilterPluginsWithNominatedPods(tb.Context(), state, pod, info)
		if status.IsSuccess() {
			tb.Fatalf("node %s takes pod %s", info.Node().Name, pod.Name)
		}
		statuses.Set(info.Node().Name, status)
	}
	return state, statuses
}

// postFilter makes another instance of a plugin on the same framework.
func (c *cluster) postFilter(tb testing.TB, name string) fwk.PostFilterPlugin {
	tb.Helper()
	args := pluginArgs()[name]
	if args == nil {
		args = &schedulerconfig.DefaultPreemptionArgs{MinCandidateNodesPercentage: 10, MinCandidateNodesAbsolute: 100}
	}
	p := expect.Get(registry(tb)[name](tb.Context(), args, c))(tb)
	return p.(fwk.PostFilterPlugin)
}
