package admission

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// The lane is the order of backing-off pods that found no node and may be helped by an
// event since. While other pods can be admitted, back-off keeps these pods from being
// tried at every such event. When no other pod can be, it would leave freed room unused,
// or give it to the pod whose back-off ends first. So the first pod of the lane is admitted
// then, and the next one after that cycle. The scheduler's queue does the same.

// EnterLane puts a backing-off pod into the lane, or an unschedulable one into the order of
// its own; see ahead.go.
func (x *States) EnterLane(p *model.Pod) {
	p.LaneAsk = x.Pending.LaneOf(p.State).Push(x.Cache.Tree(), p.App, p.App.Info(x.Cache.Tree()), p.AskKey(), p.Request, p.KindWithoutClass())
}

// LeaveLane takes a pod out of its lane, if it is in one. Its state is still the same.
func (x *States) LeaveLane(p *model.Pod) {
	if p.LaneAsk != nil {
		x.Pending.LaneOf(p.State).Remove(p.LaneAsk)
		p.LaneAsk = nil
	}
}

// FirstOfLane moves the first pod of the lane into the order if no pod is admitted. The
// order has no other pod that can go on at that time.
func (x *States) FirstOfLane() bool {
	if x.Pending.Window.Taken() > 0 {
		return false
	}
	ask, ok := x.Pending.Lane.Next()
	if !ok {
		return false
	}
	p := x.Pods[types.UID(ask.UID())]
	x.LeaveBackOff(p)
	x.ToQueued(p)
	return true
}
