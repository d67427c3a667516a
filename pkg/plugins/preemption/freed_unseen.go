package preemption

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// checkFreedPods compares the nodes of this cycle with the pods that freed capacity unseen
// (see [store.FreedPod]). If one of them is still on a node, unchanged, the scheduler's
// cache does not know yet, and the pod that was tried is requeued.
func (pl *Plugin) checkFreedPods(pod types.UID, now time.Time) {
	s := pl.process.Store()
	freed := s.FreedPods(now)
	if len(freed) == 0 {
		return
	}
	there := stillThere(freed, pl.handle.SnapshotSharedLister().NodeInfos())
	var vanished []store.FreedPod
	for i := range freed {
		l := &freed[i]
		switch {
		case l.Nominated && pl.nominated(l):
		case !l.Nominated && there[i] != nil && (l.Node == "" || informer.Translate(there[i], app.Requests()).Request.Equal(l.Request)):
		default:
			vanished = append(vanished, *l)
		}
	}
	s.Vanished(vanished)
	if len(vanished) < len(freed) {
		s.ComeBack(pod, now)
	}
}

// nominated reports whether a pod is nominated to a node that it no longer holds.
func (pl *Plugin) nominated(l *store.FreedPod) bool {
	if h, held := pl.process.Store().Holds().Of(l.UID); held && h.Node == l.Node {
		return false // it holds the node again
	}
	return slices.ContainsFunc(pl.handle.NominatedPodsForNode(l.Node), func(p fwk.PodInfo) bool { return p.GetPod().UID == l.UID })
}

// stillThere returns the pods as the nodes of a cycle have them; nil for a pod that its
// node does not have. If the node of a pod is not known, all nodes are searched.
func stillThere(freed []store.FreedPod, nodes fwk.NodeInfoLister) []*corev1.Pod {
	there := make([]*corev1.Pod, len(freed))
	anywhere := map[types.UID]int{}
	for i, l := range freed {
		if l.Node == "" {
			anywhere[l.UID] = i
		} else if info, err := nodes.Get(l.Node); err == nil { // otherwise the node is gone
			find(there, info, map[types.UID]int{l.UID: i})
		}
	}
	if len(anywhere) == 0 {
		return there
	}
	if all, err := nodes.List(); err == nil {
		for _, info := range all {
			find(there, info, anywhere)
		}
	}
	return there
}

// find stores the wanted pods of a node at their indexes.
func find(there []*corev1.Pod, info fwk.NodeInfo, wanted map[types.UID]int) {
	for _, p := range info.GetPods() {
		if i, ok := wanted[p.GetPod().UID]; ok {
			there[i] = p.GetPod()
		}
	}
}
