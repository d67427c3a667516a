package admission

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// A retry order has the pods of one state that found no node. That of backing-off pods has
// those that an event since may help. While other pods can be admitted, back-off keeps these pods from being
// tried at every such event. When no other pod can be, it would leave freed room unused,
// or give it to the pod whose back-off ends first. So the first of these pods is admitted
// then, and the next one after that cycle. The scheduler's queue does the same.

// EnterRetryOrder puts a backing-off or unschedulable pod into the order of its state. That
// of unschedulable pods is for ahead.go.
func (x *States) EnterRetryOrder(p *model.Pod) {
	p.RetryAsk = x.Pending.RetryOrder(p.State).Push(x.Cache.Tree(), p.App, p.App.Info(x.Cache.Tree()), p.AskKey(), p.Request, p.KindWithoutClass())
}

// LeaveRetryOrder takes a pod out of its retry order, if it is in one. Its state is still the same.
func (x *States) LeaveRetryOrder(p *model.Pod) {
	if p.RetryAsk != nil {
		x.Pending.RetryOrder(p.State).Remove(p.RetryAsk)
		p.RetryAsk = nil
	}
}

// RetryFirst moves the first backing-off pod into the order if no pod is admitted. The
// order has no other pod that can go on at that time.
func (x *States) RetryFirst() bool {
	if x.Pending.Window.Taken() > 0 {
		return false
	}
	ask, ok := x.Pending.BackingOff.Next()
	if !ok {
		return false
	}
	p := x.Pods[types.UID(ask.UID())]
	x.LeaveBackOff(p)
	x.ToQueued(p)
	return true
}
