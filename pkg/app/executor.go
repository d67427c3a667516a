package app

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/pkg/evict"
)

// execute starts the executor of the store's decisions about holds. The caller holds p.mu.
func (p *Process) execute(ctx context.Context, h fwk.Handle, s evict.Store, recorder recorders, logger klog.Logger) {
	executor := &evict.Executor{
		Store: s, Client: h.ClientSet(), Pods: h.SharedInformerFactory().Core().V1().Pods().Lister(),
		Recorder: recorder, Leading: p.Leader.Leading,
		Reject:   func(uid types.UID, message string) bool { return reject(h, uid, message) },
		InPermit: func() []types.UID { return InPermit(h) },
		Taints:   p.taints,
		Clock:    p.Clock, Logger: logger.WithName("executor"),
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	p.drain = func(ctx context.Context) {
		stop()
		select {
		case <-done:
			executor.RemoveTaints(ctx)
		case <-ctx.Done(): // a call hangs, and the lease must be released
		}
	}
	go func() {
		defer close(done)
		executor.Run(running)
	}()
}

// Drain ends the executors of all schedulers of this program and removes the taints of held
// nodes. Call it when a program that still leads was told to end. It returns when the context
// ends, even if a call hangs: the next leader removes the taints that are left.
func Drain(ctx context.Context) {
	processesMu.Lock()
	all := slices.Collect(maps.Values(processes))
	processesMu.Unlock()
	for _, p := range all {
		p.mu.Lock()
		drain := p.drain
		p.mu.Unlock()
		if drain != nil {
			drain(ctx)
		}
	}
}

// taintPolicy returns whether held nodes are tainted. Auto taints only beside the cluster's own
// scheduler: a process that has the profile default-scheduler itself is the only scheduler.
func (p *Process) taintPolicy() evict.TaintPolicy {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch a := p.reservation; {
	case a == nil || a.HoldTaint == config.HoldTaintNever:
		return evict.TaintNever
	case a.HoldTaint == config.HoldTaintAlways:
		return evict.TaintAlways
	}
	if _, alone := p.handles.Load(corev1.DefaultSchedulerName); alone {
		return evict.TaintNever
	}
	return evict.TaintIfAllowed
}

// InPermit lists the pods that a Permit plugin delays. They have no container yet, and may be
// victims as in upstream's preemption. All profiles of a scheduler share the waiting pods.
func InPermit(h fwk.Handle) []types.UID {
	var uids []types.UID
	h.IterateOverWaitingPods(func(w fwk.WaitingPod) {
		if waits(w) {
			uids = append(uids, w.GetPod().UID)
		}
	})
	return uids
}

// waits reports whether a plugin has not allowed the pod yet. If all have, the pod is
// about to leave Permit, although it is still listed there.
func waits(w fwk.WaitingPod) bool { return len(w.GetPendingPlugins()) > 0 }

// reject rejects a pod that waits for a Permit plugin. It returns false if the pod does
// not wait, or may have been allowed at the same moment: the first verdict counts.
func reject(h fwk.Handle, uid types.UID, message string) bool {
	w := h.GetWaitingPod(uid)
	if w == nil || !waits(w) {
		return false
	}
	w.Reject("QueuePreemption", message)
	return waits(w)
}
