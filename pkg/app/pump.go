package app

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// startLoops starts the goroutines that synchronize the store and the scheduler.
func (p *Process) startLoops(ctx context.Context, h fwk.Handle, s *store.Store, logger klog.Logger) {
	go p.pump(ctx, h, s, logger)
	go p.onStartedLeading(ctx, s)
	p.reconcileNominations(ctx, h, s, logger)
}

// pump passes admitted pods to the scheduler's queue, and the time to the store. It holds no
// lock when it calls either. retryAll activates waiting pods, too; the gate decides about each.
func (p *Process) pump(ctx context.Context, h fwk.Handle, s *store.Store, logger klog.Logger) {
	timer := p.Clock.NewTimer(time.Hour)
	defer timer.Stop()
	pods := h.SharedInformerFactory().Core().V1().Pods().Lister()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.Wake():
		case <-timer.C():
			s.Tick(p.Clock.Now())
		}
		if s.Returning() {
			// The scheduler's queue moves all pods that one event concerns under its
			// lock. This call waits for the lock, so that they are all in the order.
			h.Activate(logger, nil)
		}
		if refs := s.TakeActivations(); len(refs) > 0 {
			h.Activate(logger, podsOf(refs))
			p.deferHeldBack(ctx, pods, s, refs)
		}
		if kept := p.keptOff.take(s.TakeVacated()); len(kept) > 0 {
			h.Activate(logger, podsOf(kept))
		}
		if next, ok := s.NextDeadline(); ok {
			timer.Reset(max(next.Sub(p.Clock.Now()), time.Millisecond))
		}
	}
}

// deferHeldBack takes back the slots of pods that another PreEnqueue plugin keeps out of the
// scheduler's queue, such as DynamicResources a pod whose claim does not exist. The
// scheduler does not try them, so other pods would wait for these slots. After Activate
// it is that plugin that keeps such a pod back, and after an event that the plugin has
// registered the scheduler's queue calls Store.Gate.
func (p *Process) deferHeldBack(ctx context.Context, pods corelisters.PodLister, s *store.Store, refs []objects.Ref) {
	for _, r := range refs {
		pod := informer.Find(pods, r)
		if pod == nil {
			continue
		}
		if why := p.heldBack(ctx, pod); why != nil {
			s.Defer(r.UID, reasons.New(reasons.SchedulingGated, "plugin %s: %s", why.Plugin(), why.Message()), p.Clock.Now())
		}
	}
}

// heldBack returns the refusal of a PreEnqueue plugin other than QueueSort; nil for none.
func (p *Process) heldBack(ctx context.Context, pod *corev1.Pod) *fwk.Status {
	h, _ := p.handles.Load(pod.Spec.SchedulerName)
	profile, ok := h.(interface{ PreEnqueuePlugins() []fwk.PreEnqueuePlugin })
	if !ok {
		return nil
	}
	for _, plugin := range profile.PreEnqueuePlugins() {
		if _, ours := plugin.(fwk.QueueSortPlugin); ours {
			continue
		}
		if status := plugin.PreEnqueue(ctx, pod); !status.IsSuccess() {
			return status.WithPlugin(plugin.Name())
		}
	}
	return nil
}

// onStartedLeading tells the store once this process leads, unless the context ends first.
func (p *Process) onStartedLeading(ctx context.Context, s *store.Store) {
	if p.Leader.Wait(ctx) == nil {
		s.StartLeading(p.Clock.Now())
	}
}

// podsOf converts references to pods with the fields that Activate reads: its queues know
// pods by namespace and name, its pods in flight by UID.
func podsOf(refs []objects.Ref) map[string]*corev1.Pod {
	pods := make(map[string]*corev1.Pod, len(refs))
	for _, r := range refs {
		pods[r.Namespace+"/"+r.Name] = informer.Named(r)
	}
	return pods
}
