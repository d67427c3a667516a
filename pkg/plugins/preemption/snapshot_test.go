package preemption

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
)

// binding has the nodes of pods that are being bound, by UID, as the scheduler's cache.
type binding map[types.UID]string

func (b binding) GetPod(p *corev1.Pod) (*corev1.Pod, error) {
	if b[p.UID] == "" {
		return nil, errors.New("not in the cache")
	}
	return &corev1.Pod{Spec: corev1.PodSpec{NodeName: b[p.UID]}}, nil
}

// stocked is a stage without filters, with the objects of its informers.
func stocked(t *testing.T, nodes int, pods []*corev1.Pod) (*stage, cache.Indexer, []*corev1.Node) {
	t.Helper()
	var there []*corev1.Node
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for i := range nodes {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}}
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
		there = append(there, n)
		expect.OK(t, indexer.Update(n))
	}
	held := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, p := range pods {
		expect.OK(t, held.Update(p))
	}
	s := &stage{
		nodes: corelisters.NewNodeLister(indexer), pods: corelisters.NewPodLister(held),
		placed: binding{},
	}
	return s, held, there
}

// variedPods are on three nodes: with requests, ports, claims, and affinity terms.
func variedPods() (out []*corev1.Pod) {
	for i := range 30 {
		p := plugintest.On(plugintest.Pod(fmt.Sprint("p", i), int64(100*i)), fmt.Sprint("n", i%3))
		if i%5 == 0 {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: int32(1000 + i), Protocol: corev1.ProtocolTCP}}
		}
		if i%4 == 0 {
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprint("claim-", i)},
			}}}
		}
		term := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Name}}}
		switch {
		case i == 3: // on n0
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
		case i == 4: // on n1
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
		case i%10 == 9:
			p.Status.Phase = corev1.PodSucceeded
		}
		out = append(out, p)
	}
	return out
}

// seenIn is all that a lister of nodes returns, one thing a line.
func seenIn(t *testing.T, s fwk.SharedLister, nodes []*corev1.Node) (all []string) {
	t.Helper()
	for _, n := range nodes {
		info := expect.Get(s.NodeInfos().Get(n.Name))(t)
		all = append(all, fmt.Sprintf("node %s: %d pods, %dm, %d hosts with ports, %d claims", n.Name,
			len(info.GetPods()), info.GetRequested().GetMilliCPU(), len(info.GetUsedPorts()), len(info.GetPVCRefCounts())))
	}
	for what, list := range map[string]func() ([]fwk.NodeInfo, error){
		"affinity":      s.NodeInfos().HavePodsWithAffinityList,
		"anti-affinity": s.NodeInfos().HavePodsWithRequiredAntiAffinityList,
	} {
		for _, info := range expect.Get(list())(t) {
			all = append(all, what+" on "+info.Node().Name)
		}
	}
	for i := range 30 {
		if claim := fmt.Sprintf("ns/claim-%d", i); s.StorageInfos().IsPVCUsedByPods(claim) {
			all = append(all, claim)
		}
	}
	slices.Sort(all)
	return all
}

// TestSnapshotIsThatOfTheScheduler: filters see what upstream's snapshot of the pods that have
// not ended shows.
func TestSnapshotIsThatOfTheScheduler(t *testing.T) {
	pods := variedPods()
	live := slices.DeleteFunc(variedPods(), func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	s, _, nodes := stocked(t, 4, pods)
	want := seenIn(t, schedulercache.NewSnapshot(live, nodes), nodes)
	s.takeSnapshot()
	expect.Same(t, "what filters see", want, seenIn(t, s, nodes))
	all := seenIn(t, schedulercache.NewSnapshot(pods, nodes), nodes)
	expect.That(t, !cmp.Equal(all, want), "pods that ended are not noticed, so equality proves nothing")
}

// TestPodsOfASnapshot: a pod that is being bound counts on its node, one on a node that is not
// there does not, and the snapshot is dropped after the preview.
func TestPodsOfASnapshot(t *testing.T) {
	s, pods, _ := stocked(t, 4, variedPods())
	waits := variedPods()[1]
	waits.Name, waits.UID, waits.Spec.NodeName = "waits", "waits", ""
	expect.OK(t, pods.Update(waits))
	expect.OK(t, pods.Update(plugintest.On(plugintest.Pod("elsewhere", 100), "n9")))
	s.placed = binding{"waits": "n3"}
	s.takeSnapshot()
	info := expect.Get(s.NodeInfos().Get("n3"))(t)
	expect.That(t, len(info.GetPods()) == 1 && info.GetRequested().GetMilliCPU() == 100,
		"a pod that is being bound is not on its node: %v", info)
	var names []string
	for _, info := range expect.Get(s.NodeInfos().List())(t) {
		names = append(names, info.Node().Name)
	}
	expect.Same(t, "nodes in order", []string{"n0", "n1", "n2", "n3"}, names)
	s.dropSnapshot()
	_, err := s.NodeInfos().Get("n0")
	expect.That(t, err != nil, "the snapshot is there after it was let go")
}
