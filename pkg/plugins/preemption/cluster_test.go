package preemption_test

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
	queuesconfig "github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// cluster is a profile with upstream's filters and our plugins, at one moment: nodes and pods as the
// scheduler's snapshot and our store have them. Nothing runs except what a test calls.
type cluster struct {
	framework.Framework
	queue   *queue
	store   *store.Store
	now     time.Time
	told    map[string]bool // decisions seen so far
	assumed assumed
	spec    *queuesconfig.Spec // the queues of the test
}

type (
	nodeList = []*corev1.Node
	podList  = []*corev1.Pod
)

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

// fullNode is a cluster with pod v1 of queue b, which uses all of node n1.
func fullNode(tb testing.TB, more ...frameworkruntime.Option) *cluster {
	tb.Helper()
	return newCluster(tb, twoQueues, nodeList{node("n1", 200)}, podList{running("v1", "n1", 200)}, more...)
}

// twoNodes is a cluster with nodes n1 and n2 of the same size.
func twoNodes(tb testing.TB, pods podList, more ...frameworkruntime.Option) *cluster {
	tb.Helper()
	return newCluster(tb, twoQueues, nodeList{node("n1", 200), node("n2", 200)}, pods, more...)
}

// oneVictimOrTwo is twoNodes with victim v1 on one, and v2 and v3 on the other. One victim is
// better than two.
func oneVictimOrTwo(tb testing.TB, more ...frameworkruntime.Option) *cluster {
	tb.Helper()
	return twoNodes(tb, podList{running("v1", "n1", 200), running("v2", "n2", 100), running("v3", "n2", 100)}, more...)
}

// newCluster makes the cluster with a queues.yaml.
func newCluster(tb testing.TB, queues string, nodes nodeList, pods podList, more ...frameworkruntime.Option) *cluster {
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
			PreFilter: enabled("NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "PodTopologySpread",
				"InterPodAffinity", choosy, preemption.Name),
			// Of upstream's filters, those that depend on pods and nodes only.
			Filter: enabled("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
				"VolumeRestrictions", "PodTopologySpread", "InterPodAffinity", choosy, reservation.Name),
			PostFilter: enabled(preemption.Name, "DefaultPreemption"),
		},
		PluginConfig: append([]schedulerconfig.PluginConfig(nil), defaults.PluginConfigsV1...),
	}
	for name, args := range pluginArgs() {
		profile.PluginConfig = append(profile.PluginConfig, schedulerconfig.PluginConfig{Name: name, Args: args})
	}
	placed := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p.Spec.NodeName == "" })
	q := &queue{}
	f := expect.Get(frameworkruntime.NewFramework(ctx, registry(tb), profile, append([]frameworkruntime.Option{
		frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(cache.NewSnapshot(placed, nodes)),
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
		c.seen(tb, p)
	}
	c.store.Start(c.now)
	return c
}

// known adds the pod to the informer.
func (c *cluster) known(tb testing.TB, pod *corev1.Pod) {
	tb.Helper()
	expect.OK(tb, c.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer().Add(pod))
}

// seen adds the pod to the informer and to the store.
func (c *cluster) seen(tb testing.TB, pod *corev1.Pod) {
	tb.Helper()
	c.known(tb, pod)
	c.store.Upsert(c.translate(pod), c.now)
}

// ends takes the pod from the informer and from the store.
func (c *cluster) ends(tb testing.TB, pod *corev1.Pod) {
	tb.Helper()
	expect.OK(tb, c.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer().Delete(pod))
	c.store.Delete(pod.UID, c.now)
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

// fail runs a cycle, up to PostFilter, of a pod that no node takes or that its quota rejects.
func (c *cluster) fail(tb testing.TB, pod *corev1.Pod) (fwk.CycleState, *framework.NodeToStatus) {
	tb.Helper()
	c.seen(tb, pod)
	c.store.TakeActivations()
	c.store.Gate(pod.UID, c.now)
	state := framework.NewCycleState()
	if _, status, _ := c.RunPreFilterPlugins(tb.Context(), state, pod); !status.IsSuccess() {
		return state, framework.NewNodeToStatus(nil, status)
	}
	infos := expect.Get(c.SnapshotSharedLister().NodeInfos().List())(tb)
	if node, _ := owners.RequiredNode(pod); node != "" { // upstream checks no other node
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

// answer runs a cycle in which no node takes the pod, ends other pods, if any, and calls PostFilter.
// The store and the informers then know that those pods ended, and the snapshot of the cycle does not.
func (c *cluster) answer(t *testing.T, pod *corev1.Pod, ended ...*corev1.Pod) (string, *fwk.Status) {
	t.Helper()
	state, statuses := c.fail(t, pod)
	for _, p := range ended {
		c.ends(t, p)
	}
	result, status := c.postFilter(t, preemption.Name).PostFilter(t.Context(), state, pod, statuses)
	expect.Holds(t, c.store.Check())
	if result == nil {
		return "", status
	}
	return result.NominatedNodeName, status
}

// answers runs such a cycle, and checks the node that is held for the pod from then on, empty for
// none, a part of the message, and the names of the victims that are chosen. No other plugin may
// be asked about a pod that waits for room or can run on one node only.
func (c *cluster) answers(t *testing.T, pod *corev1.Pod, node, text string, chosen ...string) {
	t.Helper()
	code := fwk.Unschedulable
	if required, _ := owners.RequiredNode(pod); node != "" || required != "" {
		code = fwk.UnschedulableAndUnresolvable
	}
	on, status := c.answer(t, pod)
	expect.Same(t, "held", node, on)
	c.says(t, status, code, cmp.Or(text, "MakingRoom"), chosen...)
}

// says checks a status, and which victims are chosen.
func (c *cluster) says(t *testing.T, got *fwk.Status, code fwk.Code, text string, chosen ...string) {
	t.Helper()
	plugintest.WantStatus(t, "PostFilter", got, code, text)
	expect.Same(t, "chosen", chosen, c.chosen())
}

// chosen lists the names of the victims that the executor gets for the first time. A
// process that becomes leader gets all of them again.
func (c *cluster) chosen() (out []string) {
	for _, w := range c.store.TakeWork() {
		if w.Kind != output.WorkDeleteVictims || c.told[w.Hold.Decision] {
			continue
		}
		c.told[w.Hold.Decision] = true
		for _, v := range ptr.Deref(w.Decision, planner.Decision{}).Victims {
			out = append(out, v.Name)
		}
		for _, v := range ptr.Deref(w.NodeBoundDecision, daemonset.Decision{}).Victims {
			out = append(out, v.Name)
		}
	}
	slices.Sort(out)
	return out
}

// nominate has the scheduler's queue know that a pod is nominated to node n1.
func (c *cluster) nominate(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	info := expect.Get(framework.NewPodInfo(pod))(t)
	c.AddNominatedPod(klog.Background(), info, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: "n1"})
}

// nominated are the names of the pods that are nominated to node n1, in a cycle of a pod.
func (c *cluster) nominated(t *testing.T, cycle *corev1.Pod) (names []string) {
	t.Helper()
	_, status, _ := c.RunPreFilterPlugins(t.Context(), framework.NewCycleState(), cycle)
	expect.OK(t, status.AsError())
	for _, pi := range c.NominatedPodsForNode("n1") {
		names = append(names, pi.GetPod().Name)
	}
	return names
}

// onSnapshot puts a pod on node n1 of the scheduler's snapshot only.
func (c *cluster) onSnapshot(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	info := expect.Get(c.SnapshotSharedLister().NodeInfos().Get("n1"))(t)
	info.AddPodInfo(expect.Get(framework.NewPodInfo(plugintest.On(pod.DeepCopy(), "n1")))(t))
}

// postFilter makes another instance of a plugin on the same framework.
func (c *cluster) postFilter(tb testing.TB, name string) fwk.PostFilterPlugin {
	tb.Helper()
	args := pluginArgs()[name]
	if args == nil {
		args = &schedulerconfig.DefaultPreemptionArgs{MinCandidateNodesPercentage: 10, MinCandidateNodesAbsolute: 100}
	}
	return expect.Get(registry(tb)[name](tb.Context(), args, c))(tb).(fwk.PostFilterPlugin)
}

func node(name string, milliCPU int64) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewMilliQuantity(milliCPU, resource.DecimalSI), corev1.ResourcePods: resource.MustParse("110"),
		}},
	}
}

