package app

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/pkg/objects"
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
		o.Required = requiredParams(a)
	}
	s.SetPreemption(o)
}

// requiredParams are the settings of decisions for DaemonSet pods.
func requiredParams(a *config.NodeReservationArgs) daemonset.Params {
	p := daemonset.Params{
		SingleDeviationPercent: a.SingleDeviationPercent, MaxVictims: a.MaxVictims, ClassOrder: daemonset.ClassOrder(a.ClassOrder),
		PreemptForeign: a.PreemptForeign, Namespaces: a.DaemonSetNamespaces, StartDelay: a.PreemptionStartDelay.Duration,
	}
	for _, s := range a.VictimSelection {
		p.Selection = append(p.Selection, daemonset.Selection(s))
	}
	return p
}

// turnedAway records, for each held node, the pods that its hold kept off. If the hold
// ends and its capacity was not used, no other event requeues them.
type turnedAway struct {
	mu sync.Mutex // guards of
	of map[string]map[objects.Ref]bool
}

// mostTurnedAway limits the pods recorded for one node. Further pods are tried again with
// their equivalence class, by another event, or by the flush of the scheduler's queue after
// five minutes. To retry all pending pods at the end of each hold would take too long.
const mostTurnedAway = 1000

// TurnedAway records that a pod was kept off a held node.
func (p *Process) TurnedAway(node string, pod *corev1.Pod) {
	p.away.mu.Lock()
	defer p.away.mu.Unlock()
	if p.away.of == nil {
		p.away.of = map[string]map[objects.Ref]bool{}
	}
	if p.away.of[node] == nil {
		p.away.of[node] = map[objects.Ref]bool{}
	}
	if len(p.away.of[node]) < mostTurnedAway {
		p.away.of[node][objects.Ref{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}] = true
	}
}

// take returns the pods kept off the nodes, and drops them.
func (t *turnedAway) take(nodes []string) (pods []objects.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, node := range nodes {
		pods = slices.AppendSeq(pods, maps.Keys(t.of[node]))
		delete(t.of, node)
	}
	return pods
}

// retryRejected retries the pods that were kept off a node by a hold that ended.
func (p *Process) retryRejected(h fwk.Handle, nodes []string, logger klog.Logger) {
	if pods := p.away.take(nodes); len(pods) > 0 {
		h.Activate(logger, podsOf(pods))
	}
}
