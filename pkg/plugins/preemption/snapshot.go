package preemption

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// snapshot is what filters see of nodes, for one preview. It lacks what is for scores
// only: which node has which image.
type snapshot struct {
	byName map[string]*framework.NodeInfo
	// list is in the order of names; affine and antiAffine are those of it with pods
	// that have terms of affinity, and required ones of anti-affinity.
	list, affine, antiAffine []fwk.NodeInfo
}

func emptySnapshot() *snapshot { return &snapshot{} }

// newSnapshot has the nodes without pods.
func newSnapshot(nodes []*corev1.Node) *snapshot {
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	s := &snapshot{byName: make(map[string]*framework.NodeInfo, len(nodes)), list: make([]fwk.NodeInfo, 0, len(nodes))}
	for _, n := range nodes {
		info := framework.NewNodeInfo()
		info.SetNode(n)
		s.byName[n.Name], s.list = info, append(s.list, info)
	}
	return s
}

// add puts a pod on its node, which is there.
func (s *snapshot) add(pi *framework.PodInfo) {
	s.byName[pi.Pod.Spec.NodeName].AddPodInfo(pi)
}

// complete is called when all pods are there.
func (s *snapshot) complete() {
	for _, info := range s.list {
		if len(info.GetPodsWithAffinity()) > 0 {
			s.affine = append(s.affine, info)
		}
		if len(info.GetPodsWithRequiredAntiAffinity()) > 0 {
			s.antiAffine = append(s.antiAffine, info)
		}
	}
}

// NodeInfos implements fwk.SharedLister.
func (s *snapshot) NodeInfos() fwk.NodeInfoLister { return s }

// StorageInfos implements fwk.SharedLister.
func (s *snapshot) StorageInfos() fwk.StorageInfoLister { return s }

// List returns the nodes by name.
func (s *snapshot) List() ([]fwk.NodeInfo, error) { return s.list, nil }

// HavePodsWithAffinityList returns the nodes with pods that have terms of affinity.
func (s *snapshot) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) { return s.affine, nil }

// HavePodsWithRequiredAntiAffinityList returns the nodes with pods that have required
// terms of anti-affinity.
func (s *snapshot) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return s.antiAffine, nil
}

// Get returns one node; an error where it is not there.
func (s *snapshot) Get(name string) (fwk.NodeInfo, error) {
	if info := s.byName[name]; info != nil {
		return info, nil
	}
	return nil, fmt.Errorf("node %q is not there", name)
}

// IsPVCUsedByPods tells whether a pod on a node uses a claim, namespace/name. Only
// pods with claims that one pod alone may use make filters ask.
func (s *snapshot) IsPVCUsedByPods(key string) bool {
	return slices.ContainsFunc(s.list, func(info fwk.NodeInfo) bool { return info.GetPVCRefCounts()[key] > 0 })
}

// keptFor is how long what is known of pods is kept after a preview. It is some 0.25 KB
// a pod, for which a cluster that nobody asks about has better use.
const keptFor = time.Minute

// podInfos are what filters want to know of each pod, requests and terms, which takes
// most of the time of a preview to find out. They are kept for the next one: informers
// replace a pod that changes, so the same object has the same infos.
type podInfos struct {
	mu     sync.Mutex // guards the rest
	known  map[types.UID]*framework.PodInfo
	forget *time.Timer // nil before the first preview
}

// last returns those of the preview before; none when it was long ago. Nobody changes them.
func (k *podInfos) last() map[types.UID]*framework.PodInfo {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known
}

// keep keeps those of this preview, in place of all others, for a while.
func (k *podInfos) keep(known map[types.UID]*framework.PodInfo) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known = known; k.forget == nil {
		k.forget = time.AfterFunc(keptFor, k.drop)
		return
	}
	k.forget.Reset(keptFor)
}

func (k *podInfos) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = nil
}
