package framework_test

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

const probeName = "Probe"

// probe is a plugin that observes: it counts the cycles of every pod and reports every
// pod that got a node. It is called in the scheduling goroutine, so to the scheduler its
// work takes no time.
type probe struct {
	disturb func(pod *corev1.Pod) error
	// reserved, if set, gets every managed pod that got a node.
	reserved func(pod *corev1.Pod)

	// cycle, if set, is called for every cycle before our plugins.
	cycle func(pod *corev1.Pod)

	// permit, if set, tells which pods of queues wait at Permit until they are allowed in
	// the name of the probe.
	permit func(pod *corev1.Pod) bool

	// preBind, if set, gets every pod of a queue before it is bound.
	preBind func(pod *corev1.Pod)

	mu     sync.Mutex // guards the fields below
	all    int        // cycles of all pods
	cycles map[types.UID]int
}

var (
	_ fwk.PreFilterPlugin   = &probe{}
	_ fwk.ReservePlugin     = &probe{}
	_ fwk.PermitPlugin      = &probe{}
	_ fwk.PreBindPlugin     = &probe{}
	_ fwk.EnqueueExtensions = &probe{}
)

func newProbe() *probe {
	return &probe{cycles: map[types.UID]int{}}
}

func (*probe) Name() string { return probeName }

func (*probe) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) { return nil, nil }

func (p *probe) PreFilter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	p.mu.Lock()
	p.cycles[pod.UID]++
	p.all++
	p.mu.Unlock()
	if p.cycle != nil {
		p.cycle(pod)
	}
	return nil, nil
}

func (*probe) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (p *probe) Reserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	if p.disturb != nil {
		if err := p.disturb(pod); err != nil {
			return fwk.AsStatus(err)
		}
	}
	if p.reserved != nil && pod.Spec.SchedulerName == managed {
		p.reserved(pod)
	}
	return nil
}

func (*probe) Unreserve(context.Context, fwk.CycleState, *corev1.Pod, string) {}

func (p *probe) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	if p.permit != nil && p.permit(pod) {
		return fwk.NewStatus(fwk.Wait), time.Hour
	}
	return nil, 0
}

func (p *probe) PreBindPreFlight(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	if p.preBind == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}

func (p *probe) PreBind(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	p.preBind(pod)
	return nil
}

// cyclesOf returns the number of cycles of the pod.
func (p *probe) cyclesOf(pod *corev1.Pod) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cycles[pod.UID]
}

// allCycles returns the number of all cycles.
func (p *probe) allCycles() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}

// Eventf implements an event recorder. It keeps nothing.
func (*probe) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}
