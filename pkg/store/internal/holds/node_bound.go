package holds

import (
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// NodeBoundBefore is HoldersBefore for a pod and the only node it can run on, whether it
// holds that node already or not.
func (x *Holds) NodeBoundBefore(p *model.Pod) []reservations.Hold {
	own := &reservations.Hold{Asker: p.UID, Required: true, Priority: p.Priority, Created: p.Created}
	return slices.DeleteFunc(x.HoldersBefore(p.RequiredNode, p.UID), func(h reservations.Hold) bool { return !h.Before(own) })
}

// Supersede ends those ordinary holds of a node that no longer fit there because of a pod
// that can run only there. It repeats after each one: the victims of an ended hold may
// stay, and then another hold may not fit either.
func (x *Holds) Supersede(n *cache.Node, now time.Time) {
	for again := true; again; {
		again = false
		for _, h := range x.Preemption.Holds.Holders(n.Name()) {
			p := x.Pods[h.Asker]
			if h.Required || p == nil || p.State.HasNode() || x.Free(n, h.Asker).Covers(h.Request) {
				continue
			}
			x.EndHold(p, reservations.Superseded, reasons.New(reasons.HoldSuperseded,
				"a pod that can run on node %s only takes the room there", n.Name()), now)
			again = true
			break
		}
	}
}

// Rechoose replaces the victims of a hold. Pods that are no longer victims and were not
// deleted stay.
func (x *Holds) Rechoose(p *model.Pod, h reservations.Hold, now time.Time) {
	old, _ := x.Preemption.Holds.Of(p.UID)
	var stay []*model.Pod
	for _, uid := range old.Chosen {
		if v := x.Pods[uid]; v != nil && v.ChosenBy == p.UID && !slices.Contains(h.Chosen, uid) {
			x.Chosen(v, "")
			x.Weigh(v)
			x.TouchPod(v)
			stay = append(stay, v)
		}
	}
	for _, uid := range h.Chosen {
		x.choose(x.Pods[uid], p)
	}
	h.Asker, h.Node, h.Required = p.UID, old.Node, true
	h.Victims = x.Awaited(&h)
	x.Preemption.Holds.Choose(p.UID, h, now)
	x.TouchName(h.Node)
	for _, v := range stay {
		if !v.Leaves() {
			x.Gone(v.UID, now)
		}
	}
}
