package preemption

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/queues/store"
)

// mindLost compares the nodes of this cycle with the pods that ended unseen (see
// [store.Store.Lost]). If one of them is on a node still, the scheduler's cache was
// not told yet, and the pod that was tried comes back.
func (pl *Plugin) mindLost(pod types.UID, now time.Time) {
	s := pl.process.Store()
	lost := s.LostPods()
	lister := pl.handle.SnapshotSharedLister()
	if len(lost) == 0 || lister == nil {
		return
	}
	there := stillThere(lost, lister.NodeInfos())
	var vanished []store.LostPod
	for _, e := range lost {
		if !there[e.UID] {
			vanished = append(vanished, e)
		}
	}
	s.Vanished(vanished)
	if len(vanished) < len(lost) {
		s.ComeBack(pod, now)
	}
}

// stillThere are the pods that a cycle's nodes have still. Where nobody knows which
// node a pod was on, it may be any.
func stillThere(lost []store.LostPod, nodes fwk.NodeInfoLister) map[types.UID]bool {
	there := map[types.UID]bool{}
	anywhere := map[types.UID]bool{}
	for _, e := range lost {
		if e.Node == "" {
			anywhere[e.UID] = true
			continue
		}
		info, err := nodes.Get(e.Node)
		if err != nil {
			continue // the node is gone
		}
		mark(there, info, map[types.UID]bool{e.UID: true})
	}
	if len(anywhere) == 0 {
		return there
	}
	all, err := nodes.List()
	if err != nil {
		return there
	}
	for _, info := range all {
		mark(there, info, anywhere)
	}
	return there
}

func mark(there map[types.UID]bool, info fwk.NodeInfo, wanted map[types.UID]bool) {
	for _, p := range info.GetPods() {
		if uid := p.GetPod().UID; wanted[uid] {
			there[uid] = true
		}
	}
}
