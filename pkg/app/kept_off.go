package app

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
	"github.com/paddock-scheduler/paddock/pkg/objects"
)

// keptOff records, for each held node, the pods that its hold kept off. If the hold
// ends and its capacity was not used, no other event requeues them.
type keptOff struct {
	mu locks.Mutex // guards of
	of map[string]map[objects.Ref]bool
}

// mostKeptOff limits the pods recorded for one node. Further pods are tried again with
// their equivalence class, by another event, or by the flush of the scheduler's queue after
// five minutes. To retry all pending pods at the end of each hold would take too long.
const mostKeptOff = 1000

// KeptOff records that a pod was kept off a held node.
func (p *Process) KeptOff(node string, pod *corev1.Pod) {
	p.keptOff.mu.Lock()
	defer p.keptOff.mu.Unlock()
	if p.keptOff.of == nil {
		p.keptOff.of = map[string]map[objects.Ref]bool{}
	}
	if p.keptOff.of[node] == nil {
		p.keptOff.of[node] = map[objects.Ref]bool{}
	}
	if len(p.keptOff.of[node]) < mostKeptOff {
		p.keptOff.of[node][informer.RefOf(pod)] = true
	}
}

// take returns the pods kept off the nodes, and drops them.
func (t *keptOff) take(nodes []string) (pods []objects.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, node := range nodes {
		pods = slices.AppendSeq(pods, maps.Keys(t.of[node]))
		delete(t.of, node)
	}
	return pods
}
