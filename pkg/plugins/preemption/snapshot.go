package preemption

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
)

// snapshot is the filters' view of nodes for one preview. It lacks data for scores only:
// the images on each node.
type snapshot struct {
	byName map[string]*framework.NodeInfo
	// list is sorted by name. affine and antiAffine are the nodes of list with pods that
	// have affinity terms, and required anti-affinity terms.
	list, affine, antiAffine []fwk.NodeInfo
}

// newSnapshot returns the nodes without pods.
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

// add puts a pod on its node, which must be in the snapshot.
func (s *snapshot) add(pi *framework.PodInfo) {
	s.byName[pi.Pod.Spec.NodeName].AddPodInfo(pi)
}

// indexAffinity lists the nodes with pods that have affinity. Call it after all pods were
// added.
func (s *snapshot) indexAffinity() {
	for _, info := range s.list {
		if len(info.GetPodsWithAffinity()) > 0 {
			s.affine = append(s.affine, info)
		}
		if len(info.GetPodsWithRequiredAntiAffinity()) > 0 {
			s.antiAffine = append(s.antiAffine, info)
		}
	}
}

// List returns the nodes by name.
func (s *snapshot) List() ([]fwk.NodeInfo, error) { return s.list, nil }

// HavePodsWithAffinityList returns the nodes with pods that have affinity terms.
func (s *snapshot) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) { return s.affine, nil }

// HavePodsWithRequiredAntiAffinityList returns the nodes with pods that have required
// anti-affinity terms.
func (s *snapshot) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return s.antiAffine, nil
}

// Get returns one node; an error if there is none of the name.
func (s *snapshot) Get(name string) (fwk.NodeInfo, error) {
	if info := s.byName[name]; info != nil {
		return info, nil
	}
	return nil, fmt.Errorf("node %q is not there", name)
}

// IsPVCUsedByPods reports whether a pod on a node uses a claim, namespace/name. Filters
// call it only for pods with claims that a single pod may use.
func (s *snapshot) IsPVCUsedByPods(key string) bool {
	return slices.ContainsFunc(s.list, func(info fwk.NodeInfo) bool { return info.GetPVCRefCounts()[key] > 0 })
}

// keptFor is how long pod infos are kept after a preview. They take about 0.25 KB per
// pod, which is wasted in a cluster without previews.
const keptFor = time.Minute

// podInfos are the parts of each pod that filters read, requests and terms. Computing
// them takes most of the time of a preview, so they are kept for the next one. Informers
// replace a pod that changes, so the same object has the same infos.
type podInfos struct {
	mu     locks.Mutex // guards the rest
	known  map[types.UID]*framework.PodInfo
	forget *time.Timer // nil before the first preview
}

// last returns the infos of the previous preview; none if it was too long ago. They are
// not modified.
func (k *podInfos) last() map[types.UID]*framework.PodInfo {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known
}

// keep stores the infos of this preview in place of all others, for the duration of
// keptFor.
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
