package process

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/audit"
	"github.com/paddock-scheduler/paddock/pkg/events"
	"github.com/paddock-scheduler/paddock/pkg/evict"
)

// execute starts what carries out the store's decisions about holds.
func (p *Process) execute(ctx context.Context, h fwk.Handle, s evict.Store, laws *audit.Laws, logger klog.Logger) {
	if h.EventRecorder() == nil || h.ClientSet() == nil {
		return // a framework without an API server, as tests make it
	}
	executor := &evict.Executor{
		Store: s, Client: h.ClientSet(), Pods: h.SharedInformerFactory().Core().V1().Pods().Lister(),
		Recorder: func(profile string) clientevents.EventRecorder { return p.recorder(profile, h.EventRecorder()) },
		Leading:  p.Leader.Leading,
		Reject:   func(uid types.UID, message string) bool { return reject(h, uid, message) },
		InPermit: func() []types.UID { return InPermit(h) },
		LetGo:    laws.LetGo,
		Note:     events.Note, Advice: events.Advice, Clock: p.Clock, Logger: logger.WithName("executor"),
	}
	go executor.Run(ctx)
}

// InPermit lists the pods that a Permit plugin holds back: they have no container
// yet, and may be victims as upstream's preemption has it. Waiting pods are common
// to all profiles of a scheduler.
func InPermit(h fwk.Handle) []types.UID {
	var uids []types.UID
	h.IterateOverWaitingPods(func(w fwk.WaitingPod) {
		if waits(w) {
			uids = append(uids, w.GetPod().UID)
		}
	})
	return uids
}

// waits tells whether somebody has still to allow the pod. If not it is about to
// leave Permit, though it is listed there.
func waits(w fwk.WaitingPod) bool { return len(w.GetPendingPlugins()) > 0 }

// reject turns away a pod that waits for a Permit plugin. It is false where the
// pod does not, or may have been allowed at the same moment: the one who waits for
// the verdict hears what was said first.
func reject(h fwk.Handle, uid types.UID, message string) bool {
	w := h.GetWaitingPod(uid)
	if w == nil || !waits(w) {
		return false
	}
	w.Reject("QueuePreemption", message)
	return waits(w)
}