// tainted is a node that no pod of these tests tolerates.
func tainted(name string, milliCPU int64) *corev1.Node {
	n := node(name, milliCPU)
	n.Spec.Taints = []corev1.Taint{{Key: "mine", Effect: corev1.TaintEffectNoSchedule}}
	return n
}

// ofB is a pod of queue b, with an application of its own.
func ofB(name string, milliCPU int64) *corev1.Pod {
	return labelled(plugintest.Pod(name, milliCPU), "queue", "root.b", "applicationId", name)
}

// running is a pod of queue b on a node.
func running(name, node string, milliCPU int64) *corev1.Pod {
	p := plugintest.On(ofB(name, milliCPU), node)
	p.Status.Phase = corev1.PodRunning
	return p
}

// two are pods of queue b on node n1.
func two() podList { return podList{running("v1", "n1", 100), running("v2", "n1", 100)} }

// daemon is a DaemonSet pod for a node, of queue b.
func daemon(name, node string, milliCPU int64) *corev1.Pod {
	return plugintest.Daemon(ofB(name, milliCPU), node)
}

// labelled sets labels: keys and values in turn.
func labelled(p *corev1.Pod, labels ...string) *corev1.Pod {
	for i := 0; i < len(labels); i += 2 {
		p.Labels[labels[i]] = labels[i+1]
	}
	return p
}

func withPort(p *corev1.Pod, port int32) *corev1.Pod {
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port, Protocol: corev1.ProtocolTCP}}
	return p
}

func withDisk(p *corev1.Pod) *corev1.Pod {
	p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{
		GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk"},
	}}}
	return p
}

// apart keeps a pod off nodes that have a pod with the label.
func apart(p *corev1.Pod, key, value string) *corev1.Pod {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: selector},
		},
	}}
	return p
}

func prioritized(p *corev1.Pod, priority int32) *corev1.Pod {
	p.Spec.Priority = &priority
	return p
}

// of is a pod of another profile.
func of(profile string, p *corev1.Pod) *corev1.Pod {
	p.Spec.SchedulerName = profile
	return p
}

// never is a pod with preemptionPolicy Never.
func never(p *corev1.Pod) *corev1.Pod {
	p.Spec.PreemptionPolicy = new(corev1.PreemptNever)
	return p
}
