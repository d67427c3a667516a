package framework_test

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

const probeName = "Probe"

// probe is a plugin that observes: it counts the cycles of every pod and reports every pod that got a
// node. It is called in the scheduling goroutine, so to the scheduler its work takes no time.
type probe struct {
	// reserved, if set, gets every managed pod that got a node.
	reserved func(pod *corev1.Pod)

	mu     sync.Mutex // guards the fields below
	all    int        // cycles of all pods
	cycles map[types.UID]int
}

var (
	_ fwk.PreFilterPlugin   = &probe{}
	_ fwk.ReservePlugin     = &probe{}
	_ fwk.EnqueueExtensions = &probe{}
)

func newProbe() *probe { return &probe{cycles: map[types.UID]int{}} }

func (*probe) Name() string { return probeName }

func (*probe) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) { return nil, nil }

func (p *probe) PreFilter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	p.mu.Lock()
	p.cycles[pod.UID]++
	p.all++
	p.mu.Unlock()
	return nil, nil
}

func (*probe) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (p *probe) Reserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	if p.reserved != nil && pod.Spec.SchedulerName == managed {
		p.reserved(pod)
	}
	return nil
}

func (*probe) Unreserve(context.Context, fwk.CycleState, *corev1.Pod, string) {}

// cyclesOf returns the number of cycles of the pod.
func (p *probe) cyclesOf(pod *corev1.Pod) int {
	defer holding(&p.mu)()
	return p.cycles[pod.UID]
}

// allCycles returns the number of all cycles.
func (p *probe) allCycles() int {
	defer holding(&p.mu)()
	return p.all
}

// Eventf implements an event recorder. It keeps nothing.
func (*probe) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}
