package admission

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// Slots gives the slots of the window to the first pods of the order. A pod that found a node gives
// the node up for pods that go before it (ahead.go).
type Slots struct {
	m      *model.Model
	states *States
	groups *PodGroups
}

// NewSlots returns the slots of a model.
func NewSlots(m *model.Model, states *States, groups *PodGroups) *Slots {
	return &Slots{m, states, groups}
}

// FillInOrder gives slots to the first pods of the order while the window has room. A pod
// that a quota refuses leaves the order with all equal ones, and a PodGroup is admitted as
// a whole. A pod of an equivalence class waits while [pending.ClassLimit] is full, and all
// pods behind it wait, too.
func (x *Slots) FillInOrder(now time.Time) {
	for x.m.Pending.Window.Taken() < x.m.Pending.Window.Slots() {
		ask, ok := x.m.Pending.Order.Next()
		if !ok {
			return
		}
		p := x.m.Pods[types.UID(ask.UID())]
		if p.EquivalenceClass != nil && x.m.Pending.Classes.Limit.Full() {
			return
		}
		if v := x.m.CheckPodQuota(p, queues.OnCommitted); !v.OK() {
			x.block(ask.Group(), v)
			continue
		}
		if p.PodGroup != nil && p.PodGroup.LacksMembers() {
			x.groups.startGroup(p, now)
			continue
		}
		x.states.LetThrough(p, now)
	}
}

// Unblock checks blocked groups again where the blocking queue has got more room.
func (x *Slots) Unblock() {
	for _, g := range x.m.Pending.TakeBlocked(x.m.Cache.Tree()) {
		p := x.m.Pods[types.UID(g.First().UID())]
		if v := x.m.CheckPodQuota(p, queues.OnCommitted); v.OK() {
			x.m.Pending.Order.Unblock(g)
		} else {
			x.block(g, v)
		}
	}
}

// block takes a group that a quota refuses out of the order.
func (x *Slots) block(g *order.AskGroup, v queues.Verdict) {
	x.m.Pending.Order.Block(g, v)
	x.m.Preemption.NodeBound.NoteInOrder(g.Leaf())
}
