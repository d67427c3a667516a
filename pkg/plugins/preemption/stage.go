package preemption

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
)

// Placed returns the node to which the scheduler has assigned a pod that is not bound on
// the API server yet. The scheduler's cache implements it, for the pods of all profiles.
type Placed interface {
	// GetPod returns the pod with its node; an error if it has none.
	GetPod(pod *corev1.Pod) (*corev1.Pod, error)
}

// stage is a framework like that of a profile, for previews that must not disturb the
// scheduler. The scheduler's own snapshot of nodes is written by its goroutine and must
// not be read by others. The stage's snapshot is made from the informers, for one preview
// at a time. The stage has its own instances of the profile's filters except ours, which
// would report a pod to the store that does not exist; the preview calls the store
// directly instead.
type stage struct {
	framework.Framework
	nodes     corelisters.NodeLister
	pods      corelisters.PodLister
	placed    Placed
	snapshot  *cache.Snapshot // upstream's, which is not written after it is made
	nominated map[string][]fwk.PodInfo
	// missing are filters of the profile that previews cannot run.
	missing []string
}

func newStage(
	ctx context.Context, profile *schedconfig.KubeSchedulerProfile, h framework.Framework,
	registry frameworkruntime.Registry, placed Placed,
) (*stage, error) {
	factory := h.SharedInformerFactory()
	s := &stage{
		nodes:    factory.Core().V1().Nodes().Lister(),
		pods:     factory.Core().V1().Pods().Lister(),
		placed:   placed,
		snapshot: cache.NewEmptySnapshot(),
	}
	lists := h.ListPlugins()
	own := &schedconfig.KubeSchedulerProfile{
		SchedulerName: profile.SchedulerName, PluginConfig: profile.PluginConfig,
		Plugins: &schedconfig.Plugins{
			QueueSort: enable(queuesort.Name), Bind: enable(defaultbinder.Name),
			PreFilter: s.askable(lists.PreFilter, registry), Filter: s.askable(lists.Filter, registry),
		},
	}
	var err error
	s.Framework, err = frameworkruntime.NewFramework(ctx, registry, own,
		frameworkruntime.WithClientSet(h.ClientSet()),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(s),
		frameworkruntime.WithPodNominator(s),
		frameworkruntime.WithSharedDRAManager(h.SharedDRAManager()),
		frameworkruntime.WithSharedCSIManager(h.SharedCSIManager()),
		frameworkruntime.WithExtenders(h.Extenders()),
		frameworkruntime.WithParallelism(1))
	if err != nil {
		return nil, fmt.Errorf("filters of profile %q for previews: %w", profile.SchedulerName, err)
	}
	return s, nil
}

func enable(name string) schedconfig.PluginSet {
	return schedconfig.PluginSet{Enabled: []schedconfig.Plugin{{Name: name}}}
}

// askable returns the plugins of a list that can be run for a pod that does not exist.
func (s *stage) askable(list schedconfig.PluginSet, registry frameworkruntime.Registry) schedconfig.PluginSet {
	var out schedconfig.PluginSet
	for _, p := range list.Enabled {
		switch {
		case p.Name == Name || p.Name == reservation.Name:
		case registry[p.Name] == nil:
			if !slices.Contains(s.missing, p.Name) {
				s.missing = append(s.missing, p.Name)
			}
		default:
			out.Enabled = append(out.Enabled, p)
		}
	}
	return out
}

// takeSnapshot makes the current snapshot, with the nodes by name.
func (s *stage) takeSnapshot() {
	nodes, _ := s.nodes.List(labels.Everything()) // a lister of an informer never fails
	pods, _ := s.pods.List(labels.Everything())
	there := map[string]bool{}
	for i, n := range nodes {
		bare := *n
		bare.Status.Images = nil // scores only read them, and a snapshot has an index of all
		nodes[i], there[n.Name] = &bare, true
	}
	var placed []*corev1.Pod
	s.nominated = map[string][]fwk.PodInfo{}
	for _, p := range pods {
		at := s.withNode(p)
		switch {
		case informer.Ended(p):
		case there[at.Spec.NodeName]:
			placed = append(placed, at)
		case at.Spec.NodeName == "":
			s.nominate(p)
		}
	}
	s.snapshot = cache.NewSnapshot(placed, nodes)
	infos, _ := s.snapshot.List() // it never fails
	slices.SortFunc(infos, func(a, b fwk.NodeInfo) int { return cmp.Compare(a.Node().Name, b.Node().Name) })
}

// withNode returns the pod with the node of the scheduler's cache if it is being bound,
// which the informer does not know of yet.
func (s *stage) withNode(p *corev1.Pod) *corev1.Pod {
	if p.Spec.NodeName != "" {
		return p
	}
	known, err := s.placed.GetPod(p)
	if err != nil {
		return p
	}
	p = p.DeepCopy()
	p.Spec.NodeName = known.Spec.NodeName
	return p
}

func (s *stage) nominate(p *corev1.Pod) {
	node := p.Status.NominatedNodeName
	if pi, err := framework.NewPodInfo(p); err == nil && node != "" {
		s.nominated[node] = append(s.nominated[node], pi)
	}
}

// dropSnapshot drops the current snapshot.
func (s *stage) dropSnapshot() { s.snapshot, s.nominated = cache.NewEmptySnapshot(), nil }

// NodeInfos returns those of the current snapshot.
func (s *stage) NodeInfos() fwk.NodeInfoLister { return s.snapshot }

// StorageInfos returns those of the current snapshot.
func (s *stage) StorageInfos() fwk.StorageInfoLister { return s.snapshot }

// NominatedPodsForNode returns the pods that are nominated to a node on the API server.
func (s *stage) NominatedPodsForNode(node string) []fwk.PodInfo { return s.nominated[node] }

// AddNominatedPod does nothing.
func (*stage) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}

// DeleteNominatedPodIfExists does nothing.
func (*stage) DeleteNominatedPodIfExists(*corev1.Pod) {}

// UpdateNominatedPod does nothing.
func (*stage) UpdateNominatedPod(klog.Logger, *corev1.Pod, fwk.PodInfo) {}
