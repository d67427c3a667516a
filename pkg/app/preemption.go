package app

import (
	"fmt"
	"reflect"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// ConfigurePreemption sets the arguments of QueuePreemption. They apply to the whole
// cluster, so every instance must pass the same ones.
func (p *Process) ConfigurePreemption(args *config.QueuePreemptionArgs) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.applyPreemption()
	return keepSame("QueuePreemption", &p.preemption, args)
}

// ConfigureReservation sets the arguments of NodeReservation, which must be the same for
// every instance.
func (p *Process) ConfigureReservation(args *config.NodeReservationArgs) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.applyPreemption()
	return keepSame("NodeReservation", &p.reservation, args)
}

// keepSame keeps the arguments of a plugin. It is an error if other ones are kept.
func keepSame[T any](plugin string, kept **T, args *T) error {
	if *kept != nil && !reflect.DeepEqual(*kept, args) {
		return fmt.Errorf("the arguments of %s differ between profiles; give every profile the same ones", plugin)
	}
	*kept = args
	return nil
}

// MakesRoom records that a profile has QueuePreemption. Its DaemonSet pods may preempt
// even if the profile is not managed, and its pods may be preempted for DaemonSet pods.
func (p *Process) MakesRoom(profile string) { p.peers.Store(profile, true) }

// peer reports whether a profile has QueuePreemption.
func (p *Process) peer(profile string) bool {
	_, ok := p.peers.Load(profile)
	return ok
}

// applyPreemption passes the store the known arguments, because plugins are made in any
// order. The caller holds p.mu.
func (p *Process) applyPreemption() {
	s := p.Store()
	if s == nil {
		return
	}
	o := store.DefaultPreemption()
	if a := p.preemption; a != nil {
		o.RetryInterval, o.Round, o.MaxVictims = a.RetryInterval.Duration, a.Round.Duration, int(a.MaxVictimsPerRound)
		o.StrictGuarantee, o.IgnorePodOptOut = a.StrictGuarantee, a.PodOptOut == config.PodOptOutIgnore
	}
	if a := p.reservation; a != nil {
		o.HoldTimeout = a.ReservationTimeout.Duration
		if a.MaxVictimGrace != nil {
			o.MaxVictimGrace = a.MaxVictimGrace.Duration
		}
		o.NodeBoundParams = nodeBoundParams(a)
	}
	s.SetPreemption(o)
}

// nodeBoundParams are the settings of decisions for DaemonSet pods.
func nodeBoundParams(a *config.NodeReservationArgs) daemonset.Params {
	p := daemonset.Params{
		SingleDeviationPercent: a.SingleDeviationPercent, MaxVictims: a.MaxVictims, ClassOrder: daemonset.ClassOrder(a.ClassOrder),
		PreemptForeign: a.PreemptForeign, Namespaces: a.DaemonSetNamespaces, StartDelay: a.PreemptionStartDelay.Duration,
	}
	for _, s := range a.VictimSelection {
		p.Selection = append(p.Selection, daemonset.Selection(s))
	}
	return p
}
