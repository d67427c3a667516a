package store

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// A kubelet refuses a pod for which its node has no room (OutOfcpu, OutOfmemory, ...): another
// scheduler bound a pod there at the same time. Where the node was held for the refused pod,
// that is a lost hold too, though it ended with a bind. The refused pod is over, so the pod
// that its controller makes in its place has the loss, and the count of losses before it.
//
// What is remembered until that pod comes is bounded: it ends when the pod comes or when
// the pause is over, and of more than mostRefusals the one that ends first is dropped.

// refusalKey names the pods of which one takes the place of a refused pod: those of its
// controller, and of a DaemonSet those for its node.
type refusalKey struct {
	controller types.UID
	node       string
}

func (k refusalKey) compare(o refusalKey) int {
	return cmp.Or(cmp.Compare(k.controller, o.controller), cmp.Compare(k.node, o.node))
}

// refusal is what pods of one controller lost and no pod has taken over.
type refusal struct {
	losses losses
	pods   int // that were refused
}

const mostRefusals = 1000

// refuseByKubelet takes the event that a kubelet refused a pod.
func (s *Store) refuseByKubelet(p *pod, event *Pod, now time.Time) {
	h, holds := s.holds.Of(p.UID)
	switch {
	case event.Refusal == "" || s.standby:
		return
	case p.asks.losses.placed:
	case !holds || !h.Binding():
		return
	}
	if !holds {
		h = reservations.Hold{Asker: p.UID, Namespace: p.Namespace, Name: p.Name, Node: event.Node, Required: p.RequiredNode != ""}
	}
	l := p.asks.losses
	if l.until.Add(longestPause).Before(now) {
		l.count = 0 // it has run meanwhile
	}
	l.count++
	why := reasons.New(reasons.HoldSuperseded, "the kubelet of node %s has no room for pod %s/%s (%s)", event.Node, p.Namespace, p.Name, event.Refusal)
	if n := s.nodes[event.Node]; n != nil {
		why.Text = fmt.Sprintf("%s; %s", s.tookNode(p, n).Text, why.Text)
	}
	l.set(why, "the pod that is made in its place", s.pause(l.count), now)
	s.enterStep(p, Step{Kind: StepLost, Hold: h, Reason: l.why, Losses: l.count}, now)
	s.toWrite(Work{Ref: p.Ref(), Kind: WorkTell, Hold: h, Reason: l.why})
	if p.app != nil && p.RequiredNode == "" {
		s.sayUntil(p, reasons.HoldGivenUp, l.until)
	}
	if event.Controller != "" {
		s.rememberRefusal(refusalKey{event.Controller, p.RequiredNode}, l, now)
	}
}

func (s *Store) rememberRefusal(key refusalKey, l losses, now time.Time) {
	maps.DeleteFunc(s.refusals, func(_ refusalKey, r *refusal) bool { return !now.Before(r.losses.until) })
	r := s.refusals[key]
	if r == nil {
		r = &refusal{}
		s.refusals[key] = r
	}
	r.pods++
	if l.count >= r.losses.count {
		r.losses = l
	}
	if len(s.refusals) > mostRefusals {
		first := slices.MinFunc(slices.Collect(maps.Keys(s.refusals)), func(a, b refusalKey) int {
			return cmp.Or(s.refusals[a].losses.until.Compare(s.refusals[b].losses.until), a.compare(b))
		})
		delete(s.refusals, first)
	}
}

// inherit gives a new pod the losses of a refused pod of the same controller.
func (s *Store) inherit(p *pod, now time.Time) {
	key := refusalKey{p.Controller, p.RequiredNode}
	r := s.refusals[key]
	if r == nil || p.Node != "" {
		return
	}
	if now.Before(r.losses.until) {
		p.asks.losses = losses{count: r.losses.count, until: r.losses.until, why: r.losses.why}
		r.pods--
	} else {
		r.pods = 0
	}
	if r.pods == 0 {
		delete(s.refusals, key)
	}
}

// checkRefusals verifies that what is remembered is bounded, and of use.
func (s *Store) checkRefusals() error {
	if len(s.refusals) > mostRefusals {
		return fmt.Errorf("refusals: %d, at most %d are remembered", len(s.refusals), mostRefusals)
	}
	for key, r := range s.refusals {
		if key.controller == "" || r.pods < 1 || r.losses.count < 1 || r.losses.until.IsZero() {
			return errors.New("refusals: one is remembered for nothing")
		}
	}
	return nil
}
